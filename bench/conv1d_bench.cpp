// GFLOP/s of each form of conv1d and conv_transpose1d at the shapes of ACE-Step's VAE decoder, beside the
// floor (multiply-adds on registers alone, as many and on as many threads) and oneDNN where it was found.
// Rounds interleave all of them; the median of the rounds counts, with the spread around it. Bias alone is
// fused: oneDNN knows no snake. It has weights, input and output in the layouts that it prefers, and its
// threads are its own (OMP_NUM_THREADS).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/contenders.hpp"
#include "device/arena.hpp"
#include "device/cpu_features.hpp"
#include "device/thread_pool.hpp"
#include "ops/conv1d/conv1d.hpp"
#include "ops/conv_transpose1d/conv_transpose1d.hpp"

#if defined(ASSAY_WITH_ONEDNN)
#include <dnnl.hpp>
#endif

namespace {

using assay::bench::Contender;
using assay::device::Buffer;
using assay::ops::Context;
using assay::ops::ConvShape;
using assay::ops::Precision;

constexpr std::size_t kUnitDilations[] = {1, 3, 9};

/// One layer of the decoder; transposed where it has a stride.
struct Layer {
  std::size_t in, out, kernel;
  std::size_t rows_per_frame;  ///< of x
  std::size_t dilation = 1;
  std::size_t stride = 1;
  bool transposed = false;

  ConvShape shape() const { return {.out_channels = out, .in_channels = in, .kernel = kernel}; }
  std::size_t padding() const { return transposed ? (stride + 1) / 2 : dilation * (kernel - 1) / 2; }
  std::size_t output_rows(std::size_t rows) const { return rows * stride; }
  /// Those at either end that meet the padding counted too.
  double operations(std::size_t rows) const {
    return 2.0 * static_cast<double>(rows * kernel) * static_cast<double>(in * out);
  }
  std::string name() const {
    std::string text = fmt::format("{} → {}, k{}", in, out, kernel);
    if (transposed) return fmt::format("{}, transposed by {}", text, stride);
    return dilation == 1 ? text : fmt::format("{}, dilation {}", text, dilation);
  }
};

/// The released decoder from latents to samples, each shape once.
std::vector<Layer> decoder_layers() {
  struct Block {
    std::size_t in, out, stride;
  };
  constexpr Block kBlocks[] = {{2048, 1024, 10}, {1024, 512, 6}, {512, 256, 4}, {256, 128, 4}, {128, 128, 2}};
  std::vector<Layer> layers{{.in = 64, .out = 2048, .kernel = 7, .rows_per_frame = 1}};
  std::size_t rate = 1;
  for (const Block& block : kBlocks) {
    layers.push_back({.in = block.in,
                      .out = block.out,
                      .kernel = 2 * block.stride,
                      .rows_per_frame = rate,
                      .stride = block.stride,
                      .transposed = true});
    rate *= block.stride;
    for (const std::size_t dilation : kUnitDilations) {
      layers.push_back(
          {.in = block.out, .out = block.out, .kernel = 7, .rows_per_frame = rate, .dilation = dilation});
    }
    layers.push_back({.in = block.out, .out = block.out, .kernel = 1, .rows_per_frame = rate});
  }
  layers.push_back({.in = 128, .out = 2, .kernel = 7, .rows_per_frame = rate});
  return layers;
}

struct Options {
  std::size_t frames = 32;
  std::vector<std::string> forms;
  std::vector<std::size_t> channels;
  std::size_t threads = 0;
  std::size_t rounds = 9;
  bool cpu_time = false;

  clockid_t clock() const { return cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC; }
};

bool wanted(const Options& options, const assay::ops::FormInfo& info) {
  if (!assay::device::cpu_supports(info.needs)) return false;
  return options.forms.empty() ? !info.name.starts_with("reference")
                               : std::ranges::count(options.forms, info.name) != 0;
}

/// What one layer's contenders read and write, w as [out][tap][in].
struct Operands {
  Operands(const Layer& of, std::size_t frames)
      : layer(of),
        rows(frames * of.rows_per_frame),
        x(rows * of.in),
        w(of.out * of.shape().row_size()),
        bias(of.out),
        y(of.output_rows(rows) * of.out) {
    assay::bench::fill(x.data(), x.size(), 1);
    assay::bench::fill(w.data(), w.size(), 2);
    assay::bench::fill(bias.data(), bias.size(), 3);
  }

  assay::ops::ConvRows rows_of_w() const {
    return [this](std::size_t first, std::size_t count, std::span<float> to) {
      const std::size_t size = layer.shape().row_size();
      std::copy_n(w.data() + first * size, count * size, to.begin());
    };
  }

