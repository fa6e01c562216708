#include "lab/synthetic_weights.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "device/memory.hpp"

namespace assay::lab {
namespace {

using formats::Family;
using formats::LayerType;
using formats::ModelConfig;
using formats::TensorInfo;

constexpr std::string_view kEmbedding = "embed_tokens.weight";
constexpr std::string_view kOrigin = "synthetic weights";

struct Shape {
  std::string_view name;
  std::size_t hidden_size, intermediate_size, layers, heads, kv_heads, linear_key_heads, linear_value_heads,
      vocabulary_size;
};
constexpr std::array kShapes{
    Shape{"kev-0.8b", 1024, 3584, 24, 8, 2, 16, 16, 248320},
    Shape{"kev-4b", 2560, 9216, 32, 16, 4, 16, 32, 248320},
    Shape{"kev-tiny", 256, 640, 4, 2, 1, 2, 4, 1536},
};

ModelConfig make_config(const Shape& shape) {
  ModelConfig config;
  config.family = Family::qwen3_5;
  config.hidden_size = shape.hidden_size;
  config.intermediate_size = shape.intermediate_size;
  config.vocabulary_size = shape.vocabulary_size;
  for (std::size_t i = 0; i < shape.layers; ++i) {
    config.layers.push_back(i % 4 == 3 ? LayerType::full_attention : LayerType::linear_attention);
  }
  config.heads = shape.heads;
  config.kv_heads = shape.kv_heads;
  config.head_dim = 256;
  config.rotary_dim = 64;
  config.rope_theta = 1e7f;
  config.rms_norm_eps = 1e-6f;
  config.max_positions = 262144;
  config.linear_key_heads = shape.linear_key_heads;
  config.linear_value_heads = shape.linear_value_heads;
  config.linear_key_dim = 128;
  config.linear_value_dim = 128;
  config.linear_conv_width = 4;
  return config;
}

/// murmur3's finalizer (Appleby, MurmurHash3.cpp, fmix32): every input bit reaches every output bit.
constexpr std::uint32_t mix(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

/// Mean and standard deviation of a tensor's elements.
struct Spread {
  float mean;
  float deviation;
};

struct Tensor {
  TensorInfo info;
  Spread spread;
  std::uint32_t seed;
};

std::size_t row_elements(const TensorInfo& info) {
  std::size_t count = 1;
  for (std::size_t i = 1; i < info.shape.size(); ++i) count *= info.shape[i];
  return count;
}

void generate_row(const Tensor& tensor, std::uint64_t row, std::span<float> out) {
  const std::uint32_t seed = mix(tensor.seed + static_cast<std::uint32_t>(row) * 0x9e3779b1u);
  // 16 random bits make an even spread over ±√3 deviations, whose standard deviation is one of them.
  const float step = tensor.spread.deviation * std::sqrt(3.0f) / 32768.0f;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint32_t bits = mix(seed + static_cast<std::uint32_t>(i) * 0x9e3779b1u);
    const auto even = static_cast<float>(static_cast<std::int32_t>(bits) >> 16);
    const float value = tensor.spread.mean + step * even;
    out[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffff0000u);
  }
}

using Tensors = std::map<std::string, Tensor, std::less<>>;

void add_tensor(Tensors& tensors, std::string name, std::vector<std::uint64_t> shape, Spread spread,
                std::uint64_t seed) {
  const auto number = static_cast<std::uint32_t>(tensors.size());
  const auto own = mix(static_cast<std::uint32_t>(seed ^ (seed >> 32)) + mix(number));
  tensors.emplace(name, Tensor{{name, DType::bf16, std::move(shape), std::string(kOrigin)}, spread, own});
}

/// The tensors that a checkpoint of this shape has, by their names without prefix.
class TensorList {
 public:
  TensorList(const ModelConfig& config, std::uint64_t seed) : config_(config), seed_(seed) {
    add(std::string(kEmbedding), {config.vocabulary_size, config.hidden_size}, {0, 1});
    for (std::size_t i = 0; i < config.layers.size(); ++i) add_layer(i);
    add("norm.weight", {config.hidden_size}, norm_spread());
  }

  Tensors take() { return std::move(tensors_); }

 private:
  void add(std::string name, std::vector<std::uint64_t> shape, Spread spread) {
    add_tensor(tensors_, std::move(name), std::move(shape), spread, seed_);
  }

  void add_linear(const std::string& name, std::size_t out, std::size_t in) {
    add(name + ".weight", {out, in}, {0, 1.6f / std::sqrt(static_cast<float>(in))});
  }

  /// Qwen3.5 stores a norm's distance from one.
  Spread norm_spread() const { return {config_.family == Family::qwen3_5 ? 0.0f : 1.0f, 0.1f}; }

  void add_layer(std::size_t index) {
    const std::string prefix = "layers." + std::to_string(index) + ".";
    add(prefix + "input_layernorm.weight", {config_.hidden_size}, norm_spread());
    add(prefix + "post_attention_layernorm.weight", {config_.hidden_size}, norm_spread());
    if (config_.layers[index] == LayerType::full_attention) {
      add_attention(prefix + "self_attn.");
    } else {
      add_linear_attention(prefix + "linear_attn.");
    }
    add_linear(prefix + "mlp.gate_proj", config_.intermediate_size, config_.hidden_size);
    add_linear(prefix + "mlp.up_proj", config_.intermediate_size, config_.hidden_size);
    add_linear(prefix + "mlp.down_proj", config_.hidden_size, config_.intermediate_size);
  }

