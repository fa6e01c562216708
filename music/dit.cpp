#include "music/dit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "music/dit_pass.hpp"

namespace assay::music {
namespace {

constexpr const char* kDitStage = "DiT";

std::string layer_name(std::size_t index) {
  return "layers." + std::to_string(index) + ".";
}

DitLayer load_dit_layer(const WeightLoader& loader, const BlockConfig& config, const std::string& prefix) {
  const std::size_t hidden = config.hidden_size;
  return {
      .self_norm = loader.vector(prefix + "self_attn_norm.weight", hidden),
      .self_attention = load_self_attention(loader, config, prefix + "self_attn."),
      .cross_norm = loader.vector(prefix + "cross_attn_norm.weight", hidden),
      .cross_attention = load_cross_attention(loader, config, prefix + "cross_attn."),
      .mlp_norm = loader.vector(prefix + "mlp_norm.weight", hidden),
      .mlp = load_mlp(loader, config, prefix + "mlp."),
      .modulation = loader.values(prefix + "scale_shift_table", std::array<std::uint64_t, 3>{1, 6, hidden})};
}

/// The convolution whose kernel is its stride, as a product: a token's frames lie side by side in a row.
Linear load_patch_in(const WeightLoader& loader, const DitConfig& config) {
  const std::size_t hidden = config.stack.block.hidden_size;
  const std::size_t channels = config.in_channels;
  const std::size_t patch = config.patch;
  const std::vector<float> stored =
      loader.values("proj_in_conv.weight", std::array<std::uint64_t, 3>{hidden, channels, patch});
  std::vector<float> rows(stored.size());
  for (std::size_t n = 0; n < hidden; ++n) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t p = 0; p < patch; ++p)
        rows[(n * patch + p) * channels + c] = stored[(n * channels + c) * patch + p];
    }
  }
  return {.w = loader.product(rows, hidden, patch * channels),
          .bias = loader.vector("proj_in_conv.bias", hidden)};
}

/// The transposed convolution whose kernel is its stride: a row of the product is a token's frames side by
/// side.
Linear load_patch_out(const WeightLoader& loader, const DitConfig& config) {
  const std::size_t hidden = config.stack.block.hidden_size;
  const std::size_t channels = config.latent_width;
  const std::size_t patch = config.patch;
  const std::vector<float> stored =
      loader.values("proj_out_conv.weight", std::array<std::uint64_t, 3>{hidden, channels, patch});
  std::vector<float> rows(stored.size());
  for (std::size_t h = 0; h < hidden; ++h) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t p = 0; p < patch; ++p)
        rows[(p * channels + c) * hidden + h] = stored[(h * channels + c) * patch + p];
    }
  }
  Linear linear{.w = loader.product(rows, patch * channels, hidden), .bias = {}};
  const std::vector<float> bias = loader.vector("proj_out_conv.bias", channels);
  for (std::size_t p = 0; p < patch; ++p) linear.bias.insert(linear.bias.end(), bias.begin(), bias.end());
  return linear;
}

std::size_t packed_bytes(const DitLayer& layer) {
  std::size_t bytes = 0;
  for (const ops::MatmulWeight* w :
       {&layer.self_attention.qkv, &layer.self_attention.out, &layer.cross_attention.q,
        &layer.cross_attention.kv, &layer.cross_attention.out, &layer.mlp.gate_up, &layer.mlp.down}) {
    bytes += w->data.bytes();
  }
  return bytes;
}

DitWeights load_dit(const DitConfig& config, const WeightLoader& loader,
                    const std::function<void(std::size_t, std::size_t)>& progress) {
  const std::size_t hidden = config.stack.block.hidden_size;
  DitWeights weights{
      .patch_in = load_patch_in(loader, config),
      .time = TimeEmbedding(loader, hidden, "time_embed."),
      .time_difference = TimeEmbedding(loader, hidden, "time_embed_r."),
      .condition = loader.linear("condition_embedder", hidden, config.condition_size),
      .layers = {},
      .out_norm = loader.vector("norm_out.weight", hidden),
      .out_modulation = loader.values("scale_shift_table", std::array<std::uint64_t, 3>{1, 2, hidden}),
      .patch_out = load_patch_out(loader, config)};
  weights.bytes = weights.patch_in.w.data.bytes() + weights.time.weight_bytes() +
                  weights.time_difference.weight_bytes() + weights.condition.w.data.bytes() +
                  weights.patch_out.w.data.bytes();
  const std::size_t total = config.stack.sliding.size();
  weights.layers.reserve(total);
  for (std::size_t i = 0; i < total; ++i) {
    weights.layers.push_back(load_dit_layer(loader, config.stack.block, layer_name(i)));
    weights.bytes += packed_bytes(weights.layers.back());
    if (progress) progress(i + 1, total);
  }
  return weights;
}

void expect_rows(std::size_t values, std::size_t rows, std::size_t width, std::size_t song,
                 const char* what) {
  if (values == rows * width) return;
  throw Error(ErrorKind::mismatch, {.where = "DiT: song " + std::to_string(song) + ", " + what,
                                    .found = std::to_string(values) + " values",
                                    .expected = std::to_string(rows) + " rows of " + std::to_string(width)});
}

