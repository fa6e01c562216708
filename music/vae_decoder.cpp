#include <array>
#include <utility>

#include "music/vae.hpp"
#include "music/vae_pass.hpp"

namespace assay::music {
namespace {

constexpr const char* kDecoderWhere = "VAE decoder";

/// Positions [low, high] of a layer's rows.
struct RowInterval {
  std::size_t low;
  std::size_t high;
};

RowInterval read_by_conv(const RowInterval& rows, const ConvLayer& layer) {
  return {rows.low - layer.padding,
          rows.high - layer.padding + (layer.weight.shape.kernel - 1) * layer.dilation};
}

RowInterval read_by_transposed(const RowInterval& rows, const TransposedLayer& layer) {
  const std::size_t stride = layer.weight.stride;
  const std::size_t kernel = layer.weight.shape.kernel;
  return {(rows.low + layer.padding - (kernel - 1) + stride - 1) / stride,
          (rows.high + layer.padding) / stride};
}

}  // namespace

struct VaeDecoder::Impl {
  struct Block {
    SnakeLayer snake;
    TransposedLayer up;
    std::array<ResidualUnit, std::size(kUnitDilations)> units;
  };

  VaeConfig config;
  device::ThreadPool& threads;
  ConvLayer first;
  std::vector<Block> blocks;
  SnakeLayer last_snake;
  ConvLayer last;
  std::size_t reach = 0;

  Impl(const VaeConfig& of, const formats::TensorSource& source, const ops::Selection& selection,
       device::ThreadPool& with)
      : config(of), threads(with) {
    check_strides(config);
    const VaeLoader loader(source, selection);
    std::size_t channels = config.decoder_channels * config.multiples.back();
    first = loader.conv("decoder.conv1", {channels, config.latent_width, kWideKernel}, true);
    for (std::size_t i = 0; i < config.strides.size(); ++i) {
      const std::size_t level = config.strides.size() - 1 - i;
      const std::size_t below = config.decoder_channels * (level == 0 ? 1 : config.multiples[level - 1]);
      blocks.push_back(
          load_block(loader, "decoder.block." + std::to_string(i), channels, below, config.strides[level]));
      channels = below;
    }
    last_snake = loader.snake("decoder.snake1", channels);
    last = loader.conv("decoder.conv2", {config.audio_channels, channels, kWideKernel}, false);
    reach = find_reach();
  }

  static Block load_block(const VaeLoader& loader, const std::string& name, std::size_t in, std::size_t out,
                          std::size_t stride) {
    Block block{.snake = loader.snake(name + ".snake1", in),
                .up = loader.transposed(name + ".conv_t1", {out, in, 2 * stride}, stride),
                .units = {}};
    for (std::size_t u = 0; u < block.units.size(); ++u) {
      block.units[u] = loader.unit(name + ".res_unit" + std::to_string(u + 1), out, kUnitDilations[u]);
    }
    return block;
  }

  std::size_t find_reach() const {
    // Somewhere far from any edge.
    constexpr std::size_t kFrame = 1 << 16;
    const std::size_t samples = config.samples_per_frame();
    RowInterval rows = read_by_conv({kFrame * samples, (kFrame + 1) * samples - 1}, last);
    for (std::size_t b = blocks.size(); b-- > 0;) {
      for (const ResidualUnit& unit : blocks[b].units) rows = read_by_conv(rows, unit.conv1);
      rows = read_by_transposed(rows, blocks[b].up);
    }
    rows = read_by_conv(rows, first);
    return std::max(kFrame - rows.low, rows.high - kFrame);
  }

  /// Multiply-adds for a window of so many frames.
  double work(std::size_t frames) const {
    double sum = multiply_adds(first, frames);
    std::size_t rows = frames;
    for (const Block& block : blocks) {
      sum += multiply_adds(block.up, rows);
      rows *= block.up.weight.stride;
      for (const ResidualUnit& unit : block.units) {
        sum += multiply_adds(unit.conv1, rows) + multiply_adds(unit.conv2, rows);
      }
    }
    return sum + multiply_adds(last, rows);
  }

  /// Floats of the widest layer, in a window of so many frames.
  std::size_t widest(std::size_t frames) const {
    std::size_t rows = frames;
    std::size_t most = rows * first.weight.shape.out_channels;
    for (const Block& block : blocks) {
      rows *= block.up.weight.stride;
      most = std::max(most, rows * block.up.weight.shape.out_channels);
    }
    return std::max(most, rows * config.audio_channels);
  }

  /// The samples of a window, in one of the buffers.
  std::span<const float> run(const ops::Context& context, std::span<const float> latents,
                             Course& course) const {
    const std::size_t frames = latents.size() / config.latent_width;
    const TwoBuffers buffers(context.arena, widest(frames));
    const VaePass pass(context, kDecoderWhere, course);
    const Inputs input{latents.data(), frames, config.latent_width};
    Activations x = pass.conv(first, input, {}, buffers.other_than(nullptr));
    for (const Block& block : blocks) {
      x = pass.transposed(block.up, block.snake, x, buffers.other_than(x.data));
      for (const ResidualUnit& unit : block.units) pass.unit(unit, x, buffers.other_than(x.data));
    }
    x = pass.conv(last, x, {.input = last_snake.channels()}, buffers.other_than(x.data));
    return {x.data, x.rows * x.channels};
  }

  std::size_t weight_bytes() const {
    std::size_t sum = first.weight.data.size() + last.weight.data.size();
    for (const Block& block : blocks) {
      sum += block.up.weight.data.size();
      for (const ResidualUnit& unit : block.units) {
        sum += unit.conv1.weight.data.size() + unit.conv2.weight.data.size();
      }
    }
    return sum;
  }
};

VaeDecoder::VaeDecoder(const VaeConfig& config, const formats::TensorSource& source,
                       const ops::Selection& selection, device::ThreadPool& threads)
    : impl_(std::make_unique<Impl>(config, source, selection, threads)) {}
VaeDecoder::~VaeDecoder() = default;
VaeDecoder::VaeDecoder(VaeDecoder&&) noexcept = default;
VaeDecoder& VaeDecoder::operator=(VaeDecoder&&) noexcept = default;

std::size_t VaeDecoder::reach() const {
  return impl_->reach;
}

std::size_t VaeDecoder::weight_bytes() const {
  return impl_->weight_bytes();
}

void VaeDecoder::decode(std::span<const float> latents, const SampleSink& sink,
                        const VaeOptions& options) const {
  const std::size_t width = impl_->config.latent_width;
  check_rows(latents, width, kDecoderWhere, "latent frame");
  const std::vector<VaeWindow> windows = vae_windows(latents.size() / width, impl_->reach, options);
  double work = 0;
  for (const VaeWindow& window : windows) work += impl_->work(window.frames());
  Course course(options, work);
  device::Arena arena;
  const ops::Context context{impl_->threads, arena};
  const std::size_t frame = impl_->config.samples_per_frame() * impl_->config.audio_channels;
  for (const VaeWindow& window : windows) {
    const device::Arena::Scope scope(arena);
    const auto samples =
        impl_->run(context, latents.subspan(window.first * width, window.frames() * width), course);
    const auto kept =
        samples.subspan((window.begin - window.first) * frame, (window.end - window.begin) * frame);
    const std::size_t first_sample = window.begin * impl_->config.samples_per_frame();
    check_finite_rows(kept, impl_->config.audio_channels, first_sample, kDecoderWhere, "sample");
    sink(first_sample, kept);
  }
}

}  // namespace assay::music
