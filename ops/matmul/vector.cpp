#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

// Tiles are arrays of vectors, which the scalable instruction sets cannot hold; their CPUs also run NEON.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul/vector.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/matmul/panels.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::ops::panels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

constexpr std::size_t kLanes = hn::MaxLanes(D());
// A tile is two vectors wide, and as high as the registers hold beside its w and one x: AVX-512 and NEON have
// 32, the others 16.
#if HWY_TARGET == HWY_NEON || HWY_TARGET <= HWY_AVX3
constexpr std::size_t kMaxRows = 12;
#else
constexpr std::size_t kMaxRows = 6;
#endif

struct FloatStep {
  static constexpr std::size_t kXValues = 1;

  explicit HWY_INLINE FloatStep(const float* w) : w_(hn::Load(D(), w)) {}
  template <std::size_t kRows>
  HWY_INLINE V MultiplyAdd(const float* x, V sum) const {
    return hn::MulAdd(hn::Set(D(), x[0]), w_, sum);
  }

 private:
  V w_;
};

/// A pair of bf16 is a 32-bit lane: shifted or masked, each is an fp32.
struct Bf16Step {
  static constexpr std::size_t kXValues = 2;

  explicit HWY_INLINE Bf16Step(const float* w) {
    const hn::RebindToUnsigned<D> du;
    const auto pairs = hn::BitCast(du, hn::Load(D(), w));
    first_ = hn::BitCast(D(), hn::ShiftLeft<16>(pairs));
    second_ = hn::BitCast(D(), hn::And(pairs, hn::Set(du, 0xffff0000u)));
  }
  template <std::size_t kRows>
  HWY_INLINE V MultiplyAdd(const float* x, V sum) const {
    return hn::MulAdd(hn::Set(D(), x[kRows]), second_, hn::MulAdd(hn::Set(D(), x[0]), first_, sum));
  }

 private:
  V first_;
  V second_;
};

/// A row's x of a step: the values of k are kRows apart.
template <std::size_t kRows, class Step>
HWY_INLINE void AddRow(const Step& left, const Step& right, const float* x, V& left_sum, V& right_sum) {
  left_sum = left.template MultiplyAdd<kRows>(x, left_sum);
  right_sum = right.template MultiplyAdd<kRows>(x, right_sum);
}

/// Two vectors of columns from `column` on. The rows are a parameter pack so that every sum is a register at
/// any optimisation level that inlines.
template <class Step, std::size_t... R>
HWY_INLINE void TilePass(std::index_sequence<R...> /*rows*/, const TileCall& call, std::size_t column) {
  constexpr D d;
  constexpr std::size_t kRows = sizeof...(R);
  const float* HWY_RESTRICT x = reinterpret_cast<const float*>(call.x);
  const float* HWY_RESTRICT w = reinterpret_cast<const float*>(call.w) + column;
  float* HWY_RESTRICT sums = call.sums + column;
  V left[kRows] = {(static_cast<void>(R), hn::Zero(d))...};
  V right[kRows] = {(static_cast<void>(R), hn::Zero(d))...};
  if (call.resume) {
    ((left[R] = hn::Load(d, sums + R * kColumns)), ...);
    ((right[R] = hn::Load(d, sums + R * kColumns + kLanes)), ...);
  }
  for (std::size_t s = 0; s < call.steps; ++s) {
    const Step left_w(w);
    const Step right_w(w + kLanes);
    (AddRow<kRows>(left_w, right_w, x + R, left[R], right[R]), ...);
    prefetch(call.ahead_w, s);
    prefetch(call.ahead_x, s);
    x += kRows * Step::kXValues;
    w += kColumns;
  }
  (hn::Store(left[R], d, sums + R * kColumns), ...);
  (hn::Store(right[R], d, sums + R * kColumns + kLanes), ...);
}

template <class Step, std::size_t kRows>
void TileOfRows(const TileCall& call) {
  for (std::size_t column = 0; column < kColumns; column += 2 * kLanes) {
    TilePass<Step>(std::make_index_sequence<kRows>(), call, column);
  }
}

using TileFunction = void (*)(const TileCall&);

template <class Step, std::size_t... R>
constexpr std::array<TileFunction, sizeof...(R)> TilesByRows(std::index_sequence<R...> /*rows*/) {
  return {TileOfRows<Step, R + 1>...};
}

template <class Step>
void Tile(const TileCall& call) {
  static constexpr auto kTiles = TilesByRows<Step>(std::make_index_sequence<kMaxRows>());
  kTiles[call.rows - 1](call);
}

const Kernel& VectorKernel() {
  static constexpr Kernel kernel = {.layout = &kFloatLayout,
                                    .pack_x = interleave_floats,
                                    .x_step_bytes = sizeof(float),
                                    .max_rows = kMaxRows,
                                    .row_multiple = 1,
                                    .block_steps = 256,
                                    .tile = Tile<FloatStep>};
  return kernel;
}

const Kernel& VectorBf16Kernel() {
  static constexpr Kernel kernel = {.layout = &kBf16Layout,
                                    .pack_x = interleave_rounded_floats,
                                    .x_step_bytes = 2 * sizeof(float),
                                    .max_rows = kMaxRows,
                                    .row_multiple = 1,
                                    .block_steps = 256,
                                    .tile = Tile<Bf16Step>};
  return kernel;
}

}  // namespace assay::ops::panels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops::panels {

HWY_EXPORT(VectorKernel);
HWY_EXPORT(VectorBf16Kernel);

const Kernel& vector_kernel() {
  return HWY_DYNAMIC_DISPATCH(VectorKernel)();
}
const Kernel& vector_bf16_kernel() {
  return HWY_DYNAMIC_DISPATCH(VectorBf16Kernel)();
}

}  // namespace assay::ops::panels
#endif
