#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

// Tiles are arrays of vectors, which the scalable instruction sets cannot hold; their CPUs also run NEON.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/conv1d/vector.cpp"
#include <hwy/foreach_target.h>

#include "ops/conv1d/taps.hpp"
#include "ops/matmul/words.hpp"
#include "ops/snake/snake-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::ops {
namespace HWY_NAMESPACE {
namespace {

using panels::kColumns;
using taps::TileCall;

constexpr std::size_t kTileLanes = hn::MaxLanes(FloatTag());
// As in matmul/vector.cpp: two vectors wide, and as high as the registers hold beside w and one x.
#if HWY_TARGET == HWY_NEON || HWY_TARGET <= HWY_AVX3
constexpr std::size_t kMaxRows = 12;
#else
constexpr std::size_t kMaxRows = 6;
#endif

struct FloatStep {
  static constexpr std::size_t kXValues = 1;

  explicit HWY_INLINE FloatStep(const float* w) : w_(hn::Load(FloatTag(), w)) {}
  HWY_INLINE FloatVector multiply_add(const float* x, FloatVector sum) const {
    return hn::MulAdd(hn::Set(FloatTag(), x[0]), w_, sum);
  }

 private:
  FloatVector w_;
};

/// A pair of bf16 is a 32-bit lane: shifted or masked, each is an fp32.
struct Bf16Step {
  static constexpr std::size_t kXValues = 2;

  explicit HWY_INLINE Bf16Step(const float* w) {
    const hn::RebindToUnsigned<FloatTag> du;
    const auto pairs = hn::BitCast(du, hn::Load(FloatTag(), w));
    first_ = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pairs));
    second_ = hn::BitCast(FloatTag(), hn::And(pairs, hn::Set(du, 0xffff0000u)));
  }
  HWY_INLINE FloatVector multiply_add(const float* x, FloatVector sum) const {
    const FloatTag d;
    return hn::MulAdd(hn::Set(d, x[1]), second_, hn::MulAdd(hn::Set(d, x[0]), first_, sum));
  }

 private:
  FloatVector first_;
  FloatVector second_;
};

template <class Step>
HWY_INLINE void add_row(const Step& left, const Step& right, const float* x, FloatVector& left_sum,
                        FloatVector& right_sum) {
  left_sum = left.multiply_add(x, left_sum);
  right_sum = right.multiply_add(x, right_sum);
}

/// Two vectors of columns from `column` on. The rows are a parameter pack so that every sum is a register at
/// any optimisation level that inlines.
template <class Step, std::size_t... R>
HWY_INLINE void tile_pass(std::index_sequence<R...> /*rows*/, const TileCall& call, std::size_t column) {
  constexpr FloatTag d;
  constexpr std::size_t kRows = sizeof...(R);
  const float* HWY_RESTRICT w = reinterpret_cast<const float*>(call.w) + column;
  float* HWY_RESTRICT sums = call.sums + column;
  FloatVector left[kRows] = {(static_cast<void>(R), hn::Zero(d))...};
  FloatVector right[kRows] = {(static_cast<void>(R), hn::Zero(d))...};
  if (call.resume) {
    ((left[R] = hn::Load(d, sums + R * kColumns)), ...);
    ((right[R] = hn::Load(d, sums + R * kColumns + kTileLanes)), ...);
  }
  const std::size_t stride = call.row_bytes / sizeof(float);
  std::size_t step = 0;
  for (std::size_t tap = 0; tap < call.taps; ++tap) {
    const float* HWY_RESTRICT x = reinterpret_cast<const float*>(call.x + tap * call.tap_bytes);
    for (std::size_t s = 0; s < call.steps; ++s, ++step) {
      const Step left_w(w);
      const Step right_w(w + kTileLanes);
      (add_row(left_w, right_w, x + R * stride, left[R], right[R]), ...);
      panels::prefetch(call.ahead, step);
      x += Step::kXValues;
      w += kColumns;
    }
  }
  (hn::Store(left[R], d, sums + R * kColumns), ...);
  (hn::Store(right[R], d, sums + R * kColumns + kTileLanes), ...);
}

template <class Step, std::size_t kRows>
void tile_of_rows(const TileCall& call) {
  for (std::size_t column = 0; column < kColumns; column += 2 * kTileLanes) {
    tile_pass<Step>(std::make_index_sequence<kRows>(), call, column);
  }
}

using TileFunction = void (*)(const TileCall&);

template <class Step, std::size_t... R>
constexpr std::array<TileFunction, sizeof...(R)> tiles_by_rows(std::index_sequence<R...> /*rows*/) {
  return {tile_of_rows<Step, R + 1>...};
}

template <class Step>
void tile(const TileCall& call) {
  static constexpr auto kTiles = tiles_by_rows<Step>(std::make_index_sequence<kMaxRows>());
  kTiles[call.rows - 1](call);
}

