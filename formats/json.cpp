#include "formats/json.hpp"

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace assay::formats {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::size_t kExcerptBytes = 80;

/// Watches a parse for what the parser itself would take in silence: repeated keys, absurd nesting.
class StrictnessCheck {
 public:
  explicit StrictnessCheck(const std::string& origin) : origin_(origin) {}

  bool operator()(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > kMaxDepth) fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    switch (event) {
      case Event::object_start:
        keys_.emplace_back();
        break;
      case Event::object_end:
        keys_.pop_back();
        break;
      case Event::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys_.back().insert(key).second)
          fail("the key '" + key.substr(0, kExcerptBytes) + "' occurs twice");
        break;
      }
      default:
        break;
    }
    return true;
  }

 private:
  [[noreturn]] void fail(std::string found) const {
    throw Error(ErrorKind::malformed, {.where = origin_, .found = std::move(found)});
  }

  const std::string& origin_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& origin) {
  // nlohmann's lexer takes a NUL for the end of its input, and what follows would pass unread.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw Error(ErrorKind::malformed, {.where = origin,
                                       .found = "a NUL at byte " + std::to_string(nul + 1),
                                       .expected = "a JSON document"});
  }
  try {
    return nlohmann::json::parse(text, StrictnessCheck(origin));
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(ErrorKind::malformed, {.where = origin,
                                       .found = "not JSON at byte " + std::to_string(error.byte),
                                       .expected = "a JSON document",
                                       .advice = "the file may be truncated; fetch it again"});
  } catch (const nlohmann::json::out_of_range& error) {
    throw Error(ErrorKind::malformed, {.where = origin, .found = "a number outside the range of a double"});
  }
}

std::vector<std::string> key_order(std::string_view text, std::string_view field) {
  std::vector<std::string> keys;
  bool inside = false;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    if (event != nlohmann::json::parse_event_t::key) return true;
    if (depth == 1) inside = parsed.get_ref<const std::string&>() == field;
    if (depth == 2 && inside) keys.push_back(parsed.get<std::string>());
    return true;
  };
  const nlohmann::json document = nlohmann::json::parse(text, watch);
  return document.contains(field) ? keys : std::vector<std::string>{};
}

JsonFields::JsonFields(const nlohmann::json& object, std::string origin, std::string path)
    : object_(object), origin_(std::move(origin)), path_(std::move(path)) {
  if (object.is_object()) return;
  throw Error(ErrorKind::malformed, {.where = path_.empty() ? origin_ : origin_ + ": " + path_,
                                     .found = excerpt(object),
                                     .expected = "a JSON object"});
}

std::string JsonFields::where(std::string_view key) const {
  std::string name = origin_ + ": ";
  if (!path_.empty()) name += path_ + ".";
  return name.append(key);
}

bool JsonFields::has(std::string_view key) const {
  return present(key) != nullptr;
}

const nlohmann::json* JsonFields::present(std::string_view key) const {
  const auto found = object_.find(std::string(key));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::wrong_type(std::string_view key, const nlohmann::json& value, const char* expected) const {
  throw Error(ErrorKind::malformed, {.where = where(key), .found = excerpt(value), .expected = expected});
}

std::optional<std::uint64_t> JsonFields::unsigned_integer(std::string_view key) const {
  const nlohmann::json* value = present(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_unsigned()) wrong_type(key, *value, "a whole number, not negative");
  return value->get<std::uint64_t>();
}

std::optional<double> JsonFields::number(std::string_view key) const {
  const nlohmann::json* value = present(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>())) wrong_type(key, *value, "a finite number");
  return value->get<double>();
}

std::optional<bool> JsonFields::boolean(std::string_view key) const {
  const nlohmann::json* value = present(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong_type(key, *value, "true or false");
  return value->get<bool>();
}

std::optional<std::string> JsonFields::string(std::string_view key) const {
  const nlohmann::json* value = present(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong_type(key, *value, "a string");
  return value->get<std::string>();
}

std::optional<JsonFields> JsonFields::object(std::string_view key) const {
  const nlohmann::json* value = present(key);
  if (value == nullptr) return std::nullopt;
  return JsonFields(*value, origin_, path_.empty() ? std::string(key) : path_ + "." + std::string(key));
}

const nlohmann::json* JsonFields::array(std::string_view key) const {
  const nlohmann::json* value = present(key);
  if (value != nullptr && !value->is_array()) wrong_type(key, *value, "a list");
  return value;
}

std::string excerpt(const nlohmann::json& value) {
  if (value.is_structured() && value.size() > 8) return value.is_array() ? "a long list" : "a large object";
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kExcerptBytes) text = text.substr(0, kExcerptBytes) + "…";
  return text;
}

}  // namespace assay::formats
