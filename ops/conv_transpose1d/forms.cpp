#include "ops/conv_transpose1d/forms.hpp"

#include <algorithm>
#include <array>

#include "ops/conv1d/taps.hpp"
#include "ops/conv_transpose1d/polyphase.hpp"

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

template <const taps::Kernel& (*kernel)()>
std::size_t phase_bytes(const ConvShape& shape, std::size_t stride) {
  return polyphase::packed_bytes(kernel(), shape, stride);
}

template <const taps::Kernel& (*kernel)()>
ConvTranspose1dWeight pack_phases(const ConvShape& shape, std::size_t stride, const ConvRows& rows) {
  return polyphase::pack(kernel(), shape, stride, rows);
}

template <const taps::Kernel& (*kernel)()>
void run_phases(const Context& context, const ConvTranspose1dArgs& args) {
  polyphase::run(kernel(), context, args);
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
