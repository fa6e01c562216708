#include "ops/conv_transpose1d/forms.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "ops/conv1d/taps.hpp"

namespace assay::ops {
namespace {

using device::CpuFeature;

template <auto packed_bytes_of, auto packer, auto runner>
struct TransposeFunctions {
  static ConvTranspose1dWeight pack(const ConvShape& shape, std::size_t stride, const ConvRows& rows) {
    ConvTranspose1dWeight weight = packer(shape, stride, rows);
    weight.form =
        &*std::ranges::find(conv_transpose1d_forms(), &TransposeFunctions::pack, &ConvTranspose1dForm::pack);
    return weight;
  }
  static ConvTranspose1dForm with(FormInfo info) { return {info, packed_bytes_of, pack, runner}; }
};

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

template <const taps::Kernel& (*kernel)()>
std::size_t phase_bytes(const ConvShape& shape, std::size_t stride) {
  return taps::packed_bytes(*kernel().layout, shape, phases_of(shape.kernel, stride, 0));
}

template <const taps::Kernel& (*kernel)()>
ConvTranspose1dWeight pack_phases(const ConvShape& shape, std::size_t stride, const ConvRows& rows) {
  return {.shape = shape,
          .stride = stride,
          .data = taps::pack(*kernel().layout, shape, taps_of(shape.kernel, stride), rows)};
}

template <const taps::Kernel& (*kernel)()>
void run_phases(const Context& context, const ConvTranspose1dArgs& args) {
  const std::size_t rows = conv_transpose1d_length(args);
  if (rows == 0) return;
  const ConvShape& shape = args.w->shape;
  const std::vector<taps::Phase> phases = phases_of(shape.kernel, args.w->stride, args.padding);
  taps::run(kernel(), context,
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

template <const taps::Kernel& (*kernel)()>
using PhaseForm = TransposeFunctions<phase_bytes<kernel>, pack_phases<kernel>, run_phases<kernel>>;
using Reference = TransposeFunctions<conv_transpose1d_reference_packed_bytes, conv_transpose1d_reference_pack,
                                     conv_transpose1d_reference_run>;
using ReferenceBf16 =
    TransposeFunctions<conv_transpose1d_reference_packed_bytes, conv_transpose1d_reference_bf16_pack,
                       conv_transpose1d_reference_bf16_run>;

}  // namespace

std::span<const ConvTranspose1dForm> conv_transpose1d_forms() {
  using enum Precision;
  constexpr std::string_view kRows = "fp32 [out, kernel, in]";
  constexpr std::string_view kBf16Panels = "bf16 pairs in panels of 32 channels, by phase and tap";
  static const std::array forms = {
    Reference::with({"reference", fp32, kRows, 0, "plain loops"}),
    ReferenceBf16::with({"reference_bf16", bf16, kRows, 0, "plain loops on rounded values"}),
    PhaseForm<taps::vector_kernel>::with({"vector", fp32, "fp32 panels of 32 channels, by phase and tap", 0,
                                          "Highway; polyphase, a product of matrices for each phase"}),
    PhaseForm<taps::vector_bf16_kernel>::with(
        {"vector_bf16", bf16, kBf16Panels, 0, "as vector, bf16 widened to fp32 in registers"}),
#if defined(__x86_64__)
    PhaseForm<taps::avx512_bf16_kernel>::with(
        {"avx512_bf16", bf16, kBf16Panels, CpuFeature::avx512 | CpuFeature::avx512_bf16, "VDPBF16PS"}),
    PhaseForm<taps::amx_bf16_kernel>::with({"amx_bf16", bf16, kBf16Panels,
                                            CpuFeature::none | CpuFeature::amx_bf16,
                                            "TDPBF16PS, 2 by 2 tiles of sums"}),
#endif
  };
  return forms;
}

}  // namespace assay::ops
