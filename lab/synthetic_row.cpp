#include "lab/synthetic_row.hpp"

namespace assay::lab {
namespace {

std::vector<std::int32_t> arbitrary_tokens(const formats::ModelConfig& config, std::size_t salt,
                                           std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<std::int32_t>((salt * 7919 + i * 104729) % config.vocabulary_size);
  }
  return tokens;
}

}  // namespace

SyntheticRow::SyntheticRow(const formats::ModelConfig& config, std::size_t row_tokens, std::size_t questions)
    : state_(arbitrary_tokens(config, 1, row_tokens - kQuestionTokens)) {
  segments_.push_back({.tokens = state_});
  for (std::size_t q = 0; q < questions; ++q) {
    questions_.push_back(arbitrary_tokens(config, 2 + q, kQuestionTokens));
  }
  for (const std::vector<std::int32_t>& question : questions_) {
    segments_.push_back({.tokens = question, .parent = 0, .readouts = {31, 13, 18, 23, 28}});
  }
}

}  // namespace assay::lab
