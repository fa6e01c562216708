#include "ops/parallel.hpp"
#include "ops/snake/snake.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/snake/vector.cpp"
#include <hwy/foreach_target.h>

#include "ops/snake/snake-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::ops {
namespace HWY_NAMESPACE {

void snake_row(const SnakeArgs& args, const float* x, float* y) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const float* alpha = args.snake.alpha;
  const float* inverse_beta = args.snake.inverse_beta;
  std::size_t c = 0;
  for (; c + lanes <= args.channels; c += lanes) {
    const FloatVector value =
        snake(d, hn::LoadU(d, x + c), hn::LoadU(d, alpha + c), hn::LoadU(d, inverse_beta + c));
    hn::StoreU(value, d, y + c);
  }
  if (c == args.channels) return;
  const std::size_t rest = args.channels - c;
  const FloatVector value = snake(d, load_part(d, x + c, rest), load_part(d, alpha + c, rest),
                                  load_part(d, inverse_beta + c, rest));
  store_part(value, d, y + c, rest);
}

void snake_rows(const SnakeArgs& args, std::size_t first, std::size_t last) {
  for (std::size_t row = first; row < last; ++row) snake_row(args, args.x.row(row), args.y.row(row));
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops {

HWY_EXPORT(snake_rows);

void snake_vector(const Context& context, const SnakeArgs& args) {
  parallel_ranges(context.threads, args.rows, args.channels, [&](std::size_t first, std::size_t last) {
    HWY_DYNAMIC_DISPATCH(snake_rows)(args, first, last);
  });
}

}  // namespace assay::ops
#endif
