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
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/contenders.hpp"
#include "device/arena.hpp"
#include "device/cpu_features.hpp"
#include "device/thread_pool.hpp"
#include "ops/matmul/matmul.hpp"

#if defined(ASSAY_WITH_ONEDNN)
#include <dnnl.hpp>
#endif

namespace {

using assay::bench::Contender;
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
  assay::bench::fill(w.data(), w.size(), 1);
  const std::vector<MatmulWeight> weights = pack_all(options, shape, w);
  for (const std::size_t m : options.rows) {
    Buffer<float> x(m * shape.k);
    Buffer<float> y(m * shape.n);
    assay::bench::fill(x.data(), x.size(), 2);
    const double operations = 2.0 * static_cast<double>(m) * static_cast<double>(shape.n * shape.k);
    assay::device::Arena arena;
    std::vector<Contender> contenders;
    assay::bench::add_register_peaks(contenders, threads, operations);
    for (const MatmulWeight& weight : weights) {
      contenders.push_back({std::string(weight.form->info.name), operations, [&, m] {
                              assay::ops::matmul(
                                  {threads, arena},
                                  {.x = {x.data(), shape.k}, .m = m, .w = &weight, .y = {y.data(), shape.n}});
                            }});
    }
    add_onednn(contenders, m, shape, operations, x.data(), w.data());
    assay::bench::measure(contenders, options.rounds, options.clock());
    for (const Contender& c : contenders) {
      fmt::print("  m {:<5}{:<28}{:8.1f} GFLOP/s {:10.3f} ms\n", m, c.name, c.operations / c.best() * 1e-9,
                 c.best() * 1e3);
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
