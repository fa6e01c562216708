#include "lab/json_reader.hpp"

#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/sha256.hpp"
#include "formats/json.hpp"

namespace assay::lab {
namespace {

/// As parse_json, but a file that a person wrote is mended, not fetched again.
nlohmann::json parse_written(std::string_view text, const std::string& name) {
  try {
    return formats::parse_json(text, name);
  } catch (const Error& error) {
    Error::Parts parts = error.parts();
    if (!parts.advice.empty())
      parts.advice = "look for a comma, quote or bracket too many or too few before it";
    throw Error(error.kind(), std::move(parts));
  }
}

}  // namespace

JsonPlace::JsonPlace(std::shared_ptr<const nlohmann::json> value, std::string file, std::string path)
    : value_(std::move(value)), file_(std::move(file)), path_(std::move(path)) {}

std::string JsonPlace::where() const {
  return path_.empty() ? file_ : file_ + ": " + path_;
}

JsonPlace JsonPlace::field(const std::string& name) const {
  return {{value_, &value_->at(name)}, file_, path_.empty() ? name : path_ + "." + name};
}

JsonPlace JsonPlace::item(std::size_t index) const {
  return {{value_, &value_->at(index)}, file_, fmt::format("{}[{}]", path_, index)};
}

void JsonPlace::refuse(std::string expected) const {
  throw Error(ErrorKind::malformed,
              {.where = where(), .found = formats::excerpt(*value_), .expected = std::move(expected)});
}

bool JsonPlace::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::string JsonPlace::string() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get<std::string>();
}

double JsonPlace::number() const {
  if (!value_->is_number() || !std::isfinite(value_->get<double>())) refuse("a finite number");
  return value_->get<double>();
}

std::uint64_t JsonPlace::unsigned_integer() const {
  if (!value_->is_number_unsigned()) refuse("a whole number, not negative");
  return value_->get<std::uint64_t>();
}

std::int64_t JsonPlace::integer() const {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool fits =
      value_->is_number_unsigned() ? value_->get<std::uint64_t>() <= kLargest : value_->is_number_integer();
  if (!fits) refuse("a whole number of 64 bits");
  return value_->get<std::int64_t>();
}

void JsonPlace::require_list() const {
  if (!value_->is_array()) refuse("a list");
}

void JsonPlace::require_object() const {
  if (!value_->is_object()) refuse("an object");
}

JsonReader::JsonReader(JsonPlace object) : object_(std::move(object)) {
  if (object_.value().is_object()) return;
  throw Error(
      ErrorKind::malformed,
      {.where = object_.where(), .found = formats::excerpt(object_.value()), .expected = "an object"});
}

bool JsonReader::has(const std::string& name) const {
  return object_.value().contains(name);
}

std::string JsonReader::where(const std::string& name) const {
  return has(name) ? object_.field(name).where() : fmt::format("{}, field '{}'", object_.where(), name);
}

JsonPlace JsonReader::required_place(const std::string& name) {
  known_.insert(name);
  if (has(name)) return object_.field(name);
  throw Error(
      ErrorKind::malformed,
      {.where = object_.where(), .found = fmt::format("no field '{}'", name), .expected = "that field"});
}

void JsonReader::finish() const {
  for (const auto& [name, value] : object_.value().items()) {
    if (known_.contains(name)) continue;
    throw Error(ErrorKind::malformed,
                {.where = object_.where(),
                 .found = fmt::format("an unknown field '{}'", name),
                 .expected = known_.empty() ? "no fields" : fmt::format("{}", fmt::join(known_, ", "))});
  }
}

JsonFile parse_json_text(std::string_view text, const std::string& name) {
  auto document = std::make_shared<const nlohmann::json>(parse_written(text, name));
  return {name, sha256_hex(std::as_bytes(std::span(text))), JsonReader({std::move(document), name, {}})};
}

JsonFile read_json_file(const std::filesystem::path& path, std::size_t limit) {
  return parse_json_text(read_text_file(path, limit), path.string());
}

}  // namespace assay::lab
