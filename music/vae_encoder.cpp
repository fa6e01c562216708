#include <array>
#include <utility>

#include "music/vae.hpp"
#include "music/vae_pass.hpp"

namespace assay::music {
namespace {

constexpr const char* kEncoderWhere = "VAE encoder";
constexpr std::size_t kMeanKernel = 3;

}  // namespace

struct VaeEncoder::Impl {
  struct Block {
    std::array<ResidualUnit, std::size(kUnitDilations)> units;
    SnakeLayer snake;
    ConvLayer down;
  };

  VaeConfig config;
  device::ThreadPool& threads;
  ConvLayer first;
  std::vector<Block> blocks;
  SnakeLayer last_snake;
  ConvLayer mean;
  std::size_t reach = 0;

  Impl(const VaeConfig& of, const formats::TensorSource& source, const ops::Selection& selection,
       device::ThreadPool& with)
      : config(of), threads(with) {
    check_strides(config);
    if (config.encoder_channels != 2 * config.latent_width) {
      throw Error(ErrorKind::mismatch,
                  {.where = "VAE configuration, encoder_hidden_size",
                   .found = std::to_string(config.encoder_channels),
                   .expected = "a mean and a scale for each of " + std::to_string(config.latent_width) +
                               " latent channels"});
    }
    const VaeLoader loader(source, selection);
    std::size_t channels = config.encoder_channels;
    first = loader.conv("encoder.conv1", {channels, config.audio_channels, kWideKernel}, true);
    for (std::size_t i = 0; i < config.strides.size(); ++i) {
      const std::size_t above = config.encoder_channels * config.multiples[i];
      blocks.push_back(
          load_block(loader, "encoder.block." + std::to_string(i), channels, above, config.strides[i]));
      channels = above;
    }
    last_snake = loader.snake("encoder.snake1", channels);
    // The first half of the outputs is the mean; the other, the scale, is not asked for.
    mean = loader.conv("encoder.conv2", {config.encoder_channels, channels, kMeanKernel}, true,
                       config.latent_width);
    reach = find_reach();
  }

  static Block load_block(const VaeLoader& loader, const std::string& name, std::size_t in, std::size_t out,
                          std::size_t stride) {
    Block block;
    for (std::size_t u = 0; u < block.units.size(); ++u) {
      block.units[u] = loader.unit(name + ".res_unit" + std::to_string(u + 1), in, kUnitDilations[u]);
    }
    block.snake = loader.snake(name + ".snake1", in);
    block.down = loader.conv(name + ".conv1", {out, in, 2 * stride}, true);
    block.down.stride = stride;
    block.down.padding = (stride + 1) / 2;
    return block;
  }

  std::size_t find_reach() const {
    constexpr std::size_t kFrame = 1 << 16;
    std::size_t low = kFrame;
    std::size_t high = kFrame;
    const auto read = [&](const ConvLayer& layer) {
      low = low * layer.stride - layer.padding;
      high = high * layer.stride - layer.padding + (layer.weight.shape.kernel - 1) * layer.dilation;
    };
    read(mean);
    for (std::size_t b = blocks.size(); b-- > 0;) {
      read(blocks[b].down);
      for (const ResidualUnit& unit : blocks[b].units) read(unit.conv1);
    }
    read(first);
    const std::size_t samples = config.samples_per_frame();
    return std::max(kFrame - low / samples, high / samples - kFrame);
  }

  double work(std::size_t samples) const {
    double sum = multiply_adds(first, samples);
    std::size_t rows = samples;
    for (const Block& block : blocks) {
      for (const ResidualUnit& unit : block.units) {
        sum += multiply_adds(unit.conv1, rows) + multiply_adds(unit.conv2, rows);
      }
      rows = ops::conv1d_length(conv_arguments(block.down, rows));
      sum += multiply_adds(block.down, rows);
    }
    return sum + multiply_adds(mean, rows);
  }

