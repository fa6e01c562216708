// GFLOP/s of each form of matmul on this machine at the shapes of Qwen3.5-4B, beside the floor (multiply-adds
// on registers alone, as many and on as many threads, in the same rounds) and oneDNN where it was found.
// Rounds interleave all of them and the best of each counts: another process's load then takes from all
// alike.
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "device/arena.hpp"
#include "device/cpu_features.hpp"
#include "device/thread_pool.hpp"
#include "ops/matmul/matmul.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(ASSAY_WITH_ONEDNN)
#include <dnnl.hpp>
#endif

namespace {

using assay::device::Buffer;
using assay::device::CpuFeature;
using assay::ops::Context;
using assay::ops::MatmulForm;
using assay::ops::MatmulWeight;
using assay::ops::Precision;

struct Shape {
  std::size_t n;
  std::size_t k;
};

constexpr auto kShapes = std::to_array<Shape>({{12352, 2560}, {18432, 2560}, {2560, 9216}, {2560, 4096}});

struct Contender {
  std::string name;
  double operations;
  std::function<void()> run;
  double best_seconds = std::numeric_limits<double>::infinity();

  double gflops() const { return operations / best_seconds * 1e-9; }
};

double seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void measure(std::vector<Contender>& contenders, std::size_t rounds, clockid_t clock) {
  for (std::size_t round = 0; round < rounds; ++round) {
    for (Contender& contender : contenders) {
      const double begin = seconds(clock);
      contender.run();
      contender.best_seconds = std::min(contender.best_seconds, seconds(clock) - begin);
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

constexpr std::size_t kPeakSums = 24;
constexpr std::size_t kPeakItemsPerThread = 8;
constexpr double kOperationsPerInstruction = 32;  // of fp32; VDPBF16PS does twice that

__attribute__((target("avx512f"))) void peak_fp32(std::size_t rounds) {
  __m512 sums[kPeakSums];
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

__attribute__((target("avx512f,avx512bf16"))) void peak_bf16(std::size_t rounds) {
  __m512 sums[kPeakSums];
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

/// As many operations as the product, so that both meet the same clock and the same neighbours.
void add_peaks(std::vector<Contender>& contenders, assay::device::ThreadPool& threads, double operations) {
  const auto add = [&](std::string name, double factor, void (*loop)(std::size_t)) {
    const std::size_t items = kPeakItemsPerThread * threads.size();
    const double operations_per_round =
        factor * kOperationsPerInstruction * static_cast<double>(kPeakSums * items);
    const auto rounds = static_cast<std::size_t>(operations / operations_per_round) + 1;
    contenders.push_back({std::move(name), static_cast<double>(rounds) * operations_per_round, [=, &threads] {
                            threads.parallel_for(items, [=](std::size_t, std::size_t) { loop(rounds); });
                          }});
  };
  if (assay::device::cpu_supports(static_cast<assay::device::CpuFeatureSet>(CpuFeature::avx512))) {
    add("registers fp32", 1, peak_fp32);
  }
  if (assay::device::cpu_supports(CpuFeature::avx512 | CpuFeature::avx512_bf16)) {
    add("registers bf16 (VDPBF16PS)", 2, peak_bf16);
  }
}

#else

void add_peaks(std::vector<Contender>&, assay::device::ThreadPool&, double) {}

#endif

#if defined(ASSAY_WITH_ONEDNN)

/// oneDNN's matmul with weights in the layout that it prefers; its threads are its own (OMP_NUM_THREADS).
class OneDnn {
 public:
  using Type = dnnl::memory::data_type;
  using Tag = dnnl::memory::format_tag;

  OneDnn(std::size_t m, Shape shape, Type type, const float* x, const float* w)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const auto dim = [](std::size_t value) { return static_cast<dnnl::memory::dim>(value); };
    const dnnl::memory::desc x_desc({dim(m), dim(shape.k)}, type, Tag::ab);
    const dnnl::memory::desc w_desc({dim(shape.k), dim(shape.n)}, type, Tag::any);
    const dnnl::memory::desc y_desc({dim(m), dim(shape.n)}, Type::f32, Tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x_desc, w_desc, y_desc), engine_);
    primitive_ = dnnl::matmul(description);
    x_ = dnnl::memory(x_desc, engine_);
    w_ = dnnl::memory(description.weights_desc(), engine_);
    y_ = dnnl::memory(y_desc, engine_);
    copy(x, {{dim(m), dim(shape.k)}, Type::f32, Tag::ab}, x_);
    copy(w, {{dim(shape.k), dim(shape.n)}, Type::f32, Tag::ba}, w_);
  }

  void run() {
    primitive_.execute(stream_, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, w_}, {DNNL_ARG_DST, y_}});
    stream_.wait();
  }

 private:
  void copy(const float* values, const dnnl::memory::desc& description, dnnl::memory& to) {
    dnnl::memory from(description, engine_, const_cast<float*>(values));
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  dnnl::memory x_;
  dnnl::memory w_;
  dnnl::memory y_;
};

void add_onednn(std::vector<Contender>& contenders, std::size_t m, Shape shape, double operations,
                const float* x, const float* w) {
  const auto add = [&](std::string name, dnnl::memory::data_type type) {
    auto product = std::make_shared<OneDnn>(m, shape, type, x, w);
    contenders.push_back({std::move(name), operations, [product] { product->run(); }});
  };
  add("oneDNN fp32", dnnl::memory::data_type::f32);
  if (assay::device::cpu_supports(CpuFeature::avx512 | CpuFeature::avx512_bf16)) {
    add("oneDNN bf16", dnnl::memory::data_type::bf16);
  }
}

#else

void add_onednn(std::vector<Contender>&, std::size_t, Shape, double, const float*, const float*) {}

#endif

bool wanted(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() ? !name.starts_with("reference") : std::ranges::count(names, name) != 0;
}

struct Options {
  std::vector<std::size_t> rows = {1, 8, 94, 380, 1518};
  std::vector<std::string> forms;
  std::vector<std::size_t> n;
  std::size_t k = 0;
  std::size_t threads = 0;
  std::size_t rounds = 20;
  bool cpu_time = false;

  clockid_t clock() const { return cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC; }
};

std::vector<MatmulWeight> pack_all(const Options& options, Shape shape, const Buffer<float>& w) {
  std::vector<MatmulWeight> weights;
  for (const MatmulForm& form : assay::ops::matmul_forms()) {
    if (!assay::device::cpu_supports(form.info.needs) || !wanted(options.forms, form.info.name)) continue;
    const auto begin = std::chrono::steady_clock::now();
    weights.push_back(
        form.pack(shape.n, shape.k, [&](std::size_t first, std::size_t count, std::span<float> rows) {
          std::copy_n(w.data() + first * shape.k, count * shape.k, rows.begin());
        }));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    fmt::print("  pack {:<28}{:8.2f} G weights/s\n", form.info.name,
               static_cast<double>(shape.n * shape.k) / elapsed.count() * 1e-9);
  }
  return weights;
}

void bench_shape(const Options& options, Shape shape, assay::device::ThreadPool& threads) {
  fmt::print("n {}, k {}\n", shape.n, shape.k);
  Buffer<float> w(shape.n * shape.k);
  fill(w.data(), w.size(), 1);
  const std::vector<MatmulWeight> weights = pack_all(options, shape, w);
  for (const std::size_t m : options.rows) {
    Buffer<float> x(m * shape.k);
    Buffer<float> y(m * shape.n);
    fill(x.data(), x.size(), 2);
    const double operations = 2.0 * static_cast<double>(m) * static_cast<double>(shape.n * shape.k);
    assay::device::Arena arena;
    std::vector<Contender> contenders;
    add_peaks(contenders, threads, operations);
    for (const MatmulWeight& weight : weights) {
      contenders.push_back({std::string(weight.form->info.name), operations, [&, m] {
                              assay::ops::matmul(
                                  {threads, arena},
                                  {.x = {x.data(), shape.k}, .m = m, .w = &weight, .y = {y.data(), shape.n}});
                            }});
    }
    add_onednn(contenders, m, shape, operations, x.data(), w.data());
    measure(contenders, options.rounds, options.clock());
    for (const Contender& c : contenders) {
      fmt::print("  m {:<5}{:<28}{:8.1f} GFLOP/s {:10.3f} ms\n", m, c.name, c.gflops(), c.best_seconds * 1e3);
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Floor, forms and peer of matmul");
  Options options;
  app.add_option("--rows", options.rows, "rows of x")->delimiter(',');
  app.add_option("--form", options.forms, "forms to run; all but the references")->delimiter(',');
  app.add_option("--n", options.n, "output features, with --k, instead of Qwen3.5-4B's")->delimiter(',');
  app.add_option("--k", options.k, "input features");
  app.add_option("--threads", options.threads, "0: one per core");
  app.add_option("--rounds", options.rounds, "repeats, of which the best counts");
  app.add_flag("--cpu-time", options.cpu_time,
               "count the calling thread's time alone: with --threads 1, on a busy machine");
  CLI11_PARSE(app, argc, argv);
  assay::device::ThreadPool threads(options.threads);
  fmt::print("{}, {} threads\n", assay::device::cpu_model_name(), threads.size());
  if (options.n.empty()) {
    for (const Shape shape : kShapes) bench_shape(options, shape, threads);
  } else {
    for (const std::size_t n : options.n) bench_shape(options, {n, options.k}, threads);
  }
}
