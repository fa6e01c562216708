#include "ops/conv1d/reference.hpp"

#include "ops/conv1d/forms.hpp"

namespace assay::ops {
namespace {

float sum_of_taps(const Conv1dArgs& args, const float* x, std::size_t t, std::size_t o) {
  const ConvShape& shape = args.w->shape;
  const float* w = reinterpret_cast<const float*>(args.w->data.data()) + o * shape.row_size();
  float sum = 0;
  for (std::size_t j = 0; j < shape.kernel; ++j, w += shape.in_channels) {
    const std::size_t padded_row = t * args.stride + j * args.dilation;
    const bool inside = padded_row >= args.padding && padded_row - args.padding < args.length;
    if (!inside) continue;
    sum = plain::add_products(sum, w, x + (padded_row - args.padding) * shape.in_channels, shape.in_channels);
  }
  return sum;
}

template <bool bf16>
void run_plain(const Context& context, const Conv1dArgs& args) {
  const std::size_t rows = conv1d_length(args);
  const ConvShape& shape = args.w->shape;
  const device::Arena::Scope scope(context.arena);
  const auto x = plain::prepare<bf16>(context, args.x, args.length, shape.in_channels, args.fusion.input);
  context.threads.parallel_for(rows, [&](std::size_t t, std::size_t /*worker*/) {
    for (std::size_t o = 0; o < shape.out_channels; ++o) {
      plain::finish(args.fusion, t, o, sum_of_taps(args, x.data(), t, o), args.y);
    }
  });
}

}  // namespace

std::size_t conv1d_reference_packed_bytes(const ConvShape& shape) {
  return shape.out_channels * shape.row_size() * sizeof(float);
}

Conv1dWeight conv1d_reference_pack(const ConvShape& shape, const ConvRows& rows) {
  return {.shape = shape, .data = plain::pack<false>(shape, rows)};
}

Conv1dWeight conv1d_reference_bf16_pack(const ConvShape& shape, const ConvRows& rows) {
  return {.shape = shape, .data = plain::pack<true>(shape, rows)};
}

void conv1d_reference_run(const Context& context, const Conv1dArgs& args) {
  run_plain<false>(context, args);
}

void conv1d_reference_bf16_run(const Context& context, const Conv1dArgs& args) {
  run_plain<true>(context, args);
}

}  // namespace assay::ops
