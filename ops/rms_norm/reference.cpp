#include <cmath>

#include "ops/parallel.hpp"
#include "ops/rms_norm/rms_norm.hpp"
#include "ops/scalar_math.hpp"

namespace assay::ops {
namespace {

void normalise(const RmsNormArgs& args, const float* x, const float* gate, float* y) {
  float sum = 0;
  for (std::size_t i = 0; i < args.dim; ++i) sum += x[i] * x[i];
  const float scale = 1.0f / std::sqrt(sum / static_cast<float>(args.dim) + args.eps);
  for (std::size_t i = 0; i < args.dim; ++i) {
    const float value = x[i] * scale * args.w[i];
    y[i] = gate != nullptr ? value * silu(gate[i]) : value;
  }
}

}  // namespace

void rms_norm_reference(const Context& context, const RmsNormArgs& args) {
  const std::size_t x_stride = args.x_group_stride != 0 ? args.x_group_stride : args.dim;
  const std::size_t y_stride = args.y_group_stride != 0 ? args.y_group_stride : args.dim;
  parallel_ranges(
      context.threads, args.rows * args.groups, args.dim, [&](std::size_t first, std::size_t last) {
        for (std::size_t vector = first; vector < last; ++vector) {
          const std::size_t row = vector / args.groups;
          const std::size_t group = vector % args.groups;
          const float* gate = args.gate.data != nullptr ? args.gate.row(row) + group * args.dim : nullptr;
          normalise(args, args.x.row(row) + group * x_stride, gate, args.y.row(row) + group * y_stride);
        }
      });
}

}  // namespace assay::ops
