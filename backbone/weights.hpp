#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "backbone/part_forms.hpp"
#include "device/memory.hpp"
#include "formats/model_config.hpp"
#include "formats/tensor_source.hpp"
#include "ops/selection.hpp"

namespace assay::backbone {

/// Softmax attention with q/k norm; Qwen3.5's has an output gate beside each query head.
struct AttentionWeights {
  ops::MatmulWeight qkv;  ///< [q (and gate, head by head) | k | v, hidden]
  ops::MatmulWeight out;  ///< [hidden, heads · head_dim]
  std::vector<float> q_norm;
  std::vector<float> k_norm;
};

/// Gated DeltaNet.
struct LinearAttentionWeights {
  ops::MatmulWeight in;      ///< [q | k | v | z | b | a, hidden]
  ops::MatmulWeight out;     ///< [hidden, value heads · value dim]
  std::vector<float> conv;   ///< [width, channels]
  std::vector<float> decay;  ///< −exp(A_log)
  std::vector<float> dt_bias;
  std::vector<float> norm;  ///< [value dim]
};

struct LayerWeights {
  formats::LayerType type = formats::LayerType::full_attention;
  std::vector<float> input_norm;
  std::vector<float> post_attention_norm;
  AttentionWeights attention;     ///< where type is full_attention
  LinearAttentionWeights linear;  ///< where type is linear_attention
  ops::MatmulWeight gate_up;      ///< [gate | up, hidden]
  ops::MatmulWeight down;         ///< [hidden, intermediate]
};

/// The token table [vocabulary, hidden], in the source's element type where it stores one, else in fp32.
struct EmbeddingTable {
  device::Buffer<std::byte> bytes;
  DType type = DType::f32;
};

struct BackboneWeights {
  EmbeddingTable embedding;
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;
  std::size_t bytes = 0;  ///< packed products and the table
};

/// Reads, checks and packs or copies everything, so that `source` is not needed afterwards, each product for
/// its part's form; see Backbone's constructor for the contract.
BackboneWeights load_weights(const formats::ModelConfig& config, const formats::TensorSource& source,
                             const FormTable& forms,
                             const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace assay::backbone
