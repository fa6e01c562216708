#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace assay::decision {

/// A JSON value as CPython's `json.loads` would give it, with what the model's text needs of it: members in
/// order, integers of any size, floats by their shortest form.
///
/// A member name that comes again keeps its first place and takes the last value, as a Python dict does
/// (CPython, Lib/json/decoder.py, JSONObject).
class JsonValue {
 public:
  struct Number {
    std::string text;  ///< what Python's `str` gives: "12", "-0.0", "1e+16"
  };
  using Array = std::vector<JsonValue>;
  using Member = std::pair<std::string, JsonValue>;
  using Object = std::vector<Member>;

  JsonValue() = default;
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, JsonValue>) explicit JsonValue(T&& value)
      : value_(std::forward<T>(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const Number* number() const { return std::get_if<Number>(&value_); }
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  Array* array() { return std::get_if<Array>(&value_); }
  Object* object() { return std::get_if<Object>(&value_); }

  /// The member's value; null where this is no object or has no such member.
  const JsonValue* find(std::string_view name) const;

  /// "null", "a boolean", "a number", "a string", "an array", "an object": for messages.
  std::string_view kind() const;

 private:
  std::variant<std::monostate, bool, Number, std::string, Array, Object> value_;
};

/// What a document may be at most. The first two are the hosted System One service's; the others keep a
/// small body from growing into much memory.
struct JsonLimits {
  std::size_t bytes = std::size_t{32} << 20;
  std::size_t depth = 64;             ///< arrays and objects inside one another
  std::size_t values = 1u << 20;      ///< values in the whole document
  std::size_t integer_digits = 4300;  ///< CPython's own limit (sys.set_int_max_str_digits)
};

struct JsonDocument {
  JsonValue root;
  std::vector<std::string> duplicates;  ///< paths of members that came more than once, the first few
};

/// Parses one JSON document in UTF-8. `origin` starts the place in messages (a file name, or "request");
/// the rest of the place is the field's path ("questions.q1.criteria[2]").
///
/// Throws Error(invalid_argument) for what is no JSON, including NaN and Infinity, bytes that are no UTF-8
/// and escapes of lone surrogates; Error(non_finite) for a number beyond a double's range;
/// Error(limit_exceeded) for a document past a limit, saying which and by how much.
JsonDocument parse_json(std::string_view text, const std::string& origin, const JsonLimits& limits = {});

/// Python's `repr` of a finite double: the shortest digits that give it back; scientific notation below 1e-4
/// and from 1e16 up (CPython, Python/pystrtod.c, PyOS_double_to_string with format 'r').
std::string python_repr(double value);

/// A member's path below `parent`: "parent.name", its control bytes escaped and its length bounded, since it
/// goes into messages.
std::string field_path(std::string_view parent, std::string_view name);
std::string field_path(std::string_view parent, std::size_t index);

}  // namespace assay::decision
