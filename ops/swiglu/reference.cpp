#include "ops/parallel.hpp"
#include "ops/scalar_math.hpp"
#include "ops/swiglu/swiglu.hpp"

namespace assay::ops {

void swiglu_reference(const Context& context, const SwigluArgs& args) {
  parallel_ranges(context.threads, args.rows, args.dim, [&](std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row) {
      const float* gate = args.gate.row(row);
      const float* up = args.up.row(row);
      float* y = args.y.row(row);
      for (std::size_t i = 0; i < args.dim; ++i) y[i] = silu(gate[i]) * up[i];
    }
  });
}

}  // namespace assay::ops
