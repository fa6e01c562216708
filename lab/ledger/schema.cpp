#include "lab/ledger/schema.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "base/error.hpp"
#include "lab/embedded.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 64;
constexpr std::size_t kLongestShown = 80;

constexpr auto kKeywords =
    std::to_array<std::string_view>({"$schema",  "$defs",        "$ref",
                                     "title",    "description",  "type",
                                     "enum",     "const",        "pattern",
                                     "items",    "minimum",      "exclusiveMinimum",
                                     "required", "properties",   "allOf",
                                     "anyOf",    "not",          "if",
                                     "then",     "else",         "additionalProperties",
                                     "minItems", "minProperties"});

/// What a schema demands and a value does not meet.
struct Complaint {
  std::string path;
  std::string found;
  std::string expected;
};

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kLongestShown) text = text.substr(0, kLongestShown) + "…";
  return text;
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "number") return value.is_number();
  throw Error(ErrorKind::unsupported, {"schema, type", std::string(type)});
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

bool matches(const std::string& pattern, const std::string& text) {
  int code = 0;
  PCRE2_SIZE offset = 0;
  const std::unique_ptr<pcre2_code, FreeCode> compiled(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_DOLLAR_ENDONLY, &code,
                    &offset, nullptr));
  if (!compiled) throw Error(ErrorKind::malformed, {"schema, pattern", "'" + pattern + "'", "a pattern"});
  const std::unique_ptr<pcre2_match_data, FreeMatch> data(pcre2_match_data_create(1, nullptr));
  if (!data) throw std::bad_alloc();
  return pcre2_match(compiled.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, data.get(),
                     nullptr) >= 0;
}

/// Walks one value beside its schema.
class Checker {
 public:
  explicit Checker(const Json& root) : root_(root) {}

  std::optional<Complaint> check(const Json& schema, const Json& value, const std::string& path) const {
    using Step = std::optional<Complaint> (Checker::*)(const Json&, const Json&, const std::string&) const;
    constexpr std::array<Step, 6> kSteps{&Checker::reference, &Checker::simple,  &Checker::bounds,
                                         &Checker::object,    &Checker::members, &Checker::combined};
    for (const Step step : kSteps) {
      if (auto complaint = (this->*step)(schema, value, path)) return complaint;
    }
    return std::nullopt;
  }

 private:
  std::optional<Complaint> reference(const Json& schema, const Json& value, const std::string& path) const {
    if (!schema.contains("$ref")) return std::nullopt;
    const std::string target = schema["$ref"].get<std::string>();
    return check(root_.at(Json::json_pointer(target.substr(1))), value, path);
  }

  static Complaint complaint(const std::string& path, const Json& value, std::string expected) {
    return {path, shown(value), std::move(expected)};
  }

  std::optional<Complaint> simple(const Json& schema, const Json& value, const std::string& path) const {
    if (schema.contains("type") && !has_type(value, schema["type"].get<std::string>())) {
      return complaint(path, value, "a value of type " + schema["type"].get<std::string>());
    }
    if (schema.contains("const") && value != schema["const"]) {
      return complaint(path, value, schema["const"].dump());
    }
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      return complaint(path, value, "one of " + schema["enum"].dump());
    }
    if (schema.contains("pattern") && value.is_string() &&
        !matches(schema["pattern"].get<std::string>(), value.get<std::string>())) {
      return complaint(path, value, "text that matches " + schema["pattern"].get<std::string>());
    }
    return std::nullopt;
  }

  std::optional<Complaint> bounds(const Json& schema, const Json& value, const std::string& path) const {
    if (schema.contains("minimum") && value.is_number() && value < schema["minimum"]) {
      return complaint(path, value, "at least " + schema["minimum"].dump());
    }
    if (schema.contains("exclusiveMinimum") && value.is_number() && value <= schema["exclusiveMinimum"]) {
      return complaint(path, value, "more than " + schema["exclusiveMinimum"].dump());
    }
    if (schema.contains("minItems") && value.is_array() && value.size() < schema["minItems"]) {
      return complaint(path, value, fmt::format("at least {} items", schema["minItems"].dump()));
    }
    if (schema.contains("minProperties") && value.is_object() && value.size() < schema["minProperties"]) {
      return complaint(path, value, fmt::format("at least {} fields", schema["minProperties"].dump()));
    }
    return std::nullopt;
  }

  std::optional<Complaint> object(const Json& schema, const Json& value, const std::string& path) const {
    if (!value.is_object()) return std::nullopt;
    if (schema.contains("required")) {
      for (const Json& name : schema["required"]) {
        if (!value.contains(name.get<std::string>())) {
          return Complaint{path, fmt::format("no field '{}'", name.get<std::string>()), "that field"};
        }
      }
    }
    if (schema.value("additionalProperties", true)) return std::nullopt;
    for (const auto& [name, item] : value.items()) {
      if (!schema["properties"].contains(name)) {
        return Complaint{path, fmt::format("the unknown field '{}'", name), "only fields of the schema"};
      }
    }
    return std::nullopt;
  }

  std::optional<Complaint> members(const Json& schema, const Json& value, const std::string& path) const {
    if (schema.contains("properties") && value.is_object()) {
      for (const auto& [name, part] : schema["properties"].items()) {
        if (!value.contains(name)) continue;
        if (auto found = check(part, value[name], path.empty() ? name : path + "." + name)) return found;
      }
    }
    if (schema.contains("items") && value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (auto found = check(schema["items"], value[i], fmt::format("{}[{}]", path, i))) return found;
      }
    }
    return std::nullopt;
  }

  std::optional<Complaint> combined(const Json& schema, const Json& value, const std::string& path) const {
    if (schema.contains("allOf")) {
      for (const Json& part : schema["allOf"]) {
        if (auto found = check(part, value, path)) return found;
      }
    }
    if (schema.contains("anyOf")) {
      std::optional<Complaint> last;
      for (const Json& part : schema["anyOf"]) {
        last = check(part, value, path);
        if (!last) break;
      }
      if (last) return last;
    }
    if (schema.contains("not") && !check(schema["not"], value, path)) {
      return complaint(path, value, "a value that does not meet " + schema["not"].dump());
    }
    if (schema.contains("if")) {
      const char* branch = check(schema["if"], value, path) ? "else" : "then";
      if (schema.contains(branch)) return check(schema[branch], value, path);
    }
    return std::nullopt;
  }

  const Json& root_;
};