/// Frames of a song, whose parts have been checked against each other.
std::size_t checked_frames(const DitConfig& config, const DitSong& song, std::size_t index) {
  const std::size_t frames = song.noisy.size() / config.latent_width;
  if (frames == 0) {
    throw Error(
        ErrorKind::mismatch,
        {.where = "DiT: song " + std::to_string(index), .found = "no frames", .expected = "at least one"});
  }
  expect_rows(song.noisy.size(), frames, config.latent_width, index, "noisy latents");
  expect_rows(song.context.size(), frames, config.in_channels - config.latent_width, index, "context");
  expect_rows(song.velocity.size(), frames, config.latent_width, index, "velocity");
  const std::size_t keys = song.condition == nullptr ? 0 : song.condition->keys.size();
  const std::size_t width = cross_key_width(config) * config.stack.sliding.size();
  if (keys == 0 || keys != song.condition->rows * width) {
    throw Error(ErrorKind::mismatch, {.where = "DiT: song " + std::to_string(index) + ", condition",
                                      .found = std::to_string(keys) + " prepared values",
                                      .expected = "what this Dit's prepare() gave"});
  }
  return frames;
}

void check_velocity(std::span<const float> velocity, std::size_t width, std::size_t song, float t) {
  const auto bad = std::ranges::find_if_not(velocity, [](float value) { return std::isfinite(value); });
  if (bad == velocity.end()) return;
  const std::size_t frame = static_cast<std::size_t>(bad - velocity.begin()) / width;
  throw Error(
      ErrorKind::non_finite,
      {.where = "DiT: velocity of song " + std::to_string(song) + " at t = " + std::to_string(t) +
                ", frame " + std::to_string(frame),
       .found = "a NaN or infinity",
       .advice =
           "the weights overflow in this precision: run with --precision fp32 or check the checkpoint"});
}

}  // namespace

struct Dit::Impl {
  DitConfig config;
  ops::Selection forms;
  device::ThreadPool& threads;
  device::Arena arena;
  DitWeights weights;
  /// Modulation of the last t − r, which is 0 at every step of what is released.
  std::optional<float> difference = {};
  TimeModulation difference_modulation = {};
};

Dit::Dit(const DitConfig& config, const formats::TensorSource& source, const ops::Selection& forms,
         device::ThreadPool& threads, const std::function<void(std::size_t, std::size_t)>& progress,
         const std::stop_token& stop)
    : impl_(new Impl{config,
                     forms,
                     threads,
                     {},
                     load_dit(config, WeightLoader(source, *forms.matmul, {stop, kDitStage}), progress)}) {}

Dit::~Dit() = default;

const DitConfig& Dit::config() const noexcept {
  return impl_->config;
}

std::size_t Dit::weight_bytes() const noexcept {
  return impl_->weights.bytes;
}

PreparedCondition Dit::prepare(std::span<const float> condition, const std::stop_token& stop) {
  const DitConfig& config = impl_->config;
  const std::size_t rows = condition.size() / config.condition_size;
  if (rows == 0 || condition.size() % config.condition_size != 0) {
    throw Error(ErrorKind::mismatch,
                {.where = "DiT: condition",
                 .found = std::to_string(condition.size()) + " values",
                 .expected = "one or more rows of " + std::to_string(config.condition_size)});
  }
  const device::Arena::Scope scope(impl_->arena);
  const ops::Context context{impl_->threads, impl_->arena};
  const std::size_t hidden = config.stack.block.hidden_size;
  const std::span<float> embedded = impl_->arena.allocate<float>(rows * hidden);
  run_linear(context, impl_->weights.condition, {condition.data(), config.condition_size}, rows,
             {embedded.data(), hidden});
  PreparedCondition prepared{.rows = rows};
  const std::size_t layer_size = rows * cross_key_width(config);
  prepared.keys = device::Buffer<float>(impl_->weights.layers.size() * layer_size);
  for (std::size_t i = 0; i < impl_->weights.layers.size(); ++i) {
    StopPoint{stop, kDitStage}.check();
    project_cross_keys(context, impl_->forms, config.stack.block, impl_->weights.layers[i].cross_attention,
                       embedded.data(), rows, prepared.keys.data() + i * layer_size);
  }
  return prepared;
}

void Dit::velocity(float t, float r, std::span<const DitSong> songs, const std::stop_token& stop) {
  Impl& impl = *impl_;
  std::vector<std::size_t> frames;
  for (std::size_t i = 0; i < songs.size(); ++i) frames.push_back(checked_frames(impl.config, songs[i], i));
  if (songs.empty()) return;

  const ops::Context context{impl.threads, impl.arena};
  TimeModulation modulation = impl.weights.time.at(context, t);
  if (impl.difference != t - r) {
    impl.difference_modulation = impl.weights.time_difference.at(context, t - r);
    impl.difference = t - r;
  }
  const auto add = [](std::vector<float>& to, const std::vector<float>& from) {
    std::ranges::transform(to, from, to.begin(), std::plus<>());
  };
  add(modulation.embedding, impl.difference_modulation.embedding);
  add(modulation.rows, impl.difference_modulation.rows);

  impl.arena.reserve(DitPass::arena_bytes(impl.config, frames));
  const device::Arena::Scope scope(impl.arena);
  DitPass pass(impl.config, impl.weights, impl.forms, context, songs, frames, {stop, kDitStage});
  pass.patch_in();
  for (std::size_t i = 0; i < impl.weights.layers.size(); ++i) {
    pass.layer(i, modulation.rows);
  }
  pass.patch_out(modulation.embedding);
  for (std::size_t i = 0; i < songs.size(); ++i) {
    check_velocity(songs[i].velocity, impl.config.latent_width, i, t);
  }
}

}  // namespace assay::music
