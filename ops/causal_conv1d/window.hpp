#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "ops/causal_conv1d/causal_conv1d.hpp"

namespace assay::ops {

/// Longest kernel that the contract allows.
inline constexpr std::size_t kMaxConvWidth = 8;

/// Channels that one work item takes: a kilobyte of each input row, so the rows under a window stay in the
/// first-level cache from token to token.
inline constexpr std::size_t kConvChannelBlock = 256;
inline constexpr std::array<float, kConvChannelBlock> kConvZeros{};

/// Throws Error(invalid_argument) for a width out of 2 … 8.
void check_causal_conv1d(const CausalConv1dArgs& args);

/// The inputs of one segment seen from `channel` on, counted so that index 0 is the oldest input of the
/// initial state and index width − 1 the segment's first token. A missing state reads as zeros, by the same
/// arithmetic as a state of zeros.
class ConvInputs {
 public:
  ConvInputs(const CausalConv1dArgs& args, const SequenceSegment& segment, std::size_t channel)
      : history_(args.width - 1) {
    if (segment.length != 0) tokens_ = {args.x.row(segment.first) + channel, args.x.stride};
    if (segment.initial != nullptr) initial_ = {segment.initial + channel, args.channels};
  }

  const float* row(std::size_t index) const {
    return index < history_ ? initial_.row(index) : tokens_.row(index - history_);
  }

 private:
  std::size_t history_;
  Rows<const float> tokens_;
  Rows<const float> initial_{kConvZeros.data(), 0};
};

/// Writes the last width − 1 inputs of the segment to its final state, `count` channels from `channel` on.
inline void store_final(const CausalConv1dArgs& args, const SequenceSegment& segment,
                        const ConvInputs& inputs, std::size_t channel, std::size_t count) {
  if (segment.final == nullptr) return;
  for (std::size_t r = 0; r + 1 < args.width; ++r) {
    std::copy_n(inputs.row(segment.length + r), count, segment.final + r * args.channels + channel);
  }
}

/// Runs body(segment, first channel, channels) for every segment and channel block, in parallel.
template <class Body>
void for_each_conv_block(const Context& context, const CausalConv1dArgs& args, const Body& body) {
  check_causal_conv1d(args);
  const std::size_t blocks = (args.channels + kConvChannelBlock - 1) / kConvChannelBlock;
  context.threads.parallel_for(args.segments.size() * blocks, [&](std::size_t index, std::size_t /*worker*/) {
    const std::size_t channel = index % blocks * kConvChannelBlock;
    body(args.segments[index / blocks], channel, std::min(kConvChannelBlock, args.channels - channel));
  });
}

}  // namespace assay::ops
