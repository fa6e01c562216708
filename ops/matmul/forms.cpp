#include "ops/matmul/forms.hpp"

#include <algorithm>
#include <array>

#include "ops/matmul/panels.hpp"

namespace assay::ops {
namespace {

using device::CpuFeature;

/// A form made of its three functions; packing notes the form in the weight.
template <auto packed_bytes, auto packer, auto runner>
struct Form {
  static MatmulWeight pack(std::size_t n, std::size_t k, const WeightRows& rows) {
    MatmulWeight weight = packer(n, k, rows);
    weight.form = &*std::ranges::find(matmul_forms(), &Form::pack, &MatmulForm::pack);
    return weight;
  }
  static MatmulForm with(FormInfo info) { return {info, packed_bytes, pack, runner}; }
};

template <const panels::Kernel& (*kernel)()>
std::size_t panel_bytes(std::size_t n, std::size_t k) {
  return panels::packed_bytes(*kernel().layout, n, k);
}

template <const panels::Kernel& (*kernel)()>
MatmulWeight pack_panels(std::size_t n, std::size_t k, const WeightRows& rows) {
  return panels::pack(*kernel().layout, n, k, rows);
}

template <const panels::Kernel& (*kernel)()>
void run_panels(const Context& context, const MatmulArgs& args) {
  panels::run(kernel(), context, args);
}

template <const panels::Kernel& (*kernel)()>
using PanelForm = Form<panel_bytes<kernel>, pack_panels<kernel>, run_panels<kernel>>;
using Reference = Form<reference_packed_bytes, reference_pack, reference_run>;
using ReferenceBf16 = Form<reference_bf16_packed_bytes, reference_bf16_pack, reference_bf16_run>;

constexpr device::CpuFeatureSet kAny = 0;
constexpr std::string_view kBf16Panels = "bf16 pairs in panels of 32 features";

}  // namespace

std::span<const MatmulForm> matmul_forms() {
  using enum Precision;
  static const std::array forms = {
    Reference::with({"reference", fp32, "fp32 rows", kAny, "plain loops"}),
    ReferenceBf16::with({"reference_bf16", bf16, "bf16 rows", kAny, "plain loops"}),
    PanelForm<panels::vector_kernel>::with({"vector", fp32, "fp32 panels of 32 features", kAny,
                                            "Highway; tiles in registers, blocked for caches"}),
    PanelForm<panels::vector_bf16_kernel>::with(
        {"vector_bf16", bf16, kBf16Panels, kAny, "as vector, bf16 widened to fp32 in registers"}),
#if defined(__x86_64__)
    PanelForm<panels::avx512_bf16_kernel>::with(
        {"avx512_bf16", bf16, kBf16Panels, CpuFeature::avx512 | CpuFeature::avx512_bf16, "VDPBF16PS"}),
    PanelForm<panels::amx_bf16_kernel>::with({"amx_bf16", bf16, kBf16Panels,
                                              CpuFeature::none | CpuFeature::amx_bf16,
                                              "TDPBF16PS, 2 by 2 tiles of sums"}),
#endif
  };
  return forms;
}

}  // namespace assay::ops
