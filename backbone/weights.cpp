#include "backbone/weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace assay::backbone {
namespace {

using formats::Family;
using formats::LayerType;
using formats::ModelConfig;
using formats::TensorSource;

/// One tensor of a fused product: its rows follow those of the part before it.
struct Part {
  std::string name;
  std::size_t rows;
};

class Loader {
 public:
  Loader(const ModelConfig& config, const TensorSource& source, const FormTable& forms)
      : config_(config), source_(source), forms_(forms) {}

  /// A vector of `size`; with Qwen3.5's norms stored as the distance from one, `plus_one` adds it.
  std::vector<float> vector(const std::string& name, std::size_t size, bool plus_one = false) const {
    std::vector<float> values = formats::read_tensor(source_, name, std::array<std::uint64_t, 1>{size});
    source_.release(name);
    if (plus_one) {
      for (float& value : values) value = 1.0f + value;
    }
    return values;
  }

  std::vector<float> norm(const std::string& name, std::size_t size) const {
    return vector(name, size, config_.family == Family::qwen3_5);
  }

  /// The parts' rows in one product, packed for the form that this part of the layer runs.
  ops::MatmulWeight fused(std::size_t layer, LayerPart part_of_layer, const std::vector<Part>& parts,
                          std::size_t k) const {
    std::size_t n = 0;
    for (const Part& part : parts) {
      formats::require(source_, part.name, std::array<std::uint64_t, 2>{part.rows, k});
      n += part.rows;
    }
    const ops::MatmulForm& form = *forms_.of(layer, part_of_layer).matmul;
    ops::MatmulWeight packed =
        form.pack(n, k, [&](std::size_t first, std::size_t count, std::span<float> rows) {
          read_rows(parts, k, first, count, rows);
        });
    for (const Part& part : parts) source_.release(part.name);
    return packed;
  }

 private:
  void read_rows(const std::vector<Part>& parts, std::size_t k, std::size_t first, std::size_t count,
                 std::span<float> rows) const {
    std::size_t part_begin = 0;
    for (const Part& part : parts) {
      const std::size_t begin = std::max(first, part_begin);
      const std::size_t end = std::min(first + count, part_begin + part.rows);
      if (begin < end) {
        source_.read_rows(part.name, begin - part_begin, end - begin,
                          rows.subspan((begin - first) * k, (end - begin) * k));
      }
      part_begin += part.rows;
    }
  }

  const ModelConfig& config_;
  const TensorSource& source_;
  const FormTable& forms_;
};

AttentionWeights load_attention(const Loader& loader, const ModelConfig& config, std::size_t layer,
                                const std::string& prefix) {
  const std::size_t query_size = config.heads * config.head_dim;
  const std::size_t key_size = config.kv_heads * config.head_dim;
  const std::size_t gates = config.family == Family::qwen3_5 ? 2 : 1;
  AttentionWeights weights;
  weights.qkv = loader.fused(layer, LayerPart::mixer_in,
                             {{prefix + "q_proj.weight", gates * query_size},
                              {prefix + "k_proj.weight", key_size},
                              {prefix + "v_proj.weight", key_size}},
                             config.hidden_size);
  weights.out =
      loader.fused(layer, LayerPart::mixer_out, {{prefix + "o_proj.weight", config.hidden_size}}, query_size);
  weights.q_norm = loader.norm(prefix + "q_norm.weight", config.head_dim);
  weights.k_norm = loader.norm(prefix + "k_norm.weight", config.head_dim);
  return weights;
}

std::vector<float> load_conv(const TensorSource& source, const ModelConfig& config, const std::string& name) {
  const std::size_t channels = config.conv_channels();
  const std::size_t width = config.linear_conv_width;
  const std::vector<float> stored =
      formats::read_tensor(source, name, std::array<std::uint64_t, 3>{channels, 1, width});
  std::vector<float> transposed(stored.size());
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t j = 0; j < width; ++j) transposed[j * channels + c] = stored[c * width + j];
  }
  source.release(name);
  return transposed;
}

