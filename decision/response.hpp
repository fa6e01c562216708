#pragma once

#include <string>

#include "decision/decision.hpp"
#include "decision/json_writer.hpp"

namespace assay::decision {

/// The answers alone, probabilities rounded to two decimals (kev/api.py, `to_answers`):
///   noul   {"type", "noul"}
///   choice {"type", "choice", "confidence", "probabilities"}
///   score  {"type", "score", "legend", "probabilities", "confidence"}
std::string answers_json(const Decision& decision, JsonStyle style = JsonStyle::compact);

/// The body of a System One response (kev/serve.py, Server._body): {"model", "answers", "usage":
/// {"input_tokens", "output_tokens"}, "latency_ms"}. With `raw`, an extension of ours behind these: "raw",
/// per question its "logits" (temperature applied) and "probabilities" as computed, digits enough to give
/// every value back.
std::string response_json(const Decision& decision, bool raw = false);

}  // namespace assay::decision
