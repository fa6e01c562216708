#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "decision/request.hpp"

namespace assay::decision {

/// What a question's probabilities say (jaredpalmer/kev, kev/api.py, `to_answers`). Full precision; rounding
/// is the wire's.
struct Answer {
  double value = 0;       ///< noul: probability of yes; score: the mean level Σ i·p_i; choice: unused
  std::size_t mode = 0;   ///< index of the largest probability, the first of equals
  double confidence = 0;  ///< choice, score; see the two functions below
};

/// softmax in fp64 of fp32 logits, largest subtracted, summed in order. Empty for no logits.
std::vector<double> softmax(std::span<const float> logits);

/// Index of the largest value, the first of equals; 0 for none.
std::size_t argmax(std::span<const double> values);

/// (p_max − 1/K) / (1 − 1/K): 0 for a uniform choice, 1 for a certain one and for K = 1.
double choice_confidence(std::span<const double> probabilities);

/// 1 − E|level − mode| / (L − 1), for two levels or more.
double score_confidence(std::span<const double> probabilities);

Answer make_answer(QuestionType type, std::span<const double> probabilities);

/// Python's round(value, 2): the double nearest to the decimal of two places nearest to the value, ties
/// (exact ones) to the even digit (CPython, Objects/floatobject.c, double_round).
double round_to_hundredths(double value);

}  // namespace assay::decision
