#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "decision/answer.hpp"
#include "decision/request.hpp"

namespace assay::decision {

struct QuestionDecision {
  std::string id;
  QuestionType type = QuestionType::noul;
  std::vector<std::string> keys;     ///< as in Question
  std::vector<std::string> options;  ///< as in Question; the legend of a score
  std::vector<float> logits;         ///< per option, temperature applied
  std::vector<double> probabilities;
  Answer answer;
};

struct Decision {
  std::string model;  ///< as the request called it
  std::vector<QuestionDecision> questions;
  std::size_t input_tokens = 0;  ///< state and questions, each once
  std::size_t output_tokens =
      0;  ///< of the answers' JSON (kev/api.py, `output_tokens`); nothing is generated
  bool state_from_cache = false;
  double milliseconds = 0;  ///< of the call that answered it, batch mates included
};

}  // namespace assay::decision
