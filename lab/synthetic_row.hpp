#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backbone/backbone.hpp"
#include "formats/model_config.hpp"

namespace assay::lab {

constexpr std::size_t kQuestionTokens = 32;  ///< of each question of a synthetic row

/// The segments of a decision pass on arbitrary tokens: a state of `row_tokens` − 32 tokens and `questions`
/// segments of 32 tokens that see it, each of which reads out its last token and four options.
class SyntheticRow {
 public:
  /// `row_tokens` is over 32.
  SyntheticRow(const formats::ModelConfig& config, std::size_t row_tokens, std::size_t questions);
  SyntheticRow(const SyntheticRow&) = delete;
  SyntheticRow& operator=(const SyntheticRow&) = delete;

  std::span<const backbone::Segment> segments() const { return segments_; }

 private:
  std::vector<std::int32_t> state_;
  std::vector<std::vector<std::int32_t>> questions_;
  std::vector<backbone::Segment> segments_;
};

}  // namespace assay::lab
