#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace assay::formats {

enum class Family { qwen3, qwen3_5 };
enum class LayerType { full_attention, linear_attention };

/// What a Qwen3 or Qwen3.5 backbone needs to know of itself, from `config.json` or GGUF metadata. All sizes
/// are checked (positive, divisible where they must be, below absurdity) by whoever makes one.
struct ModelConfig {
  Family family = Family::qwen3;
  std::size_t hidden_size = 0;
  std::size_t intermediate_size = 0;
  std::size_t vocabulary_size = 0;
  std::vector<LayerType> layers;
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  std::size_t rotary_dim = 0;  ///< head_dim · partial_rotary_factor, even
  float rope_theta = 0;
  bool bf16_rope_frequencies = false;  ///< rounded to bf16: no file says so, an author's code may do it
  float rms_norm_eps = 0;
  std::size_t max_positions = 0;

  // Gated DeltaNet (Qwen3.5's linear_attention layers); 0 without such layers.
  std::size_t linear_key_heads = 0;
  std::size_t linear_value_heads = 0;
  std::size_t linear_key_dim = 0;
  std::size_t linear_value_dim = 0;
  std::size_t linear_conv_width = 0;

  std::size_t linear_key_size() const { return linear_key_heads * linear_key_dim; }
  std::size_t linear_value_size() const { return linear_value_heads * linear_value_dim; }
  std::size_t conv_channels() const { return 2 * linear_key_size() + linear_value_size(); }
};

}  // namespace assay::formats
