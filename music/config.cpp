#include "music/config.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "formats/json.hpp"

namespace assay::music {
namespace {

using formats::JsonFields;

// Bounds an order of magnitude above any released model, so that no product of two sizes overflows.
constexpr std::size_t kMostWide = std::size_t{1} << 18;
constexpr std::size_t kMostLayers = 1024;
constexpr std::size_t kMostHeads = 1024;
constexpr std::size_t kLargestCodebook = std::size_t{1} << 20;

[[noreturn]] void fail_config(ErrorKind kind, const JsonFields& fields, std::string_view key,
                              std::string found, std::string expected) {
  throw Error(kind, {.where = fields.where(key), .found = std::move(found), .expected = std::move(expected)});
}

std::size_t size_of(const JsonFields& fields, std::string_view key, std::size_t most,
                    std::optional<std::size_t> fallback = {}) {
  const auto value = fields.unsigned_integer(key);
  if (!value && !fallback) fail_config(ErrorKind::missing, fields, key, "not there", "a size");
  const std::uint64_t size = value ? *value : *fallback;
  if (size == 0 || size > most) {
    fail_config(ErrorKind::malformed, fields, key, std::to_string(size), "1 to " + std::to_string(most));
  }
  return static_cast<std::size_t>(size);
}

float positive_number(const JsonFields& fields, std::string_view key, double fallback) {
  const double value = fields.number(key).value_or(fallback);
  const auto narrow = static_cast<float>(value);
  if (narrow > 0 && std::isfinite(narrow)) return narrow;
  fail_config(ErrorKind::malformed, fields, key, fmt::format("{}", value), "a finite number above 0");
}

/// Names of a block's size fields, which an original checkpoint has twice.
struct BlockNames {
  const char* hidden = "hidden_size";
  const char* intermediate = "intermediate_size";
  const char* heads = "num_attention_heads";
  const char* kv_heads = "num_key_value_heads";
};
constexpr BlockNames kEncoderNames = {"encoder_hidden_size", "encoder_intermediate_size",
                                      "encoder_num_attention_heads", "encoder_num_key_value_heads"};

void refuse_other_blocks(const JsonFields& fields) {
  if (fields.boolean("attention_bias").value_or(false)) {
    fail_config(ErrorKind::unsupported, fields, "attention_bias", "true", "attention without biases");
  }
  if (fields.has("rope_scaling")) {
    fail_config(ErrorKind::unsupported, fields, "rope_scaling", "scaled rotary positions", "none");
  }
  const std::string activation = fields.string("hidden_act").value_or("silu");
  if (activation != "silu") {
    fail_config(ErrorKind::unsupported, fields, "hidden_act", "'" + activation.substr(0, 40) + "'", "silu");
  }
}

BlockConfig read_block(const JsonFields& fields, const BlockNames& names) {
  refuse_other_blocks(fields);
  const BlockNames plain;
  const auto size = [&](const char* name, const char* otherwise, std::size_t most) {
    return size_of(fields, fields.has(name) ? name : otherwise, most);
  };
  BlockConfig block;
  block.hidden_size = size(names.hidden, plain.hidden, kMostWide);
  block.intermediate_size = size(names.intermediate, plain.intermediate, kMostWide);
  block.heads = size(names.heads, plain.heads, kMostHeads);
  block.kv_heads = size(names.kv_heads, plain.kv_heads, kMostHeads);
  block.head_dim = size_of(fields, "head_dim", kMostHeads);
  block.rope_theta = positive_number(fields, "rope_theta", 1e6);
  block.rms_norm_eps = positive_number(fields, "rms_norm_eps", 1e-6);
  block.sliding_window = size_of(fields, "sliding_window", kMostWide, 128);
  if (block.heads % block.kv_heads != 0) {
    fail_config(ErrorKind::malformed, fields, names.heads, std::to_string(block.heads),
                "a multiple of the key and value heads, " + std::to_string(block.kv_heads));
  }
  if (block.head_dim % 2 != 0) {
    fail_config(ErrorKind::malformed, fields, "head_dim", std::to_string(block.head_dim), "an even number");
  }
  return block;
}

/// Which of `count` layers slide. A longer list of types is cut, as the original checkpoint's list of the
/// DiT's layers is for the pooler.
std::vector<bool> read_sliding(const JsonFields& fields, std::size_t count, bool may_cut) {
  const nlohmann::json* types = fields.array("layer_types");
  if (types != nullptr && (may_cut ? types->size() < count : types->size() != count)) {
    fail_config(ErrorKind::malformed, fields, "layer_types", std::to_string(types->size()) + " layers",
                std::to_string(count));
  }
  std::vector<bool> sliding(count);
  for (std::size_t i = 0; i < count; ++i) {
    sliding[i] = i % 2 == 0;
    if (types == nullptr) continue;
    const nlohmann::json& type = (*types)[i];
    if (type != "sliding_attention" && type != "full_attention") {
      fail_config(ErrorKind::unsupported, fields, "layer_types", formats::excerpt(type),
                  "sliding_attention or full_attention");
    }
    sliding[i] = type == "sliding_attention";
  }
  return sliding;
}

DitConfig read_dit(const JsonFields& fields) {
  DitConfig config;
  config.stack.block = read_block(fields, {});
  config.stack.sliding = read_sliding(fields, size_of(fields, "num_hidden_layers", kMostLayers), false);
  config.in_channels = size_of(fields, "in_channels", kMostWide);
  config.latent_width = size_of(fields, "audio_acoustic_hidden_dim", kMostWide);
  config.patch = size_of(fields, "patch_size", 64);
  config.condition_size = size_of(fields, "encoder_hidden_size", kMostWide, config.stack.block.hidden_size);
  config.turbo =
      fields.boolean("is_turbo").value_or(false) || fields.string("model_version").value_or("") == "turbo";
  if (config.in_channels != 3 * config.latent_width) {
    fail_config(ErrorKind::unsupported, fields, "in_channels", std::to_string(config.in_channels),
                "three times audio_acoustic_hidden_dim: source, mask and noisy latents");
  }
  return config;
}

ConditionConfig read_condition(const JsonFields& fields, const BlockNames& names, bool original) {
  const std::size_t lyric = size_of(fields, "num_lyric_encoder_hidden_layers", kMostLayers);
  const std::size_t timbre = size_of(fields, "num_timbre_encoder_hidden_layers", kMostLayers);
  ConditionConfig config;
  config.block = read_block(fields, names);
  config.lyric_sliding = read_sliding(fields, lyric, original);
  config.timbre_sliding = read_sliding(fields, timbre, original);
  config.text_width = size_of(fields, "text_hidden_dim", kMostWide);
  config.timbre_width = size_of(fields, "timbre_hidden_dim", kMostWide);
  return config;
}

AudioTokenConfig read_audio_tokens(const JsonFields& fields, const BlockNames& names, bool original) {
  const std::size_t layers = size_of(fields, "num_attention_pooler_hidden_layers", kMostLayers, 2);
  AudioTokenConfig config;
  config.stack.block = read_block(fields, names);
  config.stack.sliding = read_sliding(fields, layers, original);
  config.latent_width = size_of(fields, "audio_acoustic_hidden_dim", kMostWide);
  config.pool_window = size_of(fields, "pool_window_size", 1024, 5);
  return config;
}

std::vector<std::size_t> read_sizes(const JsonFields& fields, std::string_view key, std::size_t most,
                                    std::vector<std::size_t> fallback = {}) {
  const nlohmann::json* list = fields.array(key);
  if (list == nullptr) {
    if (fallback.empty()) fail_config(ErrorKind::missing, fields, key, "not there", "a list of sizes");
    return fallback;
  }
  constexpr std::size_t kMostItems = 16;
  std::vector<std::size_t> sizes;
  for (const nlohmann::json& item : *list) {
    if (!item.is_number_unsigned() || item == 0 || item > most || sizes.size() == kMostItems) {
      fail_config(ErrorKind::malformed, fields, key, formats::excerpt(*list),
                  "at most 16 sizes of 1 to " + std::to_string(most));
    }
    sizes.push_back(item.get<std::size_t>());
  }
  if (sizes.empty()) fail_config(ErrorKind::malformed, fields, key, "an empty list", "sizes");
  return sizes;
}

/// A product of sizes that other sizes are made of, none of which may overflow for it.
void require_product(const JsonFields& fields, std::string_view key, const std::vector<std::size_t>& sizes,
                     std::size_t most) {
  std::size_t product = 1;
  for (const std::size_t size : sizes) {
    product *= size;  // below 2^18 · 2^18: it was at most `most` before
    if (product <= most) continue;
    fail_config(ErrorKind::malformed, fields, key, "sizes whose product is above " + std::to_string(most),
                "a product of at most that");
  }
}

void read_quantizer(const JsonFields& fields, AudioTokenConfig& config) {
  config.code_width = size_of(fields, "fsq_dim", kMostWide, config.stack.block.hidden_size);
  config.levels = read_sizes(fields, "fsq_input_levels", 1024, {8, 8, 8, 5, 5, 5});
  require_product(fields, "fsq_input_levels", config.levels, kLargestCodebook);
  if (size_of(fields, "fsq_input_num_quantizers", kMostWide, 1) != 1) {
    fail_config(ErrorKind::unsupported, fields, "fsq_input_num_quantizers", "more than one quantizer", "1");
  }
}

void require_equal(const std::string& origin, const char* what, std::size_t found, std::size_t expected) {
  if (found == expected) return;
  throw Error(ErrorKind::mismatch, {.where = origin,
                                    .found = std::string(what) + " of " + std::to_string(found),
                                    .expected = std::to_string(expected),
                                    .advice = "the parts are of different checkpoints"});
}

}  // namespace

DitConfig parse_dit_config(std::string_view json, const std::string& origin) {
  const nlohmann::json document = formats::parse_json(json, origin);
  return read_dit(JsonFields(document, origin));
}

ConditionConfig parse_condition_config(std::string_view json, const std::string& origin) {
  const nlohmann::json document = formats::parse_json(json, origin);
  const JsonFields fields(document, origin);
  return read_condition(fields, {}, true);
}

AudioTokenConfig parse_audio_tokenizer_config(std::string_view json, const std::string& origin) {
  const nlohmann::json document = formats::parse_json(json, origin);
  const JsonFields fields(document, origin);
  AudioTokenConfig config = read_audio_tokens(fields, {}, false);
  read_quantizer(fields, config);
  return config;
}

AudioTokenConfig parse_audio_detokenizer_config(std::string_view json, const std::string& origin) {
  const nlohmann::json document = formats::parse_json(json, origin);
  return read_audio_tokens(JsonFields(document, origin), {}, false);
}

VaeConfig parse_vae_config(std::string_view json, const std::string& origin) {
  const nlohmann::json document = formats::parse_json(json, origin);
  const JsonFields fields(document, origin);
  VaeConfig config;
  config.audio_channels = size_of(fields, "audio_channels", 64);
  config.latent_width = size_of(fields, "decoder_input_channels", kMostWide);
  config.decoder_channels = size_of(fields, "decoder_channels", 65536);
  config.encoder_channels = size_of(fields, "encoder_hidden_size", 65536);
  config.multiples = read_sizes(fields, "channel_multiples", 1024);
  config.strides = read_sizes(fields, "downsampling_ratios", 256);
  config.sample_rate = size_of(fields, "sampling_rate", 1 << 20);
  if (config.multiples.size() != config.strides.size()) {
    fail_config(ErrorKind::malformed, fields, "channel_multiples",
                std::to_string(config.multiples.size()) + " of them",
                std::to_string(config.strides.size()) + ", one for each of downsampling_ratios");
  }
  require_product(fields, "downsampling_ratios", config.strides, kMostWide);
  const std::size_t widest = *std::max_element(config.multiples.begin(), config.multiples.end());
  require_product(fields, "channel_multiples",
                  {widest, std::max(config.decoder_channels, config.encoder_channels)}, kMostWide);
  return config;
}

PartConfigs parse_original_config(std::string_view json, const std::string& origin) {
  const nlohmann::json document = formats::parse_json(json, origin);
  const JsonFields fields(document, origin);
  PartConfigs parts;
  parts.dit = read_dit(fields);
  parts.condition = read_condition(fields, kEncoderNames, true);
  parts.tokenizer = read_audio_tokens(fields, kEncoderNames, true);
  parts.detokenizer = parts.tokenizer;
  read_quantizer(fields, *parts.tokenizer);
  return parts;
}

void check_configs_agree(const PartConfigs& parts, const VaeConfig& vae, std::size_t text_width,
                         const std::string& origin) {
  require_equal(origin, "the text encoder's width", text_width, parts.condition.text_width);
  require_equal(origin, "the condition encoder's width", parts.condition.block.hidden_size,
                parts.dit.condition_size);
  require_equal(origin, "the timbre encoder's input width", parts.condition.timbre_width,
                parts.dit.latent_width);
  require_equal(origin, "the VAE's latent width", vae.latent_width, parts.dit.latent_width);
  if (!parts.tokenizer || !parts.detokenizer) return;
  require_equal(origin, "the audio tokenizer's latent width", parts.tokenizer->latent_width,
                parts.dit.latent_width);
  require_equal(origin, "the audio detokenizer's latent width", parts.detokenizer->latent_width,
                parts.dit.latent_width);
  require_equal(origin, "the audio detokenizer's window", parts.detokenizer->pool_window,
                parts.tokenizer->pool_window);
  require_equal(origin, "the audio detokenizer's width", parts.detokenizer->stack.block.hidden_size,
                parts.tokenizer->code_width);
}

}  // namespace assay::music
