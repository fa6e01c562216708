// Snake on a vector, for the vector form and for the convolutions that have it fused in.
#if defined(ASSAY_OPS_SNAKE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_OPS_SNAKE_INL_H_
#undef ASSAY_OPS_SNAKE_INL_H_
#else
#define ASSAY_OPS_SNAKE_INL_H_
#endif

#include "ops/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::ops {
namespace HWY_NAMESPACE {

/// sin²(z), in [0, 1]. sin² has period π and no sign, so the argument needs only the nearest multiple of π
/// taken off (two parts of π by fused multiply-adds) and no quadrant. The polynomial is sin's on [−π/2, π/2]
/// by Remez, its relative error at most 2⁻²⁶. Past |z| = 2²² the
/// multiple is inexact and the result is kept within its range. Infinities and NaN give NaN.
HWY_INLINE FloatVector squared_sine(FloatTag d, FloatVector z) {
  const FloatVector turns = hn::Round(hn::Mul(z, hn::Set(d, 0x1.45f306p-2f)));
  FloatVector r = hn::NegMulAdd(turns, hn::Set(d, 0x1.921fb6p+1f), z);
  r = hn::NegMulAdd(turns, hn::Set(d, -0x1.777a5cp-24f), r);
  const FloatVector r2 = hn::Mul(r, r);
  FloatVector p = hn::Set(d, 0x1.5dbb6p-19f);
  p = hn::MulAdd(p, r2, hn::Set(d, -0x1.9f6fd2p-13f));
  p = hn::MulAdd(p, r2, hn::Set(d, 0x1.110ed2p-7f));
  p = hn::MulAdd(p, r2, hn::Set(d, -0x1.55554cp-3f));
  const FloatVector sine = hn::MulAdd(hn::Mul(p, r2), r, r);
  const FloatVector squared = hn::Mul(sine, sine);
  const FloatVector one = hn::Set(d, 1.0f);
  return hn::IfThenElse(hn::Gt(squared, one), one, squared);
}

HWY_INLINE FloatVector snake(FloatTag d, FloatVector x, FloatVector alpha, FloatVector inverse_beta) {
  return hn::MulAdd(inverse_beta, squared_sine(d, hn::Mul(alpha, x)), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::ops
HWY_AFTER_NAMESPACE();

#endif
