#include <algorithm>
#include <array>

#include "ops/causal_conv1d/causal_conv1d.hpp"
#include "ops/causal_conv1d/window.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/causal_conv1d/vector.cpp"
#include <hwy/foreach_target.h>

#include "ops/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::ops {
namespace HWY_NAMESPACE {
namespace {

struct Taps {
  const float* w = nullptr;  ///< of the first tap, from the block's first channel on
  std::size_t stride = 0;    ///< between taps
  std::size_t width = 0;
  std::array<const float*, kMaxConvWidth> x{};  ///< the inputs under the taps
};

HWY_INLINE FloatVector window_sum(FloatTag d, const Taps& taps, std::size_t c) {
  FloatVector sum = hn::Mul(hn::LoadU(d, taps.w + c), hn::LoadU(d, taps.x[0] + c));
  for (std::size_t j = 1; j < taps.width; ++j) {
    sum = hn::MulAdd(hn::LoadU(d, taps.w + j * taps.stride + c), hn::LoadU(d, taps.x[j] + c), sum);
  }
  return sum;
}

HWY_INLINE FloatVector window_sum_part(FloatTag d, const Taps& taps, std::size_t c, std::size_t count) {
  FloatVector sum = hn::Mul(load_part(d, taps.w + c, count), load_part(d, taps.x[0] + c, count));
  for (std::size_t j = 1; j < taps.width; ++j) {
    sum = hn::MulAdd(load_part(d, taps.w + j * taps.stride + c, count), load_part(d, taps.x[j] + c, count),
                     sum);
  }
  return sum;
}

void convolve_token(const Taps& taps, float* y, std::size_t count) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t c = 0;
  for (; c + lanes <= count; c += lanes) hn::StoreU(silu(d, window_sum(d, taps, c)), d, y + c);
  if (c < count) store_part(silu(d, window_sum_part(d, taps, c, count - c)), d, y + c, count - c);
}

}  // namespace

void convolve_block(const CausalConv1dArgs& args, const SequenceSegment& segment, std::size_t channel,
                    std::size_t count) {
  const ConvInputs inputs(args, segment, channel);
  Taps taps{.w = args.w + channel, .stride = args.channels, .width = args.width};
  for (std::size_t t = 0; t < segment.length; ++t) {
    for (std::size_t j = 0; j < args.width; ++j) taps.x[j] = inputs.row(t + j);
    convolve_token(taps, args.y.row(segment.first + t) + channel, count);
  }
  store_final(args, segment, inputs, channel, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops {

HWY_EXPORT(convolve_block);

void causal_conv1d_vector(const Context& context, const CausalConv1dArgs& args) {
  for_each_conv_block(context, args,
                      [&](const SequenceSegment& segment, std::size_t channel, std::size_t count) {
                        HWY_DYNAMIC_DISPATCH(convolve_block)(args, segment, channel, count);
                      });
}

}  // namespace assay::ops
#endif
