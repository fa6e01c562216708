#include "formats/hf_config.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "formats/json.hpp"

namespace assay::formats {
namespace {

[[noreturn]] void fail_unsupported(const JsonFields& fields, std::string_view key, std::string found,
                                   std::string expected) {
  throw Error(ErrorKind::unsupported,
              {.where = fields.where(key), .found = std::move(found), .expected = std::move(expected)});
}

std::size_t size_field(const JsonFields& fields, std::string_view key,
                       std::optional<std::size_t> fallback = {}) {
  if (const auto value = fields.unsigned_integer(key)) return static_cast<std::size_t>(*value);
  if (fallback) return *fallback;
  throw Error(ErrorKind::missing, {.where = fields.where(key), .found = "not there", .expected = "a size"});
}

Family read_family(const JsonFields& fields) {
  const std::string type = fields.string("model_type").value_or("");
  if (type == "qwen3") return Family::qwen3;
  if (type == "qwen3_5_text" || type == "qwen3_5") return Family::qwen3_5;
  if (type.find("moe") != std::string::npos) {
    fail_unsupported(fields, "model_type", "'" + type + "', a mixture of experts", "qwen3 or qwen3_5");
  }
  fail_unsupported(fields, "model_type", type.empty() ? "not there" : "'" + type.substr(0, 40) + "'",
                   "qwen3 or qwen3_5");
}

void refuse_experts(const JsonFields& fields) {
  for (const char* key : {"num_experts", "num_local_experts", "num_experts_per_tok"}) {
    if (fields.unsigned_integer(key).value_or(0) > 0)
      fail_unsupported(fields, key, "a mixture of experts", "a dense model");
  }
}

/// Features that change the arithmetic: each is refused by name rather than computed wrongly.
void refuse_other_features(const JsonFields& fields) {
  refuse_experts(fields);
  if (fields.has("quantization_config")) {
    fail_unsupported(fields, "quantization_config", "quantised weights", "F32, F16 or BF16 weights");
  }
  if (fields.boolean("attention_bias").value_or(false)) {
    fail_unsupported(fields, "attention_bias", "true", "attention without biases");
  }
  if (fields.boolean("use_sliding_window").value_or(false)) {
    fail_unsupported(fields, "use_sliding_window", "true", "attention to the whole context");
  }
  if (!fields.boolean("attn_output_gate").value_or(true)) {
    fail_unsupported(fields, "attn_output_gate", "false", "Qwen3.5's gated attention");
  }
  const std::string activation = fields.string("hidden_act").value_or("silu");
  if (activation != "silu") {
    fail_unsupported(fields, "hidden_act", "'" + activation.substr(0, 40) + "'", "silu");
  }
}

LayerType read_layer_type(const JsonFields& fields, const nlohmann::json& value) {
  if (value == "full_attention") return LayerType::full_attention;
  if (value == "linear_attention") return LayerType::linear_attention;
  fail_unsupported(fields, "layer_types", excerpt(value), "full_attention or linear_attention");
}

std::vector<LayerType> read_layers(const JsonFields& fields, Family family) {
  constexpr std::size_t kMaxLayers = 4096;
  const std::size_t count = size_field(fields, "num_hidden_layers");
  if (count == 0 || count > kMaxLayers) {
    throw Error(ErrorKind::malformed, {.where = fields.where("num_hidden_layers"),
                                       .found = std::to_string(count),
                                       .expected = "1 to " + std::to_string(kMaxLayers)});
  }
  std::vector<LayerType> layers;
  if (const nlohmann::json* types = fields.array("layer_types")) {
    for (const nlohmann::json& type : *types) layers.push_back(read_layer_type(fields, type));
    if (layers.size() == count) return layers;
    throw Error(ErrorKind::malformed, {.where = fields.where("layer_types"),
                                       .found = std::to_string(layers.size()) + " layers",
                                       .expected = std::to_string(count) + ", by num_hidden_layers"});
  }
  // transformers' Qwen3_5TextConfig: every full_attention_interval-th layer is a full one.
  const std::size_t interval =
      family == Family::qwen3_5 ? size_field(fields, "full_attention_interval", 4) : 1;
  for (std::size_t i = 0; i < count; ++i) {
    const bool full = interval != 0 && (i + 1) % interval == 0;
    layers.push_back(full ? LayerType::full_attention : LayerType::linear_attention);
  }
  return layers;
}

void check_rope_type(const JsonFields& rope) {
  for (const char* key : {"rope_type", "type"}) {
    const std::string type = rope.string(key).value_or("default");
    // Multi-section positions are equal for text, and then mean the default's.
    if (type != "default" && type != "mrope") {
      fail_unsupported(rope, key, "'" + type.substr(0, 40) + "' rotary positions", "default");
    }
  }
}

std::size_t rotary_dim(std::size_t head_dim, double factor, const JsonFields& fields) {
  if (!(factor > 0 && factor <= 1)) {
    throw Error(ErrorKind::malformed, {.where = fields.where("partial_rotary_factor"),
                                       .found = std::to_string(factor),
                                       .expected = "above 0, at most 1"});
  }
  return static_cast<std::size_t>(static_cast<double>(head_dim) * factor);
}

void read_rope(const JsonFields& fields, ModelConfig& config) {
  const auto parameters = fields.object("rope_parameters");
  const auto scaling = fields.object("rope_scaling");
  if (parameters) check_rope_type(*parameters);
  if (scaling) check_rope_type(*scaling);
  const auto either = [&](const char* key) {
    const auto inner = parameters ? parameters->number(key) : std::nullopt;
    const auto outer = fields.number(key);
    if (inner && outer && *inner != *outer) {
      throw Error(ErrorKind::malformed,
                  {.where = parameters->where(key),
                   .found = std::to_string(*inner),
                   .expected = std::to_string(*outer) + ", as at " + fields.where(key)});
    }
    return inner ? inner : outer;
  };
  const auto theta = either("rope_theta");
  if (!theta) {
    throw Error(ErrorKind::missing,
                {.where = fields.where("rope_theta"), .found = "not there", .expected = "a number"});
  }
  config.rope_theta = static_cast<float>(*theta);
  const double whole = config.family == Family::qwen3_5 ? 0.25 : 1.0;
  config.rotary_dim = rotary_dim(config.head_dim, either("partial_rotary_factor").value_or(whole), fields);
}

void read_linear_attention(const JsonFields& fields, ModelConfig& config) {
  bool any = false;
  for (const LayerType layer : config.layers) any = any || layer == LayerType::linear_attention;
  if (!any) return;
  if (config.family == Family::qwen3) {
    fail_unsupported(fields, "layer_types", "linear_attention in a qwen3 model", "full_attention");
  }
  config.linear_key_heads = size_field(fields, "linear_num_key_heads");
  config.linear_value_heads = size_field(fields, "linear_num_value_heads");
  config.linear_key_dim = size_field(fields, "linear_key_head_dim");
  config.linear_value_dim = size_field(fields, "linear_value_head_dim");
  config.linear_conv_width = size_field(fields, "linear_conv_kernel_dim", 4);
}

ModelConfig read_text_config(const JsonFields& fields) {
  refuse_experts(fields);
  ModelConfig config;
  config.family = read_family(fields);
  refuse_other_features(fields);
  config.hidden_size = size_field(fields, "hidden_size");
  config.intermediate_size = size_field(fields, "intermediate_size");
  config.vocabulary_size = size_field(fields, "vocab_size");
  config.layers = read_layers(fields, config.family);
  config.heads = size_field(fields, "num_attention_heads");
  config.kv_heads = size_field(fields, "num_key_value_heads", config.heads);
  config.head_dim = size_field(fields, "head_dim", config.family == Family::qwen3_5 ? 256 : 128);
  config.rms_norm_eps = static_cast<float>(fields.number("rms_norm_eps").value_or(1e-6));
  config.max_positions = size_field(fields, "max_position_embeddings", 32768);
  read_rope(fields, config);
  read_linear_attention(fields, config);
  return config;
}

class Checker {
 public:
  explicit Checker(const std::string& origin) : origin_(origin) {}

