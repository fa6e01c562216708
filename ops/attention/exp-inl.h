// Per-target include guard, as Highway's documentation has it.
#if defined(ASSAY_OPS_ATTENTION_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_OPS_ATTENTION_EXP_INL_H_
#undef ASSAY_OPS_ATTENTION_EXP_INL_H_
#else
#define ASSAY_OPS_ATTENTION_EXP_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::ops::attention {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// eˣ for x ≤ 0, within 2 ulp down to the smallest normal number and 0 below it; NaN stays NaN (Highway's own
/// Exp turns it into 0). x = n ln 2 + r with |r| ≤ ln 2 / 2, ln 2 in two parts, and the polynomial of Cephes'
/// expf (Moshier, cephes/single/expf.c).
template <class D, class V>
HWY_INLINE V exp_nonpositive(D d, V x) {
  const hn::RebindToSigned<D> d_int;
  const V least = hn::Set(d, -87.336544f);
  // NaN and what ends as 0 have no exponent to convert.
  const V n = hn::IfThenElseZero(hn::Ge(x, least), hn::Round(hn::Mul(x, hn::Set(d, 1.44269504088896341f))));
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::MulAdd(hn::Set(d, 1.9875691500e-4f), r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(d_int, n), hn::Set(d_int, 127)));
  const V y = hn::Mul(p, hn::BitCast(d, exponent));
  return hn::IfThenZeroElse(hn::Lt(x, least), y);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace assay::ops::attention
HWY_AFTER_NAMESPACE();

#endif  // ASSAY_OPS_ATTENTION_EXP_INL_H_
