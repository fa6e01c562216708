#include "ops/matmul/round.hpp"

#include <bit>

#include "base/dtype.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/round.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::ops::panels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// fp32 bits to the nearest bf16's, in the upper half; the lower half is zero.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V RoundBits(D d, V bits) {
  const V upper = hn::Set(d, 0xffff0000u);
  const V odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
  const V rounded = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffu)));
  const V quieted = hn::Or(bits, hn::Set(d, 0x00400000u));
  const V magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
  // Compared as signed, which every target has: a magnitude's top bit is clear.
  const hn::RebindToSigned<D> ds;
  const auto nan = hn::RebindMask(d, hn::Gt(hn::BitCast(ds, magnitude), hn::Set(ds, 0x7f800000)));
  return hn::And(hn::IfThenElse(nan, quieted, rounded), upper);
}

void RoundToBf16(const float* values, std::size_t count, std::uint32_t* pairs) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::ScalableTag<float> df;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    hn::Vec<decltype(df)> even;
    hn::Vec<decltype(df)> odd;
    hn::LoadInterleaved2(df, values + i, even, odd);
    const auto low = RoundBits(d, hn::BitCast(d, even));
    const auto high = RoundBits(d, hn::BitCast(d, odd));
    hn::StoreU(hn::Or(hn::ShiftRight<16>(low), high), d, pairs + i / 2);
  }
  for (; i < count; i += 2) {
    const std::uint32_t low = float_to_bf16(values[i]);
    const std::uint32_t high = i + 1 < count ? float_to_bf16(values[i + 1]) : 0;
    pairs[i / 2] = low | (high << 16);
  }
}

void RoundThroughBf16(const float* values, std::size_t count, float* rounded) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::ScalableTag<float> df;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = RoundBits(d, hn::BitCast(d, hn::LoadU(df, values + i)));
    hn::StoreU(hn::BitCast(df, bits), df, rounded + i);
  }
  for (; i < count; ++i) rounded[i] = bf16_to_float(float_to_bf16(values[i]));
}

}  // namespace assay::ops::panels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops::panels {

HWY_EXPORT(RoundToBf16);
HWY_EXPORT(RoundThroughBf16);

void round_to_bf16(const float* values, std::size_t count, std::uint32_t* pairs) {
  HWY_DYNAMIC_DISPATCH(RoundToBf16)(values, count, pairs);
}

void round_through_bf16(const float* values, std::size_t count, float* rounded) {
  HWY_DYNAMIC_DISPATCH(RoundThroughBf16)(values, count, rounded);
}

}  // namespace assay::ops::panels
#endif
