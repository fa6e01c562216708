#include "ops/conv1d/reference.hpp"
#include "ops/conv_transpose1d/forms.hpp"

namespace assay::ops {
namespace {

/// Taps in ascending rows of x, as the contract's pairs (t, j) come.
float sum_of_pairs(const ConvTranspose1dArgs& args, const float* x, std::size_t u, std::size_t o) {
  const ConvShape& shape = args.w->shape;
  const float* w = reinterpret_cast<const float*>(args.w->data.data()) + o * shape.row_size();
  const std::size_t place = u + args.padding;
  const std::size_t last = place / args.w->stride;
  const std::size_t taps = (shape.kernel - 1) / args.w->stride + 1;
  float sum = 0;
  for (std::size_t t = last < taps ? 0 : last - taps; t <= last && t < args.length; ++t) {
    const std::size_t j = place - t * args.w->stride;
    if (j >= shape.kernel) continue;
    sum = plain::add_products(sum, w + j * shape.in_channels, x + t * shape.in_channels, shape.in_channels);
  }
  return sum;
}

template <bool bf16>
void run_plain_transpose(const Context& context, const ConvTranspose1dArgs& args) {
  const std::size_t rows = conv_transpose1d_length(args);
  const ConvShape& shape = args.w->shape;
  const device::Arena::Scope scope(context.arena);
  const auto x = plain::prepare<bf16>(context, args.x, args.length, shape.in_channels, args.fusion.input);
  context.threads.parallel_for(rows, [&](std::size_t u, std::size_t /*worker*/) {
    for (std::size_t o = 0; o < shape.out_channels; ++o) {
      plain::finish(args.fusion, u, o, sum_of_pairs(args, x.data(), u, o), args.y);
    }
  });
}

}  // namespace

std::size_t conv_transpose1d_reference_packed_bytes(const ConvShape& shape, std::size_t /*stride*/) {
  return shape.out_channels * shape.row_size() * sizeof(float);
}

ConvTranspose1dWeight conv_transpose1d_reference_pack(const ConvShape& shape, std::size_t stride,
                                                      const ConvRows& rows) {
  return {.shape = shape, .stride = stride, .data = plain::pack<false>(shape, rows)};
}

ConvTranspose1dWeight conv_transpose1d_reference_bf16_pack(const ConvShape& shape, std::size_t stride,
                                                           const ConvRows& rows) {
  return {.shape = shape, .stride = stride, .data = plain::pack<true>(shape, rows)};
}

void conv_transpose1d_reference_run(const Context& context, const ConvTranspose1dArgs& args) {
  run_plain_transpose<false>(context, args);
}

void conv_transpose1d_reference_bf16_run(const Context& context, const ConvTranspose1dArgs& args) {
  run_plain_transpose<true>(context, args);
}

}  // namespace assay::ops
