#include "lab/synthetic_music.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "lab/synthetic_weights.hpp"

namespace assay::lab {
namespace {

/// The sizes in which the known shapes differ.
struct MusicSizes {
  std::string_view name;
  std::size_t hidden, intermediate, layers, heads, kv_heads, sliding_window, lyric_layers, timbre_layers;
  std::size_t text_hidden, text_intermediate, text_layers, text_heads, text_kv_heads, vocabulary;
  std::size_t vae_channels;
  std::array<std::size_t, 5> vae_multiples;
};
constexpr std::array kMusicSizes{
    MusicSizes{
        "turbo", 2048, 6144, 24, 16, 8, 128, 8, 4, 1024, 3072, 28, 16, 8, 151669, 128, {1, 2, 4, 8, 16}},
    MusicSizes{"tiny", 256, 512, 4, 2, 1, 16, 2, 2, 128, 256, 3, 2, 1, 1536, 32, {1, 1, 1, 2, 2}},
};
constexpr std::size_t kHeadDim = 128;
constexpr std::size_t kTimeWidth =
    256;  ///< of the sinusoids (ace_step_transformer.py, AceStepTimestepEmbedding)
constexpr std::size_t kLatentWidth = 64;

/// Sliding and full in turn, sliding first.
std::vector<bool> alternating(std::size_t layers) {
  std::vector<bool> sliding(layers);
  for (std::size_t i = 0; i < layers; ++i) sliding[i] = i % 2 == 0;
  return sliding;
}

formats::ModelConfig text_config(const MusicSizes& sizes) {
  formats::ModelConfig config;
  config.family = formats::Family::qwen3;
  config.hidden_size = sizes.text_hidden;
  config.intermediate_size = sizes.text_intermediate;
  config.vocabulary_size = sizes.vocabulary;
  config.layers.assign(sizes.text_layers, formats::LayerType::full_attention);
  config.heads = sizes.text_heads;
  config.kv_heads = sizes.text_kv_heads;
  config.head_dim = kHeadDim;
  config.rotary_dim = kHeadDim;
  config.rope_theta = 1e6f;
  config.rms_norm_eps = 1e-6f;
  config.max_positions = 32768;
  return config;
}

MusicShape make_music_shape(const MusicSizes& sizes) {
  const music::BlockConfig block{.hidden_size = sizes.hidden,
                                 .intermediate_size = sizes.intermediate,
                                 .heads = sizes.heads,
                                 .kv_heads = sizes.kv_heads,
                                 .head_dim = kHeadDim,
                                 .rope_theta = 1e6f,
                                 .rms_norm_eps = 1e-6f,
                                 .sliding_window = sizes.sliding_window};
  MusicShape shape{
      .name = std::string(sizes.name), .text = text_config(sizes), .condition = {}, .dit = {}, .vae = {}};
  shape.condition = {.block = block,
                     .lyric_sliding = alternating(sizes.lyric_layers),
                     .timbre_sliding = alternating(sizes.timbre_layers),
                     .text_width = sizes.text_hidden,
                     .timbre_width = kLatentWidth};
  shape.dit = {.stack = {.block = block, .sliding = alternating(sizes.layers)},
               .in_channels = 3 * kLatentWidth,
               .latent_width = kLatentWidth,
               .patch = 2,
               .condition_size = sizes.hidden,
               .turbo = true};
  shape.vae = {.audio_channels = 2,
               .latent_width = kLatentWidth,
               .decoder_channels = sizes.vae_channels,
               .encoder_channels = 128,
               .multiples = {sizes.vae_multiples.begin(), sizes.vae_multiples.end()},
               .strides = {2, 4, 4, 6, 10},
               .sample_rate = 48000};
  return shape;
}

/// Collects the tensors of a part.
class MusicTensors {
 public:
  void linear(const std::string& name, std::size_t out, std::size_t in, bool bias = false) {
    spread(name + ".weight", {out, in}, 0, 1 / std::sqrt(static_cast<float>(in)));
    if (bias) spread(name + ".bias", {out}, 0, 0.05f);
  }
  void norm(const std::string& name, std::size_t width) { spread(name + ".weight", {width}, 1, 0.1f); }
  void spread(std::string name, std::vector<std::uint64_t> shape, float mean, float deviation) {
    list_.push_back({std::move(name), std::move(shape), mean, deviation});
  }

