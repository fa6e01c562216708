#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "ops/causal_conv1d/causal_conv1d.hpp"

namespace assay::ops {

/// Longest kernel that the contract allows.
inline constexpr std::size_t kMaxConvWidth = 8;

/// Throws Error(invalid_argument) for a width out of 2 … 8.
void check_causal_conv1d(const CausalConv1dArgs& args);

/// The inputs of one segment seen from `channel` on, counted so that index 0 is the oldest input of the
/// initial state and index width − 1 the segment's first token. `zeros` stands for a missing state.
class ConvInputs {
 public:
  ConvInputs(const CausalConv1dArgs& args, const SequenceSegment& segment, std::size_t channel,
             const float* zeros)
      : history_(args.width - 1),
        tokens_{segment.length == 0 ? args.x.data : args.x.row(segment.first) + channel, args.x.stride},
        initial_{segment.initial != nullptr ? segment.initial + channel : zeros,
                 segment.initial != nullptr ? args.channels : 0} {}

  const float* row(std::size_t index) const {
    return index < history_ ? initial_.row(index) : tokens_.row(index - history_);
  }

 private:
  std::size_t history_;
  Rows<const float> tokens_;
  Rows<const float> initial_;
};

/// Writes the last width − 1 inputs of the segment to its final state, `count` channels from `channel` on.
inline void store_final(const CausalConv1dArgs& args, const SequenceSegment& segment,
                        const ConvInputs& inputs, std::size_t channel, std::size_t count) {
  if (segment.final == nullptr) return;
  for (std::size_t r = 0; r + 1 < args.width; ++r) {
    std::copy_n(inputs.row(segment.length + r), count, segment.final + r * args.channels + channel);
  }
}

}  // namespace assay::ops