/// Every keyword of the schema is one that Checker enforces, and every reference leads somewhere.
void check_keywords(const Json& root, const Json& schema) {
  if (!schema.is_object()) throw Error(ErrorKind::malformed, {"schema", shown(schema), "a JSON object"});
  for (const auto& [keyword, value] : schema.items()) {
    if (std::find(kKeywords.begin(), kKeywords.end(), keyword) == kKeywords.end()) {
      throw Error(ErrorKind::unsupported, {"schema", "the keyword '" + keyword + "'"});
    }
    if (keyword == "$ref") {
      const std::string target = value.is_string() ? value.get<std::string>() : "";
      if (!target.starts_with("#/") || !root.contains(Json::json_pointer(target.substr(1)))) {
        throw Error(ErrorKind::malformed, {"schema, $ref", shown(value), "a place in the document"});
      }
    }
    if (keyword == "properties" || keyword == "$defs") {
      for (const auto& [name, part] : value.items()) check_keywords(root, part);
    } else if (keyword == "allOf" || keyword == "anyOf") {
      for (const Json& part : value) check_keywords(root, part);
    } else if (keyword == "items" || keyword == "not" || keyword == "if" || keyword == "then" ||
               keyword == "else") {
      check_keywords(root, value);
    }
  }
}

/// Refuses what nlohmann's parser would pass over: a second value for one key, and nesting without end.
class Strictness {
 public:
  explicit Strictness(const std::string& file) : file_(file) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) {
      throw Error(ErrorKind::malformed,
                  {file_, "values nested too deeply", fmt::format("{} at most", kDeepest)});
    }
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second) {
      throw Error(ErrorKind::malformed,
                  {file_, "the key " + shown(parsed) + " twice in one object", "it once"});
    }
    return true;
  }

 private:
  std::string file_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

JsonSchema::JsonSchema(std::string_view text) : root_(parse_json_strictly(text, "schema")) {
  check_keywords(root_, root_);
}

namespace {

void check_part(const Json& root, const Json& part, const Json& value, const std::string& file) {
  if (const auto found = Checker(root).check(part, value, "")) {
    throw Error(ErrorKind::malformed,
                {found->path.empty() ? file : file + ", " + found->path, found->found, found->expected});
  }
}

}  // namespace

void JsonSchema::check(const Json& value, const std::string& file) const {
  check_part(root_, root_, value, file);
}

void JsonSchema::check_definition(const std::string& name, const Json& value, const std::string& file) const {
  check_part(root_, root_.at("$defs").at(name), value, file);
}

Json parse_json_strictly(std::string_view text, const std::string& file) {
  try {
    Strictness strictness(file);
    return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
      return strictness(depth, event, parsed);
    });
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::malformed, {file, error.what(), "JSON"});
  }
}

std::string to_json_text(const Json& value, const std::string& file) {
  try {
    return value.dump(1) + "\n";
  } catch (const Json::exception&) {
    throw Error(ErrorKind::malformed, {file, "text that is no UTF-8", "UTF-8"});
  }
}

std::string_view experiment_schema_text() {
  return embedded::kExperimentSchema;
}

const JsonSchema& experiment_schema() {
  static const JsonSchema kSchema(experiment_schema_text());
  return kSchema;
}

}  // namespace assay::lab