  /// Queries, keys, values and output with their norms.
  void attention(const std::string& prefix, const music::BlockConfig& block) {
    const std::size_t q = block.heads * block.head_dim;
    const std::size_t kv = block.kv_heads * block.head_dim;
    linear(prefix + "to_q", q, block.hidden_size);
    linear(prefix + "to_k", kv, block.hidden_size);
    linear(prefix + "to_v", kv, block.hidden_size);
    linear(prefix + "to_out.0", block.hidden_size, q);
    norm(prefix + "norm_q", block.head_dim);
    norm(prefix + "norm_k", block.head_dim);
  }
  void mlp(const std::string& prefix, const music::BlockConfig& block) {
    linear(prefix + "gate_proj", block.intermediate_size, block.hidden_size);
    linear(prefix + "up_proj", block.intermediate_size, block.hidden_size);
    linear(prefix + "down_proj", block.hidden_size, block.intermediate_size);
  }
  void encoder(const std::string& prefix, const music::BlockConfig& block, std::size_t layers,
               std::size_t in) {
    linear(prefix + "embed_tokens", block.hidden_size, in, true);
    for (std::size_t i = 0; i < layers; ++i) {
      const std::string layer = prefix + "layers." + std::to_string(i) + ".";
      norm(layer + "input_layernorm", block.hidden_size);
      norm(layer + "post_attention_layernorm", block.hidden_size);
      attention(layer + "self_attn.", block);
      mlp(layer + "mlp.", block);
    }
    norm(prefix + "norm", block.hidden_size);
  }

  /// A convolution under weight norm. `lead` is the first dimension of its weight, which the norm keeps:
  /// outputs, or of a transposed one its inputs.
  void conv(const std::string& name, std::size_t lead, std::size_t other, std::size_t kernel,
            std::size_t bias) {
    const float deviation = 1 / std::sqrt(static_cast<float>(other * kernel));
    spread(name + ".weight_v", {lead, other, kernel}, 0, deviation);
    spread(name + ".weight_g", {lead, 1, 1}, 0.75f, 0.14f);
    if (bias > 0) spread(name + ".bias", {bias}, 0, 0.05f);
  }
  void snake(const std::string& name, std::size_t channels) {
    spread(name + ".alpha", {1, channels, 1}, 0, 0.3f);
    spread(name + ".beta", {1, channels, 1}, 0, 0.3f);
  }
  void residual_unit(const std::string& prefix, std::size_t channels) {
    snake(prefix + "snake1", channels);
    conv(prefix + "conv1", channels, channels, 7, channels);
    snake(prefix + "snake2", channels);
    conv(prefix + "conv2", channels, channels, 1, channels);
  }

  std::shared_ptr<const formats::TensorSource> source(std::uint64_t seed) const {
    return synthetic_tensors(list_, seed);
  }

