#include "ops/matmul/words.hpp"

#include <bit>

#include "base/dtype.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/words.cpp"
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

void RoundToBf16(const float* values, std::size_t count, std::uint32_t* words) {
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
    hn::StoreU(hn::Or(hn::ShiftRight<16>(low), high), d, words + i / 2);
  }
  for (; i < count; i += 2) {
    const std::uint32_t low = float_to_bf16(values[i]);
    const std::uint32_t high = i + 1 < count ? float_to_bf16(values[i + 1]) : 0;
    words[i / 2] = low | (high << 16);
  }
}

void RoundThroughBf16(const float* values, std::size_t count, std::uint32_t* words) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::ScalableTag<float> df;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = RoundBits(d, hn::BitCast(d, hn::LoadU(df, values + i)));
    hn::StoreU(bits, d, words + i);
  }
  for (; i < count; ++i) words[i] = std::uint32_t{float_to_bf16(values[i])} << 16;
}

void InterleaveFour(const std::uint32_t* rows, std::size_t stride, std::size_t count, std::size_t width,
                    std::uint32_t* out) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::Full128<std::uint32_t> d;
  const hn::Full128<std::uint64_t> d64;
  for (; i + 4 <= count; i += 4) {
    const auto a = hn::LoadU(d, rows + i);
    const auto b = hn::LoadU(d, rows + stride + i);
    const auto c = hn::LoadU(d, rows + 2 * stride + i);
    const auto e = hn::LoadU(d, rows + 3 * stride + i);
    const auto ab01 = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
    const auto ab23 = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
    const auto ce01 = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
    const auto ce23 = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab01, ce01)), d, out + i * width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab01, ce01)), d, out + (i + 1) * width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab23, ce23)), d, out + (i + 2) * width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab23, ce23)), d, out + (i + 3) * width);
  }
#endif
  for (; i < count; ++i) {
    for (std::size_t row = 0; row < 4; ++row) out[i * width + row] = rows[row * stride + i];
  }
}

}  // namespace assay::ops::panels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops::panels {

HWY_EXPORT(RoundToBf16);
HWY_EXPORT(RoundThroughBf16);
HWY_EXPORT(InterleaveFour);

void round_to_bf16(const float* values, std::size_t count, std::uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(RoundToBf16)(values, count, words);
}

void round_through_bf16(const float* values, std::size_t count, std::uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(RoundThroughBf16)(values, count, words);
}

void interleave_four(const std::uint32_t* rows, std::size_t stride, std::size_t count, std::size_t width,
                     std::uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(InterleaveFour)(rows, stride, count, width, out);
}

}  // namespace assay::ops::panels
#endif
