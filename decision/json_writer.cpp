#include "decision/json_writer.hpp"

#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

#include "decision/json_value.hpp"

namespace assay::decision {

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) text_ += style_ == JsonStyle::python ? ", " : ",";
  first_ = false;
}

void JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  text_ += bracket;
  first_ = false;
}

void JsonWriter::write_string(std::string_view text) {
  // nlohmann's ASCII form is CPython's: the same short escapes, surrogate pairs, lower-case digits, DEL
  // escaped.
  text_ += nlohmann::json(text).dump(-1, ' ', style_ == JsonStyle::python);
}

void JsonWriter::key(std::string_view name) {
  separate();
  write_string(name);
  text_ += style_ == JsonStyle::python ? ": " : ":";
  after_key_ = true;
}

void JsonWriter::value(std::string_view text) {
  separate();
  write_string(text);
}

void JsonWriter::value(double number) {
  separate();
  text_ += python_repr(number);
}

void JsonWriter::value(float number) {
  separate();
  std::array<char, 32> digits;
  text_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

void JsonWriter::value(std::size_t number) {
  separate();
  text_ += std::to_string(number);
}

void JsonWriter::splice(std::string_view json) {
  separate();
  text_ += json;
}

}  // namespace assay::decision
