#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "decision/json_value.hpp"

namespace assay::decision {

enum class QuestionType { noul, choice, score };

std::string_view to_string(QuestionType type);

/// One question, its contents already the text that the model reads.
struct Question {
  std::string id;  ///< the caller's; never read by the model
  QuestionType type = QuestionType::noul;
  std::string instructions;
  std::vector<std::string> options;  ///< in the order read: "no", "yes" for a noul; one or more
  std::vector<std::string> keys;     ///< what the answer calls them: "false", "true"; names; "0", "1", …
};

/// A System One request (`POST /v1/systemone`).
struct Request {
  std::string model;
  std::string state;
  std::vector<Question> questions;    ///< in the caller's order; one or more
  std::vector<std::string> warnings;  ///< what was accepted but may not be what the caller meant
};

constexpr std::size_t kMostOptions = 255;  ///< of a choice or a score (kev/api.py, MAX_OPTIONS)

/// Reads a request from JSON. The shapes are those of jaredpalmer/kev, kev/api.py: `state` any JSON; `model`
/// a string, "kev-latest" where absent; `questions` an object of one or more id → {type, instructions,
/// criteria}, with `instructions` any JSON and `criteria`
///   - noul: absent, null, or an object with "true" and "false", each any JSON, either absent;
///   - choice: an object of 1 to 255 option names, each with any JSON, null for none;
///   - score: an array of 2 to 255 levels, each any JSON.
///
/// Kev ignores fields that it does not know. Here one inside a question or a noul's criteria is an error, for
/// a misspelt `criteria` would change the answer unseen; one beside `state` is a warning; `assets` (the
/// contract's images) is an error, since the state refers to it. Members that come twice count once, as in
/// Python, and are a warning.
///
/// Throws Error(invalid_argument | limit_exceeded | non_finite | unsupported) whose place is the field's path
/// behind `origin`, as parse_json does.
Request parse_request(std::string_view json, const std::string& origin = "request",
                      const JsonLimits& limits = {});

/// The same from a value already parsed.
Request read_request(const JsonValue& value, const std::string& origin = "request");

}  // namespace assay::decision
