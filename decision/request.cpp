#include "decision/request.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "decision/flat_text.hpp"

namespace assay::decision {
namespace {

constexpr std::array<std::string_view, 3> kTypeNames = {"noul", "choice", "score"};

[[noreturn]] void refuse(std::string where, std::string found, std::string expected,
                         std::string advice = {}) {
  throw Error(ErrorKind::invalid_argument,
              {std::move(where), std::move(found), std::move(expected), std::move(advice)});
}

const JsonValue& required(const JsonValue& object, std::string_view name, const std::string& path,
                          std::string_view expected) {
  const JsonValue* value = object.find(name);
  if (value == nullptr) {
    refuse(field_path(path, name), "missing", std::string(expected),
           fmt::format("add the field \"{}\"", name));
  }
  return *value;
}

const JsonValue::Object& require_object(const JsonValue& value, const std::string& path,
                                        std::string_view expected) {
  const auto* object = value.object();
  if (object == nullptr) refuse(path, std::string(value.kind()), std::string(expected));
  return *object;
}

bool known(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void refuse_unknown(const JsonValue::Object& object, const std::string& path,
                    std::initializer_list<std::string_view> names) {
  for (const auto& [name, value] : object) {
    if (known(name, names)) continue;
    refuse(field_path(path, name), "an unknown field",
           fmt::format("only {}", fmt::join(names.begin(), names.end(), ", ")),
           "remove it or correct its name: it would not be read");
  }
}

QuestionType read_type(const JsonValue& value, const std::string& path) {
  const auto* name = value.string();
  const std::string expected = "\"noul\", \"choice\" or \"score\"";
  if (name == nullptr) refuse(path, std::string(value.kind()), expected);
  const auto place = std::find(kTypeNames.begin(), kTypeNames.end(), *name);
  if (place == kTypeNames.end()) refuse(path, in_quotes(*name), expected);
  return static_cast<QuestionType>(place - kTypeNames.begin());
}

/// `noun` is "option" or "level".
void check_count(std::size_t count, std::size_t least, const std::string& path, std::string_view noun) {
  if (count >= least && count <= kMostOptions) return;
  refuse(path, counted(count, noun), fmt::format("{} to {}", least, kMostOptions),
         count < least
             ? fmt::format("add {}", counted(least - count, noun))
             : fmt::format("leave out {}, or ask in several questions", counted(count - kMostOptions, noun)));
}

void read_noul(const JsonValue* criteria, const std::string& path, Question& question) {
  if (criteria != nullptr && !criteria->is_null()) {
    refuse_unknown(require_object(*criteria, path, "an object with \"true\" and \"false\", or null"), path,
                   {"true", "false"});
  }
  const auto describe = [&](std::string_view key) { return criteria ? criteria->find(key) : nullptr; };
  question.options = {labelled("no", describe("false")), labelled("yes", describe("true"))};
  question.keys = {"false", "true"};
}

void read_choice(const JsonValue& criteria, const std::string& path, Question& question) {
  const auto& options =
      require_object(criteria, path, "an object of option names, each with a description or null");
  check_count(options.size(), 1, path, "option");
  for (const auto& [name, description] : options) {
    question.options.push_back(labelled(name, &description));
    question.keys.push_back(name);
  }
}

void read_score(const JsonValue& criteria, const std::string& path, Question& question) {
  const auto* levels = criteria.array();
  if (levels == nullptr) refuse(path, std::string(criteria.kind()), "an array of levels, the lowest first");
  check_count(levels->size(), 2, path, "level");
  for (const JsonValue& level : *levels) {
    question.keys.push_back(std::to_string(question.options.size()));
    question.options.push_back(flat_text(level));
  }
}

Question read_question(const std::string& id, const JsonValue& value, const std::string& path) {
  const auto& fields = require_object(value, path, "an object with type, instructions and criteria");
  refuse_unknown(fields, path, {"type", "instructions", "criteria"});
  Question question;
  question.id = id;
  question.type =
      read_type(required(value, "type", path, "\"noul\", \"choice\" or \"score\""), path + ".type");
  question.instructions =
      flat_text(required(value, "instructions", path, "any JSON, as the question to answer"));
  const std::string criteria_path = path + ".criteria";
  switch (question.type) {
    case QuestionType::noul:
      read_noul(value.find("criteria"), criteria_path, question);
      break;
    case QuestionType::choice:
      read_choice(required(value, "criteria", path, "an object of option names"), criteria_path, question);
      break;
    case QuestionType::score:
      read_score(required(value, "criteria", path, "an array of levels"), criteria_path, question);
      break;
  }
  return question;
}

void check_request_fields(const JsonValue::Object& fields, const std::string& origin, Request& request) {
  for (const auto& [name, value] : fields) {
    if (known(name, {"state", "model", "questions"})) continue;
    if (name == "assets") {
      throw Error(ErrorKind::unsupported, {field_path(origin, name), "images", "a state of text and JSON",
                                           "remove them; this model reads text alone"});
    }
    request.warnings.push_back(fmt::format("{}: an unknown field, not read", field_path(origin, name)));
  }
}

std::string read_model(const JsonValue* value, const std::string& path) {
  if (value == nullptr) return "kev-latest";
  const auto* name = value->string();
  if (name == nullptr) refuse(path, std::string(value->kind()), "a string, or no such field");
  return *name;
}

}  // namespace

std::string_view to_string(QuestionType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

Request read_request(const JsonValue& value, const std::string& origin) {
  const auto& fields = require_object(value, origin, "an object with state and questions");
  Request request;
  check_request_fields(fields, origin, request);
  request.model = read_model(value.find("model"), field_path(origin, "model"));
  request.state = flat_text(required(value, "state", origin, "any JSON, as what the questions are about"));
  const std::string path = field_path(origin, "questions");
  const auto& questions = require_object(required(value, "questions", origin, "an object of question ids"),
                                         path, "an object of question ids, each with its question");
  if (questions.empty()) refuse(path, "no questions", "one or more", "add a question");
  request.questions.reserve(questions.size());
  for (const auto& [id, question] : questions) {
    request.questions.push_back(read_question(id, question, field_path(path, id)));
  }
  return request;
}

Request parse_request(std::string_view json, const std::string& origin, const JsonLimits& limits) {
  const JsonDocument document = parse_json(json, origin, limits);
  Request request = read_request(document.root, origin);
  for (const std::string& path : document.duplicates) {
    request.warnings.push_back(fmt::format("{}: given more than once; the last value counts", path));
  }
  return request;
}

}  // namespace assay::decision
