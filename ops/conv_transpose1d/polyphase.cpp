#include "ops/conv_transpose1d/polyphase.hpp"

#include <vector>

namespace assay::ops::polyphase {
namespace {

/// Position q of phase r is the output row q · stride + r − padding. Its taps are the kernel's r, r + stride,
/// … on the rows q, q − 1, … of x; they are kept in ascending rows.
std::vector<taps::Phase> phases_of(std::size_t kernel, std::size_t stride, std::size_t padding) {
  std::vector<taps::Phase> phases;
  for (std::size_t r = 0; r < stride; ++r) {
    const std::size_t count = r < kernel ? (kernel - r - 1) / stride + 1 : 0;
    phases.push_back({.taps = count,
                      .first_x = count == 0 ? 0 : 1 - static_cast<std::ptrdiff_t>(count),
                      .first_row = static_cast<std::ptrdiff_t>(r) - static_cast<std::ptrdiff_t>(padding)});
  }
  return phases;
}

std::vector<std::vector<std::size_t>> taps_of(std::size_t kernel, std::size_t stride) {
  std::vector<std::vector<std::size_t>> taps;
  for (const taps::Phase& phase : phases_of(kernel, stride, 0)) {
    std::vector<std::size_t>& indices = taps.emplace_back();
    for (std::size_t i = phase.taps; i-- > 0;) indices.push_back(taps.size() - 1 + i * stride);
  }
  return taps;
}

}  // namespace

std::size_t packed_bytes(const taps::Kernel& kernel, const ConvShape& shape, std::size_t stride) {
  return taps::packed_bytes(*kernel.layout, shape, phases_of(shape.kernel, stride, 0));
}

ConvTranspose1dWeight pack(const taps::Kernel& kernel, const ConvShape& shape, std::size_t stride,
                           const ConvRows& rows) {
  return {.shape = shape,
          .stride = stride,
          .data = taps::pack(*kernel.layout, shape, taps_of(shape.kernel, stride), rows)};
}

void run(const taps::Kernel& kernel, const Context& context, const ConvTranspose1dArgs& args) {
  const std::size_t rows = conv_transpose1d_length(args);
  if (rows == 0) return;
  const ConvShape& shape = args.w->shape;
  const std::vector<taps::Phase> phases = phases_of(shape.kernel, args.w->stride, args.padding);
  taps::run(kernel, context,
            {.x = args.x,
             .length = args.length,
             .w = args.w->data.data(),
             .in_channels = shape.in_channels,
             .out_channels = shape.out_channels,
             .phases = phases,
             .positions = (rows - 1 + args.padding) / args.w->stride + 1,
             .row_step = args.w->stride,
             .rows = rows,
             .fusion = args.fusion,
             .y = args.y});
}

}  // namespace assay::ops::polyphase