HWY_INLINE FloatVector prepared_vector(const taps::PrepareCall& call, std::size_t c, std::size_t count) {
  const FloatTag d;
  const bool whole = count == hn::Lanes(d);
  const auto load = [&](const float* from)
                        HWY_ATTR { return whole ? hn::LoadU(d, from + c) : load_part(d, from + c, count); };
  const FloatVector x = load(call.x);
  return call.input ? snake(d, x, load(call.input.alpha), load(call.input.inverse_beta)) : x;
}

}  // namespace

void prepare_floats(const taps::PrepareCall& call, std::size_t first, std::size_t count, float* out) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t c = 0;
  for (; c + lanes <= count; c += lanes) hn::StoreU(prepared_vector(call, first + c, lanes), d, out + c);
  if (c < count) store_part(prepared_vector(call, first + c, count - c), d, out + c, count - c);
}

void finish_columns(const taps::FinishCall& call) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t c = 0; c < call.columns; c += lanes) {
    const std::size_t count = call.columns - c < lanes ? call.columns - c : lanes;
    const bool whole = count == lanes;
    const auto load = [&](const float* from)
                          HWY_ATTR { return whole ? hn::LoadU(d, from + c) : load_part(d, from + c, count); };
    FloatVector value = hn::LoadU(d, call.sums + c);
    if (call.bias != nullptr) value = hn::Add(value, load(call.bias));
    if (call.output) value = snake(d, value, load(call.output.alpha), load(call.output.inverse_beta));
    if (call.residual != nullptr) value = hn::Add(value, load(call.residual));
    if (whole) {
      hn::StoreU(value, d, call.y + c);
    } else {
      store_part(value, d, call.y + c, count);
    }
  }
}

const taps::Kernel& conv_float_kernel() {
  static constexpr taps::Kernel kernel = {.layout = &panels::kFloatLayout,
                                          .element = taps::Element::fp32,
                                          .max_rows = kMaxRows,
                                          .row_multiple = 1,
                                          .block_steps = 256,
                                          .tile = tile<FloatStep>};
  return kernel;
}

const taps::Kernel& conv_widened_kernel() {
  static constexpr taps::Kernel kernel = {.layout = &panels::kBf16Layout,
                                          .element = taps::Element::fp32_rounded_to_bf16,
                                          .max_rows = kMaxRows,
                                          .row_multiple = 1,
                                          .block_steps = 256,
                                          .tile = tile<Bf16Step>};
  return kernel;
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops {

HWY_EXPORT(prepare_floats);
HWY_EXPORT(finish_columns);
HWY_EXPORT(conv_float_kernel);
HWY_EXPORT(conv_widened_kernel);

namespace taps {
namespace {

/// Channels that pass through the L1 cache on their way to another element type.
constexpr std::size_t kChannelsAtOnce = 512;

/// Channels [first, first + count) of x', by way of fp32 in the L1 cache.
void prepare_rounded(const PrepareCall& call, std::size_t first, std::size_t count) {
  alignas(64) std::array<float, kChannelsAtOnce> values;
  HWY_DYNAMIC_DISPATCH(prepare_floats)(call, first, count, values.data());
  if (call.element == Element::bf16) {
    panels::round_to_bf16(values.data(), count, reinterpret_cast<std::uint32_t*>(call.out) + first / 2);
  } else {
    panels::round_through_bf16(values.data(), count, reinterpret_cast<std::uint32_t*>(call.out) + first);
  }
}

}  // namespace

void prepare_row(const PrepareCall& call) {
  const std::size_t channels = call.x != nullptr ? call.channels : 0;
  if (call.element == Element::fp32) {
    if (channels != 0)
      HWY_DYNAMIC_DISPATCH(prepare_floats)(call, 0, channels, reinterpret_cast<float*>(call.out));
  } else {
    for (std::size_t first = 0; first < channels; first += kChannelsAtOnce) {
      prepare_rounded(call, first, std::min(kChannelsAtOnce, channels - first));
    }
  }
  // A pair that begins with the last channel is whole.
  const std::size_t written =
      call.element == Element::bf16 ? (channels + 1) / 2 * sizeof(std::uint32_t) : channels * sizeof(float);
  std::memset(call.out + written, 0, call.bytes - written);
}

void finish_row(const FinishCall& call) {
  HWY_DYNAMIC_DISPATCH(finish_columns)(call);
}

const Kernel& vector_kernel() {
  return HWY_DYNAMIC_DISPATCH(conv_float_kernel)();
}

const Kernel& vector_bf16_kernel() {
  return HWY_DYNAMIC_DISPATCH(conv_widened_kernel)();
}

}  // namespace taps
}  // namespace assay::ops
#endif