  const Layer layer;
  std::size_t rows;
  Buffer<float> x, w, bias, y;
};

/// Adds every wanted form of one of the two ops. `run` makes the call with a packed weight.
template <class Weight, class Form, class Pack, class Run>
void add_forms(std::vector<Contender>& contenders, const Options& options, std::span<const Form> forms,
               double operations, const Pack& pack, const Run& run) {
  for (const Form& form : forms) {
    if (!wanted(options, form.info)) continue;
    auto weight = std::make_shared<const Weight>(pack(form));
    contenders.push_back({std::string(form.info.name), operations, [weight, run] { run(*weight); }});
  }
}

void add_own(std::vector<Contender>& contenders, const Options& options, Operands& operands,
             const Context& context) {
  const Layer& layer = operands.layer;
  const double operations = layer.operations(operands.rows);
  if (layer.transposed) {
    add_forms<assay::ops::ConvTranspose1dWeight>(
        contenders, options, assay::ops::conv_transpose1d_forms(), operations,
        [&](const auto& form) { return form.pack(layer.shape(), layer.stride, operands.rows_of_w()); },
        [&operands, &layer, &context](const assay::ops::ConvTranspose1dWeight& weight) {
          assay::ops::conv_transpose1d(context, {.x = {operands.x.data(), layer.in},
                                                 .length = operands.rows,
                                                 .w = &weight,
                                                 .padding = layer.padding(),
                                                 .fusion = {.bias = operands.bias.data()},
                                                 .y = {operands.y.data(), layer.out}});
        });
    return;
  }
  add_forms<assay::ops::Conv1dWeight>(
      contenders, options, assay::ops::conv1d_forms(), operations,
      [&](const auto& form) { return form.pack(layer.shape(), operands.rows_of_w()); },
      [&operands, &layer, &context](const assay::ops::Conv1dWeight& weight) {
        assay::ops::conv1d(context, {.x = {operands.x.data(), layer.in},
                                     .length = operands.rows,
                                     .w = &weight,
                                     .dilation = layer.dilation,
                                     .padding = layer.padding(),
                                     .fusion = {.bias = operands.bias.data()},
                                     .y = {operands.y.data(), layer.out}});
      });
}

#if defined(ASSAY_WITH_ONEDNN)

/// oneDNN's convolution, or deconvolution as it calls the transposed one.
class OneDnn {
 public:
  using Dim = dnnl::memory::dim;
  using Type = dnnl::memory::data_type;
  using Tag = dnnl::memory::format_tag;

  OneDnn(const Operands& operands, Type type) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const Layer& layer = operands.layer;
    const auto dim = [](std::size_t value) { return static_cast<Dim>(value); };
    const dnnl::memory::dims x{1, dim(layer.in), dim(operands.rows)};
    const dnnl::memory::dims w{dim(layer.out), dim(layer.in), dim(layer.kernel)};
    y_dims_ = {1, dim(layer.out), dim(layer.output_rows(operands.rows))};
    const dnnl::memory::desc bias({dim(layer.out)}, Type::f32, Tag::a);
    layer.transposed ? create<dnnl::deconvolution_forward>(layer, {x, type, Tag::any}, {w, type, Tag::any},
                                                           bias, dnnl::algorithm::deconvolution_direct)
                     : create<dnnl::convolution_forward>(layer, {x, type, Tag::any}, {w, type, Tag::any},
                                                         bias, dnnl::algorithm::convolution_direct);
    copy({{x, Type::f32, Tag::nwc}, engine_, const_cast<float*>(operands.x.data())}, x_);
    copy({{w, Type::f32, Tag::owi}, engine_, const_cast<float*>(operands.w.data())}, w_);
    copy({bias, engine_, const_cast<float*>(operands.bias.data())}, bias_);
  }