  void add_attention(const std::string& prefix) {
    const std::size_t query_size = config_.heads * config_.head_dim;
    const std::size_t key_size = config_.kv_heads * config_.head_dim;
    const std::size_t gates = config_.family == Family::qwen3_5 ? 2 : 1;
    add_linear(prefix + "q_proj", gates * query_size, config_.hidden_size);
    add_linear(prefix + "k_proj", key_size, config_.hidden_size);
    add_linear(prefix + "v_proj", key_size, config_.hidden_size);
    add_linear(prefix + "o_proj", config_.hidden_size, query_size);
    add(prefix + "q_norm.weight", {config_.head_dim}, norm_spread());
    add(prefix + "k_norm.weight", {config_.head_dim}, norm_spread());
  }

  void add_linear_attention(const std::string& prefix) {
    const std::size_t value_heads = config_.linear_value_heads;
    add_linear(prefix + "in_proj_qkv", config_.conv_channels(), config_.hidden_size);
    add_linear(prefix + "in_proj_z", config_.linear_value_size(), config_.hidden_size);
    add_linear(prefix + "in_proj_b", value_heads, config_.hidden_size);
    add_linear(prefix + "in_proj_a", value_heads, config_.hidden_size);
    add_linear(prefix + "out_proj", config_.hidden_size, config_.linear_value_size());
    add(prefix + "conv1d.weight", {config_.conv_channels(), 1, config_.linear_conv_width}, {0, 0.6f});
    // Decays and steps as Gated DeltaNet initialises them, so that states neither vanish nor pile up.
    add(prefix + "A_log", {value_heads}, {0.7f, 0.75f});
    add(prefix + "dt_bias", {value_heads}, {-2.0f, 0.5f});
    add(prefix + "norm.weight", {config_.linear_value_dim}, {1.0f, 0.1f});
  }

  const ModelConfig& config_;
  std::uint64_t seed_;
  Tensors tensors_;
};

class SyntheticWeights final : public formats::TensorSource {
 public:
  explicit SyntheticWeights(Tensors tensors) : tensors_(std::move(tensors)) {}

  const TensorInfo* find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second.info;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    return names;
  }

  void read_rows(std::string_view name, std::uint64_t first, std::uint64_t count,
                 std::span<float> out) const override {
    const TensorInfo& info = formats::require(*this, name);
    const std::size_t width = row_elements(info);
    if (first > info.shape[0] || count > info.shape[0] - first || out.size() != count * width) {
      throw Error(ErrorKind::invalid_argument,
                  {.where = info.origin + ", " + info.name,
                   .found = "rows " + std::to_string(first) + " to " + std::to_string(first + count),
                   .expected = "rows of " + formats::describe_shape(info.shape)});
    }
    const Tensor& tensor = tensors_.find(name)->second;
    for (std::uint64_t row = 0; row < count; ++row) {
      generate_row(tensor, first + row, out.subspan(row * width, width));
    }
  }

  std::span<const std::byte> stored_bytes(std::string_view name) const override {
    if (name != kEmbedding) return {};
    const std::lock_guard lock(mutex_);
    if (table_.size() == 0) make_table();
    return std::as_bytes(table_.span());
  }

  void release(std::string_view name) const override {
    if (name != kEmbedding) return;
    const std::lock_guard lock(mutex_);
    table_ = {};
  }

 private:
  void make_table() const {
    const Tensor& tensor = tensors_.find(kEmbedding)->second;
    const std::size_t width = row_elements(tensor.info);
    table_ = device::Buffer<std::uint16_t>(formats::element_count(tensor.info));
    std::vector<float> row(width);
    for (std::uint64_t r = 0; r < tensor.info.shape[0]; ++r) {
      generate_row(tensor, r, row);
      std::transform(row.begin(), row.end(), table_.data() + r * width, float_to_bf16);
    }
  }

  Tensors tensors_;
  mutable std::mutex mutex_;
  mutable device::Buffer<std::uint16_t> table_;
};

}  // namespace

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  names.reserve(kShapes.size());
  for (const Shape& shape : kShapes) names.emplace_back(shape.name);
  return names;
}

ModelConfig shape_config(std::string_view name) {
  for (const Shape& shape : kShapes) {
    if (shape.name == name) return make_config(shape);
  }
  std::string known;
  for (const Shape& shape : kShapes) known += (known.empty() ? "" : ", ") + std::string(shape.name);
  throw Error(ErrorKind::invalid_argument,
              {.where = "--shape", .found = "\"" + std::string(name) + "\"", .expected = "one of " + known});
}

std::shared_ptr<const formats::TensorSource> synthetic_weights(const ModelConfig& config,
                                                               std::uint64_t seed) {
  return std::make_shared<SyntheticWeights>(TensorList(config, seed).take());
}

std::shared_ptr<const formats::TensorSource> synthetic_tensors(const std::vector<SyntheticTensor>& list,
                                                               std::uint64_t seed) {
  Tensors tensors;
  for (const SyntheticTensor& tensor : list) {
    add_tensor(tensors, tensor.name, tensor.shape, {tensor.mean, tensor.deviation}, seed);
  }
  return std::make_shared<SyntheticWeights>(std::move(tensors));
}

}  // namespace assay::lab
