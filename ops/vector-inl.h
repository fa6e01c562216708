// What the `vector` forms share. Per-target include guard, as Highway's documentation has it.
#if defined(ASSAY_OPS_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_OPS_VECTOR_INL_H_
#undef ASSAY_OPS_VECTOR_INL_H_
#else
#define ASSAY_OPS_VECTOR_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace assay::ops {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kMostLanes = 16;
using FloatTag = hn::CappedTag<float, kMostLanes>;
using FloatVector = hn::Vec<FloatTag>;

/// The first `count` lanes from memory, the others zero. Not a masked load: before AVX-512 that may read past
/// the end.
HWY_INLINE FloatVector load_part(FloatTag d, const float* from, std::size_t count) {
  HWY_ALIGN float lanes[kMostLanes] = {};
  std::copy_n(from, count, lanes);
  return hn::Load(d, lanes);
}

HWY_INLINE void store_part(FloatVector value, FloatTag d, float* to, std::size_t count) {
  HWY_ALIGN float lanes[kMostLanes];
  hn::Store(value, d, lanes);
  std::copy_n(lanes, count, to);
}

/// z / (1 + e^−z) within 4 ulp down to −88.7; below, where e^−z is infinite in fp32, −0 (exact: above
/// −3e-37), also at −∞. NaN stays. The clamp keeps the argument in the range that Highway states for Exp (1
/// ulp); a NaN goes around Exp, which would convert it to an integer.
HWY_INLINE FloatVector silu(FloatTag d, FloatVector z) {
  const FloatVector lowest = hn::Set(d, -104.0f);
  const FloatVector clamped = hn::IfThenElse(hn::Lt(z, lowest), lowest, z);
  const FloatVector exponent = hn::IfThenElseZero(hn::Eq(clamped, clamped), hn::Neg(clamped));
  return hn::Div(clamped, hn::Add(hn::Set(d, 1.0f), hn::Exp(d, exponent)));
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::ops
HWY_AFTER_NAMESPACE();

#endif
