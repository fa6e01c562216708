// Compiled for AVX-512 BF16, on x86-64 alone: nothing here may be an inline function that other files share.
#include <immintrin.h>

#include <utility>

#include "lab/cost/peak_kernels.hpp"

namespace assay::lab {
namespace {

// More than the latency of VDPBF16PS (five to six cycles) times two a cycle, in 32 registers.
constexpr std::size_t kSums = 24;
// Sixteen lanes, each a multiply and an add of two pairs.
constexpr double kOperations = 16 * 4;

/// Sums that start alike stay alike: without this the compiler may keep one for all.
inline void keep(__m512& sum) {
  asm volatile("" : "+v"(sum));
}

template <std::size_t... S>
double run(std::index_sequence<S...> /*sums*/, std::size_t rounds) {
  // 0x3c00 is 2⁻⁷ in bf16: sums grow by 2⁻¹³ a round and stay finite.
  const __m512bh factor = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3c00));
  __m512 sums[kSums] = {(static_cast<void>(S), _mm512_setzero_ps())...};
  for (std::size_t round = 0; round < rounds; ++round) {
    ((sums[S] = _mm512_dpbf16_ps(sums[S], factor, factor)), ...);
    (keep(sums[S]), ...);
  }
  return kOperations * kSums * static_cast<double>(rounds);
}

}  // namespace

double run_bf16_dot(std::size_t rounds) {
  return run(std::make_index_sequence<kSums>(), rounds);
}

}  // namespace assay::lab
