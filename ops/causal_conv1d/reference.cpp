#include "ops/causal_conv1d/causal_conv1d.hpp"
#include "ops/causal_conv1d/window.hpp"
#include "ops/scalar_math.hpp"

namespace assay::ops {
namespace {

void convolve(const CausalConv1dArgs& args, const SequenceSegment& segment, std::size_t channel,
              std::size_t count) {
  const ConvInputs inputs(args, segment, channel);
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
  for_each_conv_block(context, args,
                      [&](const SequenceSegment& segment, std::size_t channel, std::size_t count) {
                        convolve(args, segment, channel, count);
                      });
}

}  // namespace assay::ops