  void size(const char* field, std::size_t value, std::size_t limit) const {
    if (value == 0 || value > limit) fail(field, std::to_string(value), "1 to " + std::to_string(limit));
  }
  void multiple(const char* field, std::size_t value, std::size_t of, const char* of_field) const {
    if (value % of != 0) {
      fail(field, std::to_string(value),
           "a multiple of " + std::string(of_field) + ", " + std::to_string(of));
    }
  }
  void positive(const char* field, float value) const {
    if (!(value > 0) || !std::isfinite(value))
      fail(field, fmt::format("{}", value), "a finite number above 0");
  }
  [[noreturn]] void fail(const char* field, std::string found, std::string expected) const {
    throw Error(
        ErrorKind::malformed,
        {.where = origin_ + ": " + field, .found = std::move(found), .expected = std::move(expected)});
  }

 private:
  const std::string& origin_;
};

}  // namespace

void check_model_config(const ModelConfig& config, const std::string& origin) {
  // Bounds an order of magnitude above any released model, so that no product of two sizes overflows.
  constexpr std::size_t kWide = std::size_t{1} << 20;
  constexpr std::size_t kHeads = 4096;
  const Checker check(origin);
  check.size("hidden_size", config.hidden_size, kWide);
  check.size("intermediate_size", config.intermediate_size, kWide);
  check.size("vocab_size", config.vocabulary_size, std::size_t{1} << 24);
  check.size("num_hidden_layers", config.layers.size(), kHeads);
  check.size("num_attention_heads", config.heads, kHeads);
  check.size("num_key_value_heads", config.kv_heads, kHeads);
  check.size("head_dim", config.head_dim, kHeads);
  check.size("max_position_embeddings", config.max_positions, std::size_t{1} << 30);
  check.multiple("num_attention_heads", config.heads, config.kv_heads, "num_key_value_heads");
  if (config.rotary_dim == 0 || config.rotary_dim > config.head_dim || config.rotary_dim % 2 != 0) {
    check.fail("partial_rotary_factor", std::to_string(config.rotary_dim) + " rotated values a head",
               "an even number, at most head_dim");
  }
  check.positive("rope_theta", config.rope_theta);
  check.positive("rms_norm_eps", config.rms_norm_eps);
  bool any_linear = false;
  for (const LayerType layer : config.layers) any_linear = any_linear || layer == LayerType::linear_attention;
  if (!any_linear) return;
  check.size("linear_num_key_heads", config.linear_key_heads, kHeads);
  check.size("linear_num_value_heads", config.linear_value_heads, kHeads);
  check.size("linear_key_head_dim", config.linear_key_dim, kHeads);
  check.size("linear_value_head_dim", config.linear_value_dim, kHeads);
  check.size("linear_conv_kernel_dim", config.linear_conv_width, 64);
  check.multiple("linear_num_value_heads", config.linear_value_heads, config.linear_key_heads,
                 "linear_num_key_heads");
}

ModelConfig parse_hf_config(std::string_view json, const std::string& origin) {
  const nlohmann::json document = parse_json(json, origin);
  const JsonFields root(document, origin);
  const auto nested = root.object("text_config");
  if (nested && root.has("quantization_config")) {
    fail_unsupported(root, "quantization_config", "quantised weights", "F32, F16 or BF16 weights");
  }
  const ModelConfig config = read_text_config(nested ? *nested : root);
  check_model_config(config, origin);
  return config;
}

}  // namespace assay::formats
