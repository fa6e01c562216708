#include "ops/parallel.hpp"
#include "ops/snake/snake.hpp"

namespace assay::ops {

void snake_reference(const Context& context, const SnakeArgs& args) {
  parallel_ranges(context.threads, args.rows, args.channels, [&](std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row) {
      const float* x = args.x.row(row);
      float* y = args.y.row(row);
      for (std::size_t c = 0; c < args.channels; ++c) {
        y[c] = snake(x[c], args.snake.alpha[c], args.snake.inverse_beta[c]);
      }
    }
  });
}

}  // namespace assay::ops
