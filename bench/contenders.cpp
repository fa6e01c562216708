#include "bench/contenders.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "device/cpu_features.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace assay::bench {
namespace {

double now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

#if defined(__x86_64__)

constexpr std::size_t kSums = 24;
constexpr std::size_t kItemsPerThread = 8;
constexpr double kOperationsPerInstruction = 32;  // of fp32; VDPBF16PS does twice that

__attribute__((target("avx512f"))) void multiply_fp32(std::size_t rounds) {
  __m512 sums[kSums];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  const __m512 x = _mm512_set1_ps(0.5f);
  for (std::size_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (auto& sum : sums) {
      sum = _mm512_fmadd_ps(x, x, sum);
      __asm__ volatile("" : "+v"(sum));
    }
  }
}

__attribute__((target("avx512f,avx512bf16"))) void multiply_bf16(std::size_t rounds) {
  __m512 sums[kSums];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f003f00));
  for (std::size_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (auto& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, x, x);
      __asm__ volatile("" : "+v"(sum));
    }
  }
}

#endif

}  // namespace

double Contender::best() const {
  return *std::min_element(seconds.begin(), seconds.end());
}

double Contender::median() const {
  return median_of(seconds);
}

double Contender::spread() const {
  std::vector<double> distances = seconds;
  const double middle = median();
  for (double& value : distances) value = std::abs(value - middle);
  return 1.4826 * median_of(std::move(distances));
}

void measure(std::vector<Contender>& contenders, std::size_t rounds, clockid_t clock) {
  for (std::size_t round = 0; round < rounds; ++round) {
    for (Contender& contender : contenders) {
      const double begin = now(clock);
      contender.run();
      contender.seconds.push_back(now(clock) - begin);
    }
  }
}

void fill(float* values, std::size_t count, std::uint32_t seed) {
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
}

#if defined(__x86_64__)

void add_register_peaks(std::vector<Contender>& contenders, device::ThreadPool& threads, double operations) {
  const auto add = [&](std::string name, double factor, void (*loop)(std::size_t)) {
    const std::size_t items = kItemsPerThread * threads.size();
    const double operations_per_round =
        factor * kOperationsPerInstruction * static_cast<double>(kSums * items);
    const auto rounds = static_cast<std::size_t>(operations / operations_per_round) + 1;
    contenders.push_back({std::move(name), static_cast<double>(rounds) * operations_per_round, [=, &threads] {
                            threads.parallel_for(items, [=](std::size_t, std::size_t) { loop(rounds); });
                          }});
  };
  using device::CpuFeature;
  if (device::cpu_supports(static_cast<device::CpuFeatureSet>(CpuFeature::avx512))) {
    add("registers fp32", 1, multiply_fp32);
  }
  if (device::cpu_supports(CpuFeature::avx512 | CpuFeature::avx512_bf16)) {
    add("registers bf16 (VDPBF16PS)", 2, multiply_bf16);
  }
}

#else

void add_register_peaks(std::vector<Contender>&, device::ThreadPool&, double) {}

#endif

}  // namespace assay::bench
