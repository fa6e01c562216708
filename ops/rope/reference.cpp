#include "ops/parallel.hpp"
#include "ops/rope/rope.hpp"

namespace assay::ops {

void rope_reference(const Context& context, const RopeArgs& args) {
  const std::size_t half = args.rotary_dim / 2;
  parallel_ranges(context.threads, args.rows, args.heads * half, [&](std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row) {
      const float* cos = args.cos + row * half;
      const float* sin = args.sin + row * half;
      for (std::size_t head = 0; head < args.heads; ++head) {
        float* low = args.x.row(row) + head * args.head_stride;
        float* high = low + half;
        for (std::size_t i = 0; i < half; ++i) {
          const float a = low[i];
          const float b = high[i];
          low[i] = a * cos[i] - b * sin[i];
          high[i] = b * cos[i] + a * sin[i];
        }
      }
    }
  });
}

}  // namespace assay::ops
