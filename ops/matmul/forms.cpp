#include "ops/matmul/forms.hpp"

#include <algorithm>
#include <array>

#include "ops/matmul/panels.hpp"

namespace assay::ops {
namespace {

using device::CpuFeature;

/// How a form packs and runs: `Packer` and `Runner` are its functions.
template <auto packed_bytes, auto packer, auto runner>
struct Way {
  static MatmulWeight pack(std::size_t n, std::size_t k, const WeightRows& rows) {
    MatmulWeight weight = packer(n, k, rows);
    weight.form = &*std::ranges::find(matmul_forms(), &Way::run, &MatmulForm::run);
    return weight;
  }
  static void run(const Context& context, const MatmulArgs& args) { runner(context, args); }
  static MatmulForm form(FormInfo info) { return {info, packed_bytes, pack, run}; }
};

/// The way of a kernel on panels.
template <const panels::Kernel& (*kernel)()>
struct PanelFunctions {
  static std::size_t packed_bytes(std::size_t n, std::size_t k) {
    return panels::packed_bytes(*kernel().layout, n, k);
  }
  static MatmulWeight pack(std::size_t n, std::size_t k, const WeightRows& rows) {
    return panels::pack(*kernel().layout, n, k, rows);
  }
  static void run(const Context& context, const MatmulArgs& args) { panels::run(kernel(), context, args); }
  using AsWay = Way<packed_bytes, pack, run>;
};

template <const panels::Kernel& (*kernel)()>
using Panels = typename PanelFunctions<kernel>::AsWay;
using Reference = Way<reference_packed_bytes, reference_pack, reference_run>;
using ReferenceBf16 = Way<reference_bf16_packed_bytes, reference_bf16_pack, reference_bf16_run>;

constexpr device::CpuFeatureSet kAny = 0;
constexpr std::string_view kBf16Panels = "bf16 pairs in panels of 32 features";

}  // namespace

std::span<const MatmulForm> matmul_forms() {
  using enum Precision;
  static const std::array forms = {
    Reference::form({"reference", fp32, "fp32 rows", kAny, "plain loops"}),
    ReferenceBf16::form({"reference_bf16", bf16, "bf16 rows", kAny, "plain loops"}),
    Panels<panels::vector_kernel>::form({"vector", fp32, "fp32 panels of 32 features", kAny,
                                         "Highway; tiles in registers, blocked for caches"}),
    Panels<panels::vector_bf16_kernel>::form(
        {"vector_bf16", bf16, kBf16Panels, kAny, "as vector, bf16 widened to fp32 in registers"}),
#if defined(__x86_64__)
    Panels<panels::avx512_bf16_kernel>::form(
        {"avx512_bf16", bf16, kBf16Panels, CpuFeature::avx512 | CpuFeature::avx512_bf16, "VDPBF16PS"}),
    Panels<panels::amx_bf16_kernel>::form({"amx_bf16", bf16, kBf16Panels,
                                           CpuFeature::none | CpuFeature::amx_bf16,
                                           "TDPBF16PS, 2 by 2 tiles of sums"}),
#endif
  };
  return forms;
}

}  // namespace assay::ops
