#include "decision/answer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace assay::decision {

std::vector<double> softmax(std::span<const float> logits) {
  std::vector<double> result(logits.begin(), logits.end());
  if (result.empty()) return result;
  const double largest = *std::max_element(result.begin(), result.end());
  double sum = 0;
  for (double& value : result) {
    value = std::exp(value - largest);
    sum += value;
  }
  for (double& value : result) value /= sum;
  return result;
}

std::size_t argmax(std::span<const double> values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

double choice_confidence(std::span<const double> probabilities) {
  if (probabilities.size() == 1) return 1.0;
  const double uniform = 1.0 / static_cast<double>(probabilities.size());
  return (probabilities[argmax(probabilities)] - uniform) / (1.0 - uniform);
}

double score_confidence(std::span<const double> probabilities) {
  const std::size_t mode = argmax(probabilities);
  double distance = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    distance += probabilities[i] * static_cast<double>(i > mode ? i - mode : mode - i);
  }
  return 1.0 - distance / static_cast<double>(probabilities.size() - 1);
}

Answer make_answer(QuestionType type, std::span<const double> probabilities) {
  Answer answer;
  answer.mode = argmax(probabilities);
  switch (type) {
    case QuestionType::noul:
      answer.value = probabilities[1];
      break;
    case QuestionType::choice:
      answer.confidence = choice_confidence(probabilities);
      break;
    case QuestionType::score:
      for (std::size_t i = 0; i < probabilities.size(); ++i)
        answer.value += static_cast<double>(i) * probabilities[i];
      answer.confidence = score_confidence(probabilities);
      break;
  }
  return answer;
}

double round_to_hundredths(double value) {
  // std::to_chars with a precision rounds the exact value, ties to even, whatever the locale.
  std::array<char, 352> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 2).ptr;
  double rounded = 0;
  std::from_chars(text.data(), end, rounded);
  return rounded;
}

}  // namespace assay::decision