 private:
  std::vector<SyntheticTensor> list_;
};

void add_time_embedding(MusicTensors& tensors, const std::string& prefix, std::size_t hidden) {
  tensors.linear(prefix + "linear_1", hidden, kTimeWidth, true);
  tensors.linear(prefix + "linear_2", hidden, hidden, true);
  tensors.linear(prefix + "time_proj", 6 * hidden, hidden, true);
}

}  // namespace

std::vector<std::string> music_shape_names() {
  std::vector<std::string> names;
  for (const MusicSizes& sizes : kMusicSizes) names.emplace_back(sizes.name);
  return names;
}

MusicShape music_shape(std::string_view name) {
  std::string known;
  for (const MusicSizes& sizes : kMusicSizes) {
    if (sizes.name == name) return make_music_shape(sizes);
    known += (known.empty() ? "" : ", ") + std::string(sizes.name);
  }
  throw Error(ErrorKind::invalid_argument,
              {.where = "--shape", .found = "\"" + std::string(name) + "\"", .expected = "one of " + known});
}

std::shared_ptr<const formats::TensorSource> synthetic_condition(const music::ConditionConfig& config,
                                                                 std::uint64_t seed) {
  const std::size_t hidden = config.block.hidden_size;
  MusicTensors tensors;
  tensors.linear("text_projector", hidden, config.text_width);
  tensors.encoder("lyric_encoder.", config.block, config.lyric_sliding.size(), config.text_width);
  tensors.encoder("timbre_encoder.", config.block, config.timbre_sliding.size(), config.timbre_width);
  tensors.spread("timbre_encoder.special_token", {1, 1, hidden}, 0, 1);
  tensors.spread("null_condition_emb", {1, 1, hidden}, 0, 1);
  return tensors.source(seed);
}

std::shared_ptr<const formats::TensorSource> synthetic_dit(const music::DitConfig& config,
                                                           std::uint64_t seed) {
  const music::BlockConfig& block = config.stack.block;
  const std::size_t hidden = block.hidden_size;
  MusicTensors tensors;
  const auto patches = [&](const std::string& name, std::size_t channels, std::size_t bias) {
    tensors.spread(name + ".weight", {hidden, channels, config.patch}, 0,
                   1 / std::sqrt(static_cast<float>(channels * config.patch)));
    tensors.spread(name + ".bias", {bias}, 0, 0.05f);
  };
  patches("proj_in_conv", config.in_channels, hidden);
  tensors.linear("condition_embedder", hidden, config.condition_size, true);
  add_time_embedding(tensors, "time_embed.", hidden);
  add_time_embedding(tensors, "time_embed_r.", hidden);
  for (std::size_t i = 0; i < config.stack.sliding.size(); ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    tensors.norm(layer + "self_attn_norm", hidden);
    tensors.attention(layer + "self_attn.", block);
    tensors.norm(layer + "cross_attn_norm", hidden);
    tensors.attention(layer + "cross_attn.", block);
    tensors.norm(layer + "mlp_norm", hidden);
    tensors.mlp(layer + "mlp.", block);
    tensors.spread(layer + "scale_shift_table", {1, 6, hidden}, 0, 0.3f);
  }
  tensors.norm("norm_out", hidden);
  tensors.spread("scale_shift_table", {1, 2, hidden}, 0, 0.3f);
  patches("proj_out_conv", config.latent_width, config.latent_width);
  return tensors.source(seed);
}

std::shared_ptr<const formats::TensorSource> synthetic_vae(const music::VaeConfig& config,
                                                           std::uint64_t seed) {
  MusicTensors tensors;
  const std::size_t blocks = config.strides.size();
  const auto channels = [&](std::size_t level) { return config.decoder_channels * config.multiples[level]; };
  tensors.conv("decoder.conv1", channels(blocks - 1), config.latent_width, 7, channels(blocks - 1));
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t level = blocks - 1 - i;
    const std::size_t in = channels(level);
    const std::size_t out = level == 0 ? config.decoder_channels : channels(level - 1);
    const std::string block = "decoder.block." + std::to_string(i) + ".";
    tensors.snake(block + "snake1", in);
    tensors.conv(block + "conv_t1", in, out, 2 * config.strides[level], out);
    for (const char* unit : {"res_unit1.", "res_unit2.", "res_unit3."})
      tensors.residual_unit(block + unit, out);
  }
  tensors.snake("decoder.snake1", config.decoder_channels);
  tensors.conv("decoder.conv2", config.audio_channels, config.decoder_channels, 7, 0);
  return tensors.source(seed);
}

}  // namespace assay::lab
