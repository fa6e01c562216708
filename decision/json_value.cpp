#include "decision/json_value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"

namespace assay::decision {
namespace {

/// nlohmann's SAX parser hands over integers past 64 bits as floats, with their text, and refuses those that
/// overflow the float type. With `long double` that is far past any integer this parser admits, so the text
/// always arrives; the double itself is read from the text below.
using SaxJson =
    nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t, long double>;

constexpr std::size_t kDuplicatesReported = 8;

/// Drops earlier values of repeated names, each name staying where it came first. Returns the repeated names.
std::vector<std::string> keep_last_values(JsonValue::Object& members) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return members[a].first < members[b].first; });
  std::vector<std::string> repeated;
  std::vector<bool> drop(members.size(), false);
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && members[order[last + 1]].first == members[order[first]].first) ++last;
    if (last > first) {
      repeated.push_back(members[order[first]].first);
      members[order[first]].second = std::move(members[order[last]].second);
      for (std::size_t i = first + 1; i <= last; ++i) drop[order[i]] = true;
    }
    first = last + 1;
  }
  if (repeated.empty()) return repeated;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (drop[i]) continue;
    if (kept != i) members[kept] = std::move(members[i]);
    ++kept;
  }
  members.resize(kept);
  return repeated;
}

/// Builds the tree from nlohmann's SAX events and knows, at any time, the path of what is being read.
class TreeBuilder : public nlohmann::json_sax<SaxJson> {
 public:
  TreeBuilder(const std::string& origin, const JsonLimits& limits) : origin_(origin), limits_(limits) {}

  JsonDocument finish() { return {std::move(root_), std::move(duplicates_)}; }

  bool null() override { return put(JsonValue{}); }
  bool boolean(bool value) override { return put(JsonValue{value}); }
  bool number_integer(std::int64_t value) override {
    return put(JsonValue{JsonValue::Number{std::to_string(value)}});
  }
  bool number_unsigned(std::uint64_t value) override {
    return put(JsonValue{JsonValue::Number{std::to_string(value)}});
  }
  bool number_float(long double value, const std::string& text) override {
    return put(JsonValue{JsonValue::Number{number_text(value, text)}});
  }
  bool string(std::string& value) override { return put(JsonValue{std::move(value)}); }
  bool binary(nlohmann::json::binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(JsonValue{JsonValue::Object{}}); }
  bool start_array(std::size_t) override { return open(JsonValue{JsonValue::Array{}}); }
  bool key(std::string& name) override {
    stack_.back().name = std::move(name);
    stack_.back().in_member = true;
    return true;
  }
  bool end_object() override {
    const auto repeated = keep_last_values(*stack_.back().value.object());
    for (const std::string& name : repeated) {
      if (duplicates_.size() < kDuplicatesReported) duplicates_.push_back(field_path(container_path(), name));
    }
    return close();
  }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& error) override {
    // 406: the text of a number overflows (nlohmann/detail/input/json_sax.hpp and the library's list of
    // errors).
    if (error.id == 406) throw number_too_large(last_token);
    throw Error(ErrorKind::invalid_argument,
                {place(), fmt::format("not JSON at byte {}: {}", position, reason(error.what())),
                 "RFC 8259 JSON in UTF-8",
                 "correct the text there; NaN, Infinity, comments, single quotes, trailing "
                 "commas and escapes of half a surrogate pair are not JSON"});
  }

 private:
  struct Frame {
    JsonValue value;
    std::string name;  // of the member being read, in an object
    bool in_member = false;
  };

  std::string path_of(std::size_t frames) const {
    std::string path = origin_;
    for (std::size_t i = 0; i < frames; ++i) {
      const Frame& frame = stack_[i];
      if (frame.value.array() != nullptr) {
        path = field_path(path, frame.value.array()->size());
      } else if (frame.in_member) {
        path = field_path(path, frame.name);
      }
    }
    return path;
  }
  std::string place() const { return path_of(stack_.size()); }
  std::string container_path() const { return path_of(stack_.size() - 1); }

  /// The part of nlohmann's message after its own prefix and position.
  static std::string reason(std::string_view message) {
    const auto colon = message.find(": ");
    std::string text(colon == std::string_view::npos ? message : message.substr(colon + 2));
    constexpr std::size_t kLongest = 200;
    if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
    return text;
  }

  Error number_too_large(std::string_view text) const {
    constexpr std::size_t kShown = 24;
    return Error(
        ErrorKind::non_finite,
        {place(), fmt::format("the number {}{}", text.substr(0, kShown), text.size() > kShown ? "…" : ""),
         "a number within a double's range", "write it as a string if its digits matter"});
  }

  std::string number_text(long double value, const std::string& text) const {
    if (text.find_first_of(".eE") == std::string::npos) return integer_text(text);
    double rounded = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), rounded);
    if (status == std::errc::result_out_of_range) {
      if (std::fabs(value) > 1.0L) throw number_too_large(text);
      rounded = std::copysign(0.0, text.front() == '-' ? -1.0 : 1.0);  // below the least subnormal
    }
    if (!std::isfinite(rounded)) throw number_too_large(text);
    return python_repr(rounded);
  }

  std::string integer_text(const std::string& text) const {
    const std::size_t digits = text.size() - (text.front() == '-' ? 1 : 0);
    if (digits > limits_.integer_digits) {
      throw Error(ErrorKind::limit_exceeded,
                  {place(), fmt::format("an integer of {} digits", digits),
                   fmt::format("at most {}", limits_.integer_digits), "write it as a string"});
    }
    return text;
  }

  void count_value() {
    if (++values_ <= limits_.values) return;
    throw Error(ErrorKind::limit_exceeded, {place(), fmt::format("more than {} JSON values", limits_.values),
                                            fmt::format("at most {}", limits_.values), "split the request"});
  }

  bool put(JsonValue value) {
    count_value();
    attach(std::move(value));
    return true;
  }

  void attach(JsonValue value) {
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = stack_.back().value.array()) {
      array->push_back(std::move(value));
    } else {
      Frame& object = stack_.back();
      object.value.object()->emplace_back(std::move(object.name), std::move(value));
      object.in_member = false;
    }
  }

  bool open(JsonValue container) {
    count_value();
    if (stack_.size() >= limits_.depth) {
      throw Error(ErrorKind::limit_exceeded,
                  {place(), fmt::format("nesting deeper than {} levels", limits_.depth),
                   fmt::format("at most {}", limits_.depth), "flatten the value or send it as a string"});
    }
    stack_.push_back({std::move(container), {}, false});
    return true;
  }

  bool close() {
    JsonValue value = std::move(stack_.back().value);
    stack_.pop_back();
    attach(std::move(value));
    return true;
  }

  const std::string& origin_;
  const JsonLimits& limits_;
  JsonValue root_;
  std::vector<Frame> stack_;
  std::vector<std::string> duplicates_;
  std::size_t values_ = 0;
};

