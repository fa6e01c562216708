#include <cmath>

#include "ops/parallel.hpp"
#include "ops/rms_norm/rms_norm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rms_norm/vector.cpp"
#include <hwy/foreach_target.h>

#include "ops/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::ops {
namespace HWY_NAMESPACE {
namespace {

/// Four running vectors hide the latency of the multiply-add; they join in a fixed order.
float sum_of_squares(const float* x, std::size_t dim) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  FloatVector sum0 = hn::Zero(d);
  FloatVector sum1 = hn::Zero(d);
  FloatVector sum2 = hn::Zero(d);
  FloatVector sum3 = hn::Zero(d);
  const auto add = [&](FloatVector x_part, FloatVector& sum)
                       HWY_ATTR { sum = hn::MulAdd(x_part, x_part, sum); };
  std::size_t i = 0;
  for (; i + 4 * lanes <= dim; i += 4 * lanes) {
    add(hn::LoadU(d, x + i), sum0);
    add(hn::LoadU(d, x + i + lanes), sum1);
    add(hn::LoadU(d, x + i + 2 * lanes), sum2);
    add(hn::LoadU(d, x + i + 3 * lanes), sum3);
  }
  for (; i + lanes <= dim; i += lanes) add(hn::LoadU(d, x + i), sum0);
  if (i < dim) add(load_part(d, x + i, dim - i), sum1);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
}

/// y = x · scale · w, in the reference's order, · silu(gate) if there is one.
void scale_vector(const RmsNormArgs& args, float scale, const float* x, const float* gate, float* y) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const FloatVector factor = hn::Set(d, scale);
  std::size_t i = 0;
  for (; i + lanes <= args.dim; i += lanes) {
    FloatVector value = hn::Mul(hn::Mul(hn::LoadU(d, x + i), factor), hn::LoadU(d, args.w + i));
    if (gate != nullptr) value = hn::Mul(value, silu(d, hn::LoadU(d, gate + i)));
    hn::StoreU(value, d, y + i);
  }
  if (i == args.dim) return;
  const std::size_t rest = args.dim - i;
  FloatVector value = hn::Mul(hn::Mul(load_part(d, x + i, rest), factor), load_part(d, args.w + i, rest));
  if (gate != nullptr) value = hn::Mul(value, silu(d, load_part(d, gate + i, rest)));
  store_part(value, d, y + i, rest);
}

}  // namespace

void rms_norm_vectors(const RmsNormArgs& args, std::size_t first, std::size_t last) {
  const std::size_t x_stride = args.x_group_stride != 0 ? args.x_group_stride : args.dim;
  const std::size_t y_stride = args.y_group_stride != 0 ? args.y_group_stride : args.dim;
  for (std::size_t vector = first; vector < last; ++vector) {
    const std::size_t row = vector / args.groups;
    const std::size_t group = vector % args.groups;
    const float* x = args.x.row(row) + group * x_stride;
    const float* gate = args.gate.data != nullptr ? args.gate.row(row) + group * args.dim : nullptr;
    const float mean = sum_of_squares(x, args.dim) / static_cast<float>(args.dim);
    scale_vector(args, 1.0f / std::sqrt(mean + args.eps), x, gate, args.y.row(row) + group * y_stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops {

HWY_EXPORT(rms_norm_vectors);

void rms_norm_vector(const Context& context, const RmsNormArgs& args) {
  parallel_ranges(context.threads, args.rows * args.groups, args.dim,
                  [&](std::size_t first, std::size_t last) {
                    HWY_DYNAMIC_DISPATCH(rms_norm_vectors)(args, first, last);
                  });
}

}  // namespace assay::ops
#endif
