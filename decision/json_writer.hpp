#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::decision {

/// How JSON text is spaced and escaped.
enum class JsonStyle {
  compact,  ///< no spaces, UTF-8 as it is
  python,   ///< as CPython's json.dumps writes by default: ", " and ": ", all but printable ASCII escaped
};

/// Writes JSON text front to back. The caller keeps the nesting right.
class JsonWriter {
 public:
  explicit JsonWriter(JsonStyle style) : style_(style) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);
  void value(std::string_view text);
  void value(double number);  ///< as Python's repr: shortest, "1.0"
  void value(float number);   ///< shortest that gives the float back
  void value(std::size_t number);
  void splice(std::string_view json);  ///< a value already written

  std::string take() { return std::move(text_); }

 private:
  void separate();
  void open(char bracket);
  void close(char bracket);
  void write_string(std::string_view text);

  JsonStyle style_;
  std::string text_;
  bool first_ = true;  // in its container
  bool after_key_ = false;
};

}  // namespace assay::decision