  void run() {
    primitive_.execute(
        stream_, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, w_}, {DNNL_ARG_BIAS, bias_}, {DNNL_ARG_DST, y_}});
    stream_.wait();
  }

  /// What the last run gave, rows by channels.
  std::vector<float> output() {
    std::vector<float> values(static_cast<std::size_t>(y_dims_[1] * y_dims_[2]));
    dnnl::memory to({y_dims_, Type::f32, Tag::nwc}, engine_, values.data());
    copy(y_, to);
    return values;
  }

 private:
  template <class Primitive>
  void create(const Layer& layer, const dnnl::memory::desc& x, const dnnl::memory::desc& w,
              const dnnl::memory::desc& bias, dnnl::algorithm algorithm) {
    const dnnl::memory::desc y(y_dims_, Type::f32, Tag::any);
    const dnnl::memory::dims stride{static_cast<Dim>(layer.stride)};
    const dnnl::memory::dims dilation{static_cast<Dim>(layer.dilation) - 1};  // oneDNN counts the holes
    const dnnl::memory::dims padding{static_cast<Dim>(layer.padding())};
    const typename Primitive::primitive_desc description(
        typename Primitive::desc(dnnl::prop_kind::forward_inference, algorithm, x, w, bias, y, stride,
                                 dilation, padding, padding),
        engine_);
    primitive_ = Primitive(description);
    x_ = dnnl::memory(description.src_desc(), engine_);
    w_ = dnnl::memory(description.weights_desc(), engine_);
    bias_ = dnnl::memory(description.bias_desc(), engine_);
    y_ = dnnl::memory(description.dst_desc(), engine_);
  }

  void copy(dnnl::memory from, dnnl::memory& to) {
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory::dims y_dims_;
  dnnl::primitive primitive_;
  dnnl::memory x_, w_, bias_, y_;
};

/// A peer that computes something else would be no peer. `y` is the output of one of our own forms.
void require_same(const std::string& name, const std::vector<float>& theirs, const Buffer<float>& y) {
  double error = 0;
  double scale = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    error += std::pow(theirs[i] - y.data()[i], 2);
    scale += std::pow(y.data()[i], 2);
  }
  if (error <= 1e-4 * scale) return;  // bf16 operands are off by some 3e-3
  throw std::runtime_error(fmt::format("{}: differs by {:.2g} of the scale", name, std::sqrt(error / scale)));
}

/// To be called when our own forms have run once.
void add_onednn(std::vector<Contender>& contenders, const Operands& operands) {
  const auto add = [&](const std::string& name, OneDnn::Type type) {
    auto peer = std::make_shared<OneDnn>(operands, type);
    peer->run();
    require_same(name, peer->output(), operands.y);
    contenders.push_back({name, operands.layer.operations(operands.rows), [peer] { peer->run(); }});
  };
  add("oneDNN fp32", OneDnn::Type::f32);
  using assay::device::CpuFeature;
  if (assay::device::cpu_supports(CpuFeature::avx512 | CpuFeature::avx512_bf16)) {
    add("oneDNN bf16", OneDnn::Type::bf16);
  }
}

#else

void add_onednn(std::vector<Contender>&, const Operands&) {}

#endif

void bench_layer(const Options& options, const Layer& layer, assay::device::ThreadPool& threads) {
  Operands operands(layer, options.frames);
  assay::device::Arena arena;
  const Context context{threads, arena};
  std::vector<Contender> contenders;
  add_own(contenders, options, operands, context);
  for (const Contender& contender : contenders) contender.run();  // pages touched, an output to compare with
  if (!contenders.empty()) add_onednn(contenders, operands);
  assay::bench::add_register_peaks(contenders, threads, layer.operations(operands.rows));
  assay::bench::measure(contenders, options.rounds, options.clock());
  fmt::print("{}, {} rows\n", layer.name(), operands.rows);
  for (const Contender& c : contenders) {
    fmt::print("  {:<28}{:8.1f} GFLOP/s {:10.3f} ms ± {:.3f}, best {:.3f}\n", c.name,
               c.operations / c.median() * 1e-9, c.median() * 1e3, c.spread() * 1e3, c.best() * 1e3);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Floor, forms and peer of conv1d and conv_transpose1d");
  Options options;
  app.add_option("--frames", options.frames, "latent frames of the window that is decoded, 25 a second")
      ->check(CLI::Range(1, 1024));
  app.add_option("--form", options.forms, "forms to run; all but the references")->delimiter(',');
  app.add_option("--channels", options.channels, "only layers with these input channels")->delimiter(',');
  app.add_option("--threads", options.threads, "0: one per core");
  app.add_option("--rounds", options.rounds, "repeats, of which the median counts")
      ->check(CLI::Range(1, 1000));
  app.add_flag(
      "--cpu-time", options.cpu_time,
      "count the calling thread's time alone: with --threads 1 and OMP_NUM_THREADS=1, on a busy machine");
  CLI11_PARSE(app, argc, argv);
  assay::device::ThreadPool threads(options.threads);
  fmt::print("{}, {} threads, {} frames, {} rounds\n", assay::device::cpu_model_name(), threads.size(),
             options.frames, options.rounds);
  for (const Layer& layer : decoder_layers()) {
    if (!options.channels.empty() && std::ranges::count(options.channels, layer.in) == 0) continue;
    bench_layer(options, layer, threads);
  }
}
