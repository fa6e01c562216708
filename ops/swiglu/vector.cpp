#include "ops/parallel.hpp"
#include "ops/swiglu/swiglu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/swiglu/vector.cpp"
#include <hwy/foreach_target.h>

#include "ops/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::ops {
namespace HWY_NAMESPACE {
namespace {

void swiglu_row(const float* gate, const float* up, float* y, std::size_t dim) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= dim; i += lanes) {
    hn::StoreU(hn::Mul(silu(d, hn::LoadU(d, gate + i)), hn::LoadU(d, up + i)), d, y + i);
  }
  if (i == dim) return;
  const FloatVector part = hn::Mul(silu(d, load_part(d, gate + i, dim - i)), load_part(d, up + i, dim - i));
  store_part(part, d, y + i, dim - i);
}

}  // namespace

void swiglu_rows(const SwigluArgs& args, std::size_t first, std::size_t last) {
  for (std::size_t row = first; row < last; ++row) {
    swiglu_row(args.gate.row(row), args.up.row(row), args.y.row(row), args.dim);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops {

HWY_EXPORT(swiglu_rows);

void swiglu_vector(const Context& context, const SwigluArgs& args) {
  parallel_ranges(context.threads, args.rows, args.dim, [&](std::size_t first, std::size_t last) {
    HWY_DYNAMIC_DISPATCH(swiglu_rows)(args, first, last);
  });
}

}  // namespace assay::ops
#endif
