#include "ops/conv1d/forms.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "ops/conv1d/taps.hpp"

namespace assay::ops {
namespace {

using device::CpuFeature;

/// A form made of its three functions; packing notes the form in the weight.
template <auto packed_bytes_of, auto packer, auto runner>
struct Conv1dFunctions {
  static Conv1dWeight pack(const ConvShape& shape, const ConvRows& rows) {
    Conv1dWeight weight = packer(shape, rows);
    weight.form = &*std::ranges::find(conv1d_forms(), &Conv1dFunctions::pack, &Conv1dForm::pack);
    return weight;
  }
  static Conv1dForm with(FormInfo info) { return {info, packed_bytes_of, pack, runner}; }
};

template <const taps::Kernel& (*kernel)()>
std::size_t tap_bytes(const ConvShape& shape) {
  const taps::Phase phase{.taps = shape.kernel};
  return taps::packed_bytes(*kernel().layout, shape, {&phase, 1});
}

template <const taps::Kernel& (*kernel)()>
Conv1dWeight pack_taps(const ConvShape& shape, const ConvRows& rows) {
  std::vector<std::size_t> taps(shape.kernel);
  std::iota(taps.begin(), taps.end(), std::size_t{0});
  return {.shape = shape, .data = taps::pack(*kernel().layout, shape, {&taps, 1}, rows)};
}

template <const taps::Kernel& (*kernel)()>
void run_taps(const Context& context, const Conv1dArgs& args) {
  const std::size_t rows = conv1d_length(args);
  const ConvShape& shape = args.w->shape;
  const taps::Phase phase{.taps = shape.kernel, .first_x = -static_cast<std::ptrdiff_t>(args.padding)};
  taps::run(kernel(), context,
            {.x = args.x,
             .length = args.length,
             .w = args.w->data.data(),
             .in_channels = shape.in_channels,
             .out_channels = shape.out_channels,
             .phases = {&phase, 1},
             .positions = rows,
             .x_step = args.stride,
             .tap_step = args.dilation,
             .rows = rows,
             .fusion = args.fusion,
             .y = args.y});
}

template <const taps::Kernel& (*kernel)()>
using TapForm = Conv1dFunctions<tap_bytes<kernel>, pack_taps<kernel>, run_taps<kernel>>;
using Reference = Conv1dFunctions<conv1d_reference_packed_bytes, conv1d_reference_pack, conv1d_reference_run>;
using ReferenceBf16 =
    Conv1dFunctions<conv1d_reference_packed_bytes, conv1d_reference_bf16_pack, conv1d_reference_bf16_run>;

}  // namespace

std::span<const Conv1dForm> conv1d_forms() {
  using enum Precision;
  constexpr std::string_view kRows = "fp32 [out, kernel, in]";
  constexpr std::string_view kBf16Panels = "bf16 pairs in panels of 32 channels, by tap";
  static const std::array forms = {
    Reference::with({"reference", fp32, kRows, 0, "plain loops"}),
    ReferenceBf16::with({"reference_bf16", bf16, kRows, 0, "plain loops on rounded values"}),
    TapForm<taps::vector_kernel>::with({"vector", fp32, "fp32 panels of 32 channels, by tap", 0,
                                        "Highway; a product of matrices for each tap, in one sum"}),
    TapForm<taps::vector_bf16_kernel>::with(
        {"vector_bf16", bf16, kBf16Panels, 0, "as vector, bf16 widened to fp32 in registers"}),
#if defined(__x86_64__)
    TapForm<taps::avx512_bf16_kernel>::with(
        {"avx512_bf16", bf16, kBf16Panels, CpuFeature::avx512 | CpuFeature::avx512_bf16, "VDPBF16PS"}),
    TapForm<taps::amx_bf16_kernel>::with({"amx_bf16", bf16, kBf16Panels,
                                          CpuFeature::none | CpuFeature::amx_bf16,
                                          "TDPBF16PS, 2 by 2 tiles of sums"}),
#endif
  };
  return forms;
}

}  // namespace assay::ops