/// "12300" and exponent 2 (of the first digit) to "1.23e+02": Python's form, at least two exponent digits.
std::string scientific(std::string_view digits, int exponent) {
  std::string text(1, digits.front());
  if (digits.size() > 1) text.append(1, '.').append(digits.substr(1));
  return text + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
}

std::string positional(std::string_view digits, int exponent) {
  if (exponent < 0) {
    return "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + std::string(digits);
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return std::string(digits) + std::string(whole - digits.size(), '0') + ".0";
  return std::string(digits.substr(0, whole)) + "." + std::string(digits.substr(whole));
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  const auto place =
      std::find_if(members->begin(), members->end(), [&](const Member& m) { return m.first == name; });
  return place == members->end() ? nullptr : &place->second;
}

std::string_view JsonValue::kind() const {
  constexpr std::array<std::string_view, 6> kKinds = {"null",     "a boolean", "a number",
                                                      "a string", "an array",  "an object"};
  return kKinds[value_.index()];
}

JsonDocument parse_json(std::string_view text, const std::string& origin, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    throw Error(ErrorKind::limit_exceeded,
                {origin, counted(text.size(), "byte"), fmt::format("at most {}", limits.bytes),
                 "shorten it by " + counted(text.size() - limits.bytes, "byte")});
  }
  // nlohmann's lexer takes a NUL for the end of its input, and what follows would pass unread.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw Error(ErrorKind::invalid_argument,
                {origin, fmt::format("not JSON at byte {}: a NUL", nul + 1), "RFC 8259 JSON in UTF-8",
                 "take the NUL out, or write it as \\u0000 inside a text"});
  }
  TreeBuilder builder(origin, limits);
  SaxJson::sax_parse(text.begin(), text.end(), &builder);
  return builder.finish();
}

std::string python_repr(double value) {
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  std::string sign;
  if (text.front() == '-') {
    sign = "-";
    text.remove_prefix(1);
  }
  const auto e = text.find('e');
  std::string digits(1, text.front());
  if (e > 1) digits.append(text.substr(2, e - 2));
  int exponent = 0;
  const std::size_t exponent_digits = e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + exponent_digits, text.data() + text.size(), exponent);
  return sign +
         (exponent < -4 || exponent >= 16 ? scientific(digits, exponent) : positional(digits, exponent));
}

std::string field_path(std::string_view parent, std::string_view name) {
  constexpr std::size_t kLongest = 64;
  std::string shown = name.empty() ? "\"\"" : printable(name);
  if (name.size() > kLongest) {
    std::size_t cut = kLongest;
    while ((static_cast<unsigned char>(name[cut]) & 0xC0u) == 0x80u) --cut;  // not inside a character
    shown = printable(name.substr(0, cut)) + "…";
  }
  return parent.empty() ? shown : fmt::format("{}.{}", parent, shown);
}

std::string field_path(std::string_view parent, std::size_t index) {
  return fmt::format("{}[{}]", parent, index);
}

}  // namespace assay::decision
