#include "bench/fma_peak.hpp"

#include <numeric>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/fma_peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Twelve independent sums hide a latency of up to six cycles at two a cycle, and fit in 16 registers.
double run(std::size_t steps) {
  const hn::CappedTag<float, 16> d;
  const auto factor = hn::Set(d, 0.5f);
  auto a = hn::Set(d, 1.0f), b = a, c = a, e = a, f = a, g = a, h = a, i = a, j = a, k = a, l = a, m = a;
  for (std::size_t step = 0; step < steps; ++step) {
    a = hn::MulAdd(a, factor, factor);
    b = hn::MulAdd(b, factor, factor);
    c = hn::MulAdd(c, factor, factor);
    e = hn::MulAdd(e, factor, factor);
    f = hn::MulAdd(f, factor, factor);
    g = hn::MulAdd(g, factor, factor);
    h = hn::MulAdd(h, factor, factor);
    i = hn::MulAdd(i, factor, factor);
    j = hn::MulAdd(j, factor, factor);
    k = hn::MulAdd(k, factor, factor);
    l = hn::MulAdd(l, factor, factor);
    m = hn::MulAdd(m, factor, factor);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i)));
  float kept = hn::GetLane(hn::Add(sum, hn::Add(hn::Add(j, k), hn::Add(l, m))));
  benchmark::DoNotOptimize(kept);
  return 2.0 * 12.0 * static_cast<double>(hn::Lanes(d) * steps);
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::bench {
namespace {
HWY_EXPORT(run);
}  // namespace

double fma_from_registers(std::size_t steps) {
  return HWY_DYNAMIC_DISPATCH(run)(steps);
}

void fma_peak(benchmark::State& state, device::ThreadPool& threads) {
  std::vector<double> done(threads.size());
  double operations = 0;
  for (auto _ : state) {
    threads.parallel_for(threads.size(),
                         [&](std::size_t item, std::size_t) { done[item] = fma_from_registers(1u << 20); });
    operations += std::accumulate(done.begin(), done.end(), 0.0);
  }
  state.counters["flops"] = benchmark::Counter(operations, benchmark::Counter::kIsRate);
}

}  // namespace assay::bench
#endif  // HWY_ONCE
