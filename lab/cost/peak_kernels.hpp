#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "device/cpu_features.hpp"
#include "ops/form.hpp"

/// Loops that do nothing but arithmetic in registers, or nothing but move memory: what a machine can do at
/// best.
namespace assay::lab {

/// Multiply-adds in registers alone, on as many independent sums as hide their latency.
struct PeakKernel {
  std::string_view name;        ///< "fp32_fma", "bf16_dot" (VDPBF16PS), "bf16_tile" (TDPBF16PS)
  ops::Precision precision;     ///< of the factors; sums are fp32 in all
  device::CpuFeatureSet needs;  ///< instruction sets
  /// Runs `rounds` rounds and returns the floating-point operations done (an add and a multiply are two).
  double (*run)(std::size_t rounds);
};

/// Those of this build, whether or not this machine has what they need. fp32 FMA runs anywhere, in the widest
/// vectors that the machine has.
std::span<const PeakKernel> peak_kernels();

double run_fp32_fma(std::size_t rounds);
double run_bf16_dot(std::size_t rounds);
double run_bf16_tile(std::size_t rounds);

/// Passes over `count` floats, whole vectors of the widest kind; `data` is aligned to 64 bytes and count a
/// multiple of kBandwidthGrain. `streaming` writes past the caches.
inline constexpr std::size_t kBandwidthGrain = 1024;
void read_memory(const float* data, std::size_t count, std::size_t passes);
void write_memory(float* data, std::size_t count, std::size_t passes, bool streaming);
void copy_memory(const float* from, float* to, std::size_t count, std::size_t passes, bool streaming);

}  // namespace assay::lab
