#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "formats/model_config.hpp"
#include "formats/tensor_source.hpp"

namespace assay::backbone {

/// Pseudo-random weights of a configuration's every tensor, made in memory; tests may spoil them.
class SyntheticSource : public formats::TensorSource {
 public:
  explicit SyntheticSource(const formats::ModelConfig& config, std::uint64_t seed = 1) : seed_(seed) {
    fill(config);
  }

  const formats::TensorInfo* find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second.info;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, tensor] : tensors_) result.push_back(name);
    return result;
  }

  void read_rows(std::string_view name, std::uint64_t first, std::uint64_t count,
                 std::span<float> out) const override {
    const Tensor& tensor = tensors_.find(name)->second;
    const std::size_t width = tensor.values.size() / tensor.info.shape.at(0);
    for (std::size_t i = 0; i < count * width; ++i) {
      out[i] = tensor.values[first * width + i];
      if (!std::isfinite(out[i])) {
        throw Error(ErrorKind::non_finite,
                    {.where = tensor.info.origin + ": " + std::string(name), .found = "NaN"});
      }
    }
  }

  std::span<const std::byte> stored_bytes(std::string_view name) const override {
    return std::as_bytes(std::span(tensors_.find(name)->second.values));
  }
  void release(std::string_view /*name*/) const override {}

  void remove(const std::string& name) { tensors_.erase(name); }
  void reshape(const std::string& name, std::vector<std::uint64_t> shape) {
    tensors_.at(name).info.shape = std::move(shape);
  }
  void spoil(const std::string& name, std::size_t element) {
    tensors_.at(name).values.at(element) = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  struct Tensor {
    formats::TensorInfo info;
    std::vector<float> values;
  };

  float next() {
    seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<float>(static_cast<std::int32_t>(seed_ >> 32)) * 0x1p-31f;
  }

  void add(const std::string& name, std::vector<std::uint64_t> shape, float scale, float offset = 0) {
    std::uint64_t count = 1;
    for (const std::uint64_t dim : shape) count *= dim;
    std::vector<float> values(count);
    for (float& value : values) value = offset + scale * next();
    tensors_[name] = {{name, DType::f32, std::move(shape), "synthetic"}, std::move(values)};
  }

  void matrix(const std::string& name, std::size_t n, std::size_t k) {
    add(name, {n, k}, 2.0f / std::sqrt(static_cast<float>(k)));
  }

  void fill(const formats::ModelConfig& c) {
    const bool hybrid = c.family == formats::Family::qwen3_5;
    const float norm_offset = hybrid ? 0.0f : 1.0f;
    add("embed_tokens.weight", {c.vocabulary_size, c.hidden_size}, 1);
    add("norm.weight", {c.hidden_size}, 0.2f, norm_offset);
    for (std::size_t i = 0; i < c.layers.size(); ++i) {
      const std::string prefix = "layers." + std::to_string(i) + ".";
      add(prefix + "input_layernorm.weight", {c.hidden_size}, 0.2f, norm_offset);
      add(prefix + "post_attention_layernorm.weight", {c.hidden_size}, 0.2f, norm_offset);
      matrix(prefix + "mlp.gate_proj.weight", c.intermediate_size, c.hidden_size);
      matrix(prefix + "mlp.up_proj.weight", c.intermediate_size, c.hidden_size);
      matrix(prefix + "mlp.down_proj.weight", c.hidden_size, c.intermediate_size);
      if (c.layers[i] == formats::LayerType::full_attention) {
        attention(c, prefix + "self_attn.", hybrid ? 2 : 1, norm_offset);
      } else {
        linear_attention(c, prefix + "linear_attn.");
      }
    }
  }

  void attention(const formats::ModelConfig& c, const std::string& prefix, std::size_t gates,
                 float norm_offset) {
    matrix(prefix + "q_proj.weight", gates * c.heads * c.head_dim, c.hidden_size);
    matrix(prefix + "k_proj.weight", c.kv_heads * c.head_dim, c.hidden_size);
    matrix(prefix + "v_proj.weight", c.kv_heads * c.head_dim, c.hidden_size);
    matrix(prefix + "o_proj.weight", c.hidden_size, c.heads * c.head_dim);
    add(prefix + "q_norm.weight", {c.head_dim}, 0.2f, norm_offset);
    add(prefix + "k_norm.weight", {c.head_dim}, 0.2f, norm_offset);
  }

  void linear_attention(const formats::ModelConfig& c, const std::string& prefix) {
    matrix(prefix + "in_proj_qkv.weight", c.conv_channels(), c.hidden_size);
    matrix(prefix + "in_proj_z.weight", c.linear_value_size(), c.hidden_size);
    matrix(prefix + "in_proj_b.weight", c.linear_value_heads, c.hidden_size);
    matrix(prefix + "in_proj_a.weight", c.linear_value_heads, c.hidden_size);
    matrix(prefix + "out_proj.weight", c.hidden_size, c.linear_value_size());
    add(prefix + "conv1d.weight", {c.conv_channels(), 1, c.linear_conv_width}, 0.6f);
    add(prefix + "A_log", {c.linear_value_heads}, 1);
    add(prefix + "dt_bias", {c.linear_value_heads}, 0.5f, -2);
    add(prefix + "norm.weight", {c.linear_value_dim}, 0.2f, 1);
  }

  std::uint64_t seed_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

/// A hybrid small enough for thousands of runs, with every odd size that a real one may have.
inline formats::ModelConfig small_hybrid() {
  using formats::LayerType;
  formats::ModelConfig c;
  c.family = formats::Family::qwen3_5;
  c.hidden_size = 48;
  c.intermediate_size = 80;
  c.vocabulary_size = 97;
  c.layers = {LayerType::linear_attention, LayerType::full_attention, LayerType::linear_attention};
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 16;
  c.rotary_dim = 4;
  c.rope_theta = 1e7f;
  c.rms_norm_eps = 1e-6f;
  c.max_positions = 4096;
  c.linear_key_heads = 2;
  c.linear_value_heads = 4;
  c.linear_key_dim = 16;
  c.linear_value_dim = 24;
  c.linear_conv_width = 4;
  return c;
}

inline formats::ModelConfig small_dense() {
  formats::ModelConfig c = small_hybrid();
  c.family = formats::Family::qwen3;
  c.layers.assign(2, formats::LayerType::full_attention);
  c.rotary_dim = c.head_dim;
  c.linear_key_heads = c.linear_value_heads = c.linear_key_dim = c.linear_value_dim = c.linear_conv_width = 0;
  return c;
}

}  // namespace assay::backbone
