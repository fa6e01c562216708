#include <algorithm>
#include <array>

#include "ops/causal_conv1d/causal_conv1d.hpp"
#include "ops/causal_conv1d/window.hpp"
#include "ops/scalar_math.hpp"

namespace assay::ops {
namespace {

constexpr std::size_t kChannelBlock = 256;
constexpr std::array<float, kChannelBlock> kZeros{};

void convolve(const CausalConv1dArgs& args, const SequenceSegment& segment, std::size_t channel,
              std::size_t count) {
  const ConvInputs inputs(args, segment, channel, kZeros.data());
  for (std::size_t t = 0; t < segment.length; ++t) {
    float* y = args.y.row(segment.first + t) + channel;
    for (std::size_t c = 0; c < count; ++c) {
      float sum = 0;
      for (std::size_t j = 0; j < args.width; ++j) {
        sum += args.w[j * args.channels + channel + c] * inputs.row(t + j)[c];
      }
      y[c] = silu(sum);
    }
  }
  store_final(args, segment, inputs, channel, count);
}

}  // namespace

void causal_conv1d_reference(const Context& context, const CausalConv1dArgs& args) {
  check_causal_conv1d(args);
  const std::size_t blocks = (args.channels + kChannelBlock - 1) / kChannelBlock;
  context.threads.parallel_for(args.segments.size() * blocks, [&](std::size_t index, std::size_t /*worker*/) {
    const std::size_t channel = index % blocks * kChannelBlock;
    convolve(args, args.segments[index / blocks], channel, std::min(kChannelBlock, args.channels - channel));
  });
}

}  // namespace assay::ops
