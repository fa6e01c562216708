// gated_delta_rule at the shape of a Kev-4B layer (Qwen3.5-4B: 16 key heads and 32 value heads, 128 by 128).
//   gated_delta_rule_bench [THREADS] --benchmark_enable_random_interleaving=true --benchmark_repetitions=9
// `flops` counts a form's multiply-adds twice, as its README derives them; compare with fma_peak of the same
// run.
#include "ops/gated_delta_rule/gated_delta_rule.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/fma_peak.hpp"
#include "device/arena.hpp"

namespace assay::bench {
namespace {

constexpr std::size_t kKeyHeads = 16;
constexpr std::size_t kValueHeads = 32;
constexpr std::size_t kDim = 128;

std::vector<float> random_values(std::size_t count, float low, float high) {
  std::mt19937 generator(static_cast<std::uint32_t>(count));
  std::uniform_real_distribution<float> draw(low, high);
  std::vector<float> values(count);
  for (float& value : values) value = draw(generator);
  return values;
}

/// Multiply-adds of one token and value head: the recurrent forms read the state twice, decay and write it; a
/// chunked form multiplies by it three times and has four triangles of its chunk, two of them shared.
double multiply_adds(std::size_t chunk) {
  const double state = static_cast<double>(kDim * kDim);
  if (chunk == 1) return 4 * state;
  const double shared = static_cast<double>(kKeyHeads) / static_cast<double>(kValueHeads);
  return 3 * state + static_cast<double>(chunk * kDim) / 2 * (2 + 2 * shared);
}

void run_form(benchmark::State& state, const ops::GatedDeltaRuleForm& form, device::ThreadPool& threads,
              std::size_t tokens) {
  const std::vector<float> q = random_values(tokens * kKeyHeads * kDim, -1, 1);
  const std::vector<float> k = random_values(tokens * kKeyHeads * kDim, -1, 1);
  const std::vector<float> v = random_values(tokens * kValueHeads * kDim, -1, 1);
  const std::vector<float> a = random_values(tokens * kValueHeads, -4, 4);
  const std::vector<float> b = random_values(tokens * kValueHeads, -4, 4);
  const std::vector<float> decay = random_values(kValueHeads, -2, -0.01f);
  std::vector<float> o(tokens * kValueHeads * kDim);
  std::vector<float> final(kValueHeads * kDim * kDim);
  const ops::SequenceSegment segment{.first = 0, .length = tokens, .initial = nullptr, .final = final.data()};
  ops::GatedDeltaRuleArgs args{
      .key_heads = kKeyHeads, .value_heads = kValueHeads, .key_dim = kDim, .value_dim = kDim};
  args.q = {q.data(), kKeyHeads * kDim};
  args.k = {k.data(), kKeyHeads * kDim};
  args.v = {v.data(), kValueHeads * kDim};
  args.a = {a.data(), kValueHeads};
  args.b = {b.data(), kValueHeads};
  args.decay = decay.data();
  args.dt_bias = decay.data();
  args.o = {o.data(), kValueHeads * kDim};
  args.segments = {&segment, 1};
  device::Arena arena;
  const ops::Context context{threads, arena};
  for (auto _ : state) {
    form.run(context, args);
    benchmark::ClobberMemory();
  }
  const double operations = 2 * multiply_adds(form.chunk) * static_cast<double>(tokens * kValueHeads);
  state.counters["flops"] =
      benchmark::Counter(operations * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
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
  for (const ops::GatedDeltaRuleForm& form : ops::gated_delta_rule_forms()) {
    for (const std::size_t tokens : {20u, 94u, 380u, 1518u}) {
      add(std::string(form.info.name) + "/tokens:" + std::to_string(tokens),
          [&form, &threads, tokens](benchmark::State& state) { run_form(state, form, threads, tokens); });
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
