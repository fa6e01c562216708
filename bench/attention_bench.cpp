// attention at the shape of a Kev-4B layer (Qwen3.5-4B: 16 query and 4 key-value heads of 256, gated).
//   attention_bench [THREADS] --benchmark_enable_random_interleaving=true --benchmark_repetitions=9
// `flops` counts two multiply-adds per head element, query and key that the query sees; compare with fma_peak
// of the same run.
#include "ops/attention/attention.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "bench/fma_peak.hpp"
#include "device/arena.hpp"

namespace assay::bench {
namespace {

constexpr std::size_t kHeads = 16;
constexpr std::size_t kKvHeads = 4;
constexpr std::size_t kHeadDim = 256;

std::vector<float> random_values(std::size_t count) {
  std::mt19937 generator(static_cast<std::uint32_t>(count));
  std::normal_distribution<float> draw;
  std::vector<float> values(count);
  for (float& value : values) value = draw(generator);
  return values;
}

/// `inherited` keys before the `tokens` of the segment.
struct Case {
  std::size_t inherited;
  std::size_t tokens;
};

void run_form(benchmark::State& state, const ops::AttentionForm& form, device::ThreadPool& threads,
              Case shape) {
  const std::vector<float> q = random_values(shape.tokens * kHeads * 2 * kHeadDim);
  const std::vector<float> k = random_values((shape.inherited + shape.tokens) * kKvHeads * kHeadDim);
  const std::vector<float> v = random_values((shape.inherited + shape.tokens) * kKvHeads * kHeadDim);
  std::vector<float> out(shape.tokens * kHeads * kHeadDim);
  constexpr std::size_t kKeyWidth = kKvHeads * kHeadDim;
  const ops::KeyRun runs[] = {
      {.k = {k.data(), kKeyWidth}, .v = {v.data(), kKeyWidth}, .length = shape.inherited},
      {.k = {k.data() + shape.inherited * kKeyWidth, kKeyWidth},
       .v = {v.data() + shape.inherited * kKeyWidth, kKeyWidth},
       .length = shape.tokens}};
  const ops::AttentionSegment segment{.first = 0, .length = shape.tokens, .runs = runs};
  ops::AttentionArgs args{.heads = kHeads, .kv_heads = kKvHeads, .head_dim = kHeadDim};
  args.scale = 1 / std::sqrt(static_cast<float>(kHeadDim));
  args.q = {q.data(), kHeads * 2 * kHeadDim};
  args.gate = {q.data() + kHeadDim, kHeads * 2 * kHeadDim};
  args.q_head_stride = args.gate_head_stride = 2 * kHeadDim;
  args.out = {out.data(), kHeads * kHeadDim};
  args.segments = {&segment, 1};
  device::Arena arena;
  const ops::Context context{threads, arena};
  for (auto _ : state) {
    form.run(context, args);
    benchmark::ClobberMemory();
  }
  const std::size_t pairs = shape.tokens * shape.inherited + shape.tokens * (shape.tokens + 1) / 2;
  state.counters["flops"] = benchmark::Counter(
      static_cast<double>(4 * kHeads * kHeadDim * pairs) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

void register_all(device::ThreadPool& threads) {
  const auto minimum = [](const std::vector<double>& times) {
    return *std::min_element(times.begin(), times.end());
  };
  const auto add = [&](const std::string& name, auto body) {
    benchmark::RegisterBenchmark(name.c_str(), body)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond)
        ->ComputeStatistics("min", minimum);
  };
  add("fma_peak", [&](benchmark::State& state) { fma_peak(state, threads); });
  for (const ops::AttentionForm& form : ops::attention_forms()) {
    for (const Case shape : {Case{0, 94}, Case{0, 380}, Case{0, 1518}, Case{380, 20}, Case{380, 1}}) {
      add(std::string(form.info.name) + "/inherited:" + std::to_string(shape.inherited) +
              "/tokens:" + std::to_string(shape.tokens),
          [&form, &threads, shape](benchmark::State& state) { run_form(state, form, threads, shape); });
    }
  }
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  assay::device::ThreadPool threads(argc > 1 ? std::stoul(argv[1]) : 0);
  assay::bench::register_all(threads);
  benchmark::RunSpecifiedBenchmarks();
}
