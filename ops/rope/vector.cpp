#include "ops/parallel.hpp"
#include "ops/rope/rope.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rope/vector.cpp"
#include <hwy/foreach_target.h>

#include "ops/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::ops {
namespace HWY_NAMESPACE {
namespace {

/// Turns one head. Products are rounded before they are added, as the reference and the authors do: the bits
/// are the reference's.
void turn(float* low, float* high, const float* cos, const float* sin, std::size_t half) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const FloatVector a = hn::LoadU(d, low + i);
    const FloatVector b = hn::LoadU(d, high + i);
    const FloatVector c = hn::LoadU(d, cos + i);
    const FloatVector s = hn::LoadU(d, sin + i);
    hn::StoreU(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), d, low + i);
    hn::StoreU(hn::Add(hn::Mul(b, c), hn::Mul(a, s)), d, high + i);
  }
  for (; i < half; ++i) {
    const float a = low[i];
    const float b = high[i];
    low[i] = a * cos[i] - b * sin[i];
    high[i] = b * cos[i] + a * sin[i];
  }
}

}  // namespace

void rope_rows(const RopeArgs& args, std::size_t first, std::size_t last) {
  const std::size_t half = args.rotary_dim / 2;
  for (std::size_t row = first; row < last; ++row) {
    for (std::size_t head = 0; head < args.heads; ++head) {
      float* low = args.x.row(row) + head * args.head_stride;
      turn(low, low + half, args.cos + row * half, args.sin + row * half, half);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops {

HWY_EXPORT(rope_rows);

void rope_vector(const Context& context, const RopeArgs& args) {
  parallel_ranges(context.threads, args.rows, args.heads * args.rotary_dim,
                  [&](std::size_t first, std::size_t last) {
                    HWY_DYNAMIC_DISPATCH(rope_rows)(args, first, last);
                  });
}

}  // namespace assay::ops
#endif