  std::size_t widest(std::size_t samples) const {
    std::size_t rows = samples;
    std::size_t most = rows * first.weight.shape.out_channels;
    for (const Block& block : blocks) {
      rows = ops::conv1d_length(conv_arguments(block.down, rows));
      most = std::max(most, rows * block.down.weight.shape.out_channels);
    }
    return most;
  }

  /// The means of a window, in one of the buffers.
  std::span<const float> run(const ops::Context& context, std::span<const float> interleaved,
                             Course& course) const {
    const std::size_t samples = interleaved.size() / config.audio_channels;
    const TwoBuffers buffers(context.arena, widest(samples));
    const VaePass pass(context, kEncoderWhere, course);
    const Inputs input{interleaved.data(), samples, config.audio_channels};
    Activations x = pass.conv(first, input, {}, buffers.other_than(nullptr));
    for (const Block& block : blocks) {
      for (const ResidualUnit& unit : block.units) pass.unit(unit, x, buffers.other_than(x.data));
      x = pass.conv(block.down, x, {.input = block.snake.channels()}, buffers.other_than(x.data));
    }
    x = pass.conv(mean, x, {.input = last_snake.channels()}, buffers.other_than(x.data));
    return {x.data, x.rows * x.channels};
  }

  std::size_t weight_bytes() const {
    std::size_t sum = first.weight.data.size() + mean.weight.data.size();
    for (const Block& block : blocks) {
      sum += block.down.weight.data.size();
      for (const ResidualUnit& unit : block.units) {
        sum += unit.conv1.weight.data.size() + unit.conv2.weight.data.size();
      }
    }
    return sum;
  }
};

VaeEncoder::VaeEncoder(const VaeConfig& config, const formats::TensorSource& source,
                       const ops::Selection& selection, device::ThreadPool& threads)
    : impl_(std::make_unique<Impl>(config, source, selection, threads)) {}
VaeEncoder::~VaeEncoder() = default;
VaeEncoder::VaeEncoder(VaeEncoder&&) noexcept = default;
VaeEncoder& VaeEncoder::operator=(VaeEncoder&&) noexcept = default;

std::size_t VaeEncoder::reach() const {
  return impl_->reach;
}

std::size_t VaeEncoder::weight_bytes() const {
  return impl_->weight_bytes();
}

std::vector<float> VaeEncoder::encode(std::span<const float> interleaved, const VaeOptions& options) const {
  const std::size_t pair = impl_->config.audio_channels;
  const std::size_t frame = impl_->config.samples_per_frame();
  check_rows(interleaved, pair, kEncoderWhere, "sample");
  const std::size_t samples = interleaved.size() / pair;
  const std::size_t frames = samples / frame;
  if (frames == 0) {
    throw Error(ErrorKind::invalid_argument, {.where = kEncoderWhere,
                                              .found = std::to_string(samples) + " samples",
                                              .expected = "at least a frame of " + std::to_string(frame)});
  }
  const std::vector<VaeWindow> windows = vae_windows(frames, impl_->reach, options);
  // The last window takes what is left of a frame.
  const auto end = [&](const VaeWindow& window) {
    return window.last == frames ? samples : window.last * frame;
  };
  double work = 0;
  for (const VaeWindow& window : windows) work += impl_->work(end(window) - window.first * frame);
  Course course(options, work);
  device::Arena arena;
  const ops::Context context{impl_->threads, arena};
  const std::size_t width = impl_->config.latent_width;
  std::vector<float> latents;
  latents.reserve(frames * width);
  for (const VaeWindow& window : windows) {
    const device::Arena::Scope scope(arena);
    const std::size_t first = window.first * frame;
    const auto means =
        impl_->run(context, interleaved.subspan(first * pair, (end(window) - first) * pair), course);
    const auto kept =
        means.subspan((window.begin - window.first) * width, (window.end - window.begin) * width);
    check_finite_rows(kept, width, window.begin, kEncoderWhere, "latent frame");
    latents.insert(latents.end(), kept.begin(), kept.end());
  }
  return latents;
}

}  // namespace assay::music
