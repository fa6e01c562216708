#pragma once

#include <cstdint>
#include <string>

namespace assay::device {

/// Instruction sets that a form may need. A form's `needs` is a union of these.
enum class CpuFeature : std::uint32_t {
  none = 0,
  avx2 = 1u << 0,         ///< AVX2 and FMA
  avx512 = 1u << 1,       ///< AVX-512 F, BW, DQ, VL
  avx512_bf16 = 1u << 2,  ///< VDPBF16PS
  amx_bf16 = 1u << 3,     ///< TDPBF16PS, with the kernel's permission to use tiles
  neon = 1u << 4,         ///< Arm Advanced SIMD
};

using CpuFeatureSet = std::uint32_t;

constexpr CpuFeatureSet operator|(CpuFeature a, CpuFeature b) {
  return static_cast<CpuFeatureSet>(a) | static_cast<CpuFeatureSet>(b);
}

/// What this machine has, asked once; for AMX this also requests the tile permission from the kernel
/// (arch_prctl ARCH_REQ_XCOMP_PERM, Linux Documentation/arch/x86/xstate.rst).
CpuFeatureSet cpu_features();

/// True when every feature of `needs` is present.
bool cpu_supports(CpuFeatureSet needs);

/// "avx2+avx512" and so on; "any" for the empty set.
std::string describe(CpuFeatureSet features);

/// The processor's own name, or the architecture where it has none.
std::string cpu_model_name();

}  // namespace assay::device
