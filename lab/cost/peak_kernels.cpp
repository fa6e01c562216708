#include "lab/cost/peak_kernels.hpp"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lab/cost/peak_kernels.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::lab {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using WordTag = hn::ScalableTag<std::uint32_t>;

/// Makes the compiler believe that memory was read and changed here, so that no pass is left out as useless.
inline void touch_memory(const void* data) {
  asm volatile("" : : "r"(data) : "memory");
}

double fp32_fma(std::size_t rounds) {
  const FloatTag d;
  constexpr double kSums = 12;
  // Twelve sums: more than a latency of four cycles times two a cycle, and with both factors in AVX2's
  // sixteen registers. |factor| < 1 keeps the sums finite for ever.
  const auto factor = hn::Set(d, 0.999f);
  const auto term = hn::Set(d, 0.001f);
  auto a = term, b = term, c = term, e = term, f = term, g = term, h = term, i = term, j = term, k = term,
       l = term, m = term;
  for (std::size_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, factor, term);
    b = hn::MulAdd(b, factor, term);
    c = hn::MulAdd(c, factor, term);
    e = hn::MulAdd(e, factor, term);
    f = hn::MulAdd(f, factor, term);
    g = hn::MulAdd(g, factor, term);
    h = hn::MulAdd(h, factor, term);
    i = hn::MulAdd(i, factor, term);
    j = hn::MulAdd(j, factor, term);
    k = hn::MulAdd(k, factor, term);
    l = hn::MulAdd(l, factor, term);
    m = hn::MulAdd(m, factor, term);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
              hn::Add(hn::Add(hn::Add(f, g), hn::Add(h, i)), hn::Add(hn::Add(j, k), hn::Add(l, m))));
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(sum, d, lanes);
  touch_memory(lanes);
  return 2 * kSums * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

void read(const float* data, std::size_t count, std::size_t passes) {
  const WordTag d;
  const auto* words = reinterpret_cast<const std::uint32_t*>(data);
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < count; i += 4 * lanes) {
      a = hn::Or(a, hn::Load(d, words + i));
      b = hn::Or(b, hn::Load(d, words + i + lanes));
      c = hn::Or(c, hn::Load(d, words + i + 2 * lanes));
      e = hn::Or(e, hn::Load(d, words + i + 3 * lanes));
    }
    touch_memory(data);
  }
  HWY_ALIGN std::uint32_t result[hn::MaxLanes(d)];
  hn::Store(hn::Or(hn::Or(a, b), hn::Or(c, e)), d, result);
  touch_memory(result);
}

template <bool streaming>
void put(hn::Vec<FloatTag> value, float* to) {
  const FloatTag d;
  if constexpr (streaming) {
    hn::Stream(value, d, to);
  } else {
    hn::Store(value, d, to);
  }
}

template <bool streaming>
void write_as(float* data, std::size_t count, std::size_t passes) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto value = hn::Set(d, 1.0f);
  for (std::size_t pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < count; i += 4 * lanes) {
      put<streaming>(value, data + i);
      put<streaming>(value, data + i + lanes);
      put<streaming>(value, data + i + 2 * lanes);
      put<streaming>(value, data + i + 3 * lanes);
    }
    touch_memory(data);
  }
}

template <bool streaming>
void copy_as(const float* from, float* to, std::size_t count, std::size_t passes) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < count; i += 4 * lanes) {
      const auto a = hn::Load(d, from + i);
      const auto b = hn::Load(d, from + i + lanes);
      const auto c = hn::Load(d, from + i + 2 * lanes);
      const auto e = hn::Load(d, from + i + 3 * lanes);
      put<streaming>(a, to + i);
      put<streaming>(b, to + i + lanes);
      put<streaming>(c, to + i + 2 * lanes);
      put<streaming>(e, to + i + 3 * lanes);
    }
    touch_memory(to);
  }
}

void write(float* data, std::size_t count, std::size_t passes, bool streaming) {
  if (!streaming) return write_as<false>(data, count, passes);
  write_as<true>(data, count, passes);
  hwy::FlushStream();
}

void copy(const float* from, float* to, std::size_t count, std::size_t passes, bool streaming) {
  if (!streaming) return copy_as<false>(from, to, count, passes);
  copy_as<true>(from, to, count, passes);
  hwy::FlushStream();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace assay::lab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::lab {

HWY_EXPORT(fp32_fma);
HWY_EXPORT(read);
HWY_EXPORT(write);
HWY_EXPORT(copy);

double run_fp32_fma(std::size_t rounds) {
  return HWY_DYNAMIC_DISPATCH(fp32_fma)(rounds);
}

void read_memory(const float* data, std::size_t count, std::size_t passes) {
  HWY_DYNAMIC_DISPATCH(read)(data, count, passes);
}

void write_memory(float* data, std::size_t count, std::size_t passes, bool streaming) {
  HWY_DYNAMIC_DISPATCH(write)(data, count, passes, streaming);
}

void copy_memory(const float* from, float* to, std::size_t count, std::size_t passes, bool streaming) {
  HWY_DYNAMIC_DISPATCH(copy)(from, to, count, passes, streaming);
}

std::span<const PeakKernel> peak_kernels() {
  static constexpr auto kKernels = std::to_array<PeakKernel>({
    {"fp32_fma", ops::Precision::fp32, 0, run_fp32_fma},
#if defined(__x86_64__)
        {"bf16_dot", ops::Precision::bf16, device::CpuFeature::avx512 | device::CpuFeature::avx512_bf16,
         run_bf16_dot},
        {"bf16_tile", ops::Precision::bf16, static_cast<device::CpuFeatureSet>(device::CpuFeature::amx_bf16),
         run_bf16_tile},
#endif
  });
  return kKernels;
}

}  // namespace assay::lab
#endif