LinearAttentionWeights load_linear_attention(const Loader& loader, const TensorSource& source,
                                             const ModelConfig& config, std::size_t layer,
                                             const std::string& prefix) {
  LinearAttentionWeights weights;
  weights.in = loader.fused(layer, LayerPart::mixer_in,
                            {{prefix + "in_proj_qkv.weight", config.conv_channels()},
                             {prefix + "in_proj_z.weight", config.linear_value_size()},
                             {prefix + "in_proj_b.weight", config.linear_value_heads},
                             {prefix + "in_proj_a.weight", config.linear_value_heads}},
                            config.hidden_size);
  weights.out = loader.fused(layer, LayerPart::mixer_out, {{prefix + "out_proj.weight", config.hidden_size}},
                             config.linear_value_size());
  weights.conv = load_conv(source, config, prefix + "conv1d.weight");
  weights.decay = loader.vector(prefix + "A_log", config.linear_value_heads);
  for (float& value : weights.decay) value = -std::exp(value);
  weights.dt_bias = loader.vector(prefix + "dt_bias", config.linear_value_heads);
  weights.norm = loader.vector(prefix + "norm.weight", config.linear_value_dim);
  return weights;
}

LayerWeights load_layer(const Loader& loader, const TensorSource& source, const ModelConfig& config,
                        std::size_t index) {
  const std::string prefix = "layers." + std::to_string(index) + ".";
  LayerWeights weights;
  weights.type = config.layers[index];
  weights.input_norm = loader.norm(prefix + "input_layernorm.weight", config.hidden_size);
  weights.post_attention_norm = loader.norm(prefix + "post_attention_layernorm.weight", config.hidden_size);
  if (weights.type == LayerType::full_attention) {
    weights.attention = load_attention(loader, config, index, prefix + "self_attn.");
  } else {
    weights.linear = load_linear_attention(loader, source, config, index, prefix + "linear_attn.");
  }
  weights.gate_up = loader.fused(index, LayerPart::mlp_in,
                                 {{prefix + "mlp.gate_proj.weight", config.intermediate_size},
                                  {prefix + "mlp.up_proj.weight", config.intermediate_size}},
                                 config.hidden_size);
  weights.down =
      loader.fused(index, LayerPart::mlp_out, {{prefix + "mlp.down_proj.weight", config.hidden_size}},
                   config.intermediate_size);
  return weights;
}

std::size_t packed_bytes(const LayerWeights& layer) {
  return layer.attention.qkv.data.bytes() + layer.attention.out.data.bytes() + layer.linear.in.data.bytes() +
         layer.linear.out.data.bytes() + layer.gate_up.data.bytes() + layer.down.data.bytes();
}

/// A copy, so that a file changed after loading changes no answer, and all of it read, so that a NaN is found
/// here rather than by the one request that uses its row.
EmbeddingTable load_embedding(const TensorSource& source, const ModelConfig& config) {
  constexpr std::size_t kRowsAtOnce = 256;
  const std::string name = "embed_tokens.weight";
  const std::size_t dim = config.hidden_size;
  const formats::TensorInfo& info =
      formats::require(source, name, std::array<std::uint64_t, 2>{config.vocabulary_size, dim});
  const std::span<const std::byte> stored = source.stored_bytes(name);
  EmbeddingTable table;
  table.type = stored.empty() || info.type == DType::f64 ? DType::f32 : info.type;
  const bool as_stored = table.type == info.type && !stored.empty();
  const std::size_t row_bytes = storage_bytes(table.type, dim);
  table.bytes = device::Buffer<std::byte>(config.vocabulary_size * row_bytes);
  std::vector<float> rows(kRowsAtOnce * dim);
  for (std::size_t first = 0; first < config.vocabulary_size; first += kRowsAtOnce) {
    const std::size_t count = std::min(kRowsAtOnce, config.vocabulary_size - first);
    source.read_rows(name, first, count, std::span(rows).first(count * dim));
    const std::byte* from =
        as_stored ? stored.data() + first * row_bytes : std::as_bytes(std::span(rows)).data();
    std::copy_n(from, count * row_bytes, table.bytes.data() + first * row_bytes);
  }
  source.release(name);
  return table;
}

}  // namespace

BackboneWeights load_weights(const ModelConfig& config, const TensorSource& source, const FormTable& forms,
                             const std::function<void(std::size_t, std::size_t)>& progress) {
  const Loader loader(config, source, forms);
  BackboneWeights weights;
  // First: while it is copied its pages are there twice, and the layers are not there yet.
  weights.embedding = load_embedding(source, config);
  weights.bytes = weights.embedding.bytes.bytes();
  weights.final_norm = loader.norm("norm.weight", config.hidden_size);
  const std::size_t total = config.layers.size();
  weights.layers.reserve(total);
  for (std::size_t i = 0; i < total; ++i) {
    weights.layers.push_back(load_layer(loader, source, config, i));
    weights.bytes += packed_bytes(weights.layers.back());
    if (progress) progress(i + 1, total);
  }
  return weights;
}

}  // namespace assay::backbone
