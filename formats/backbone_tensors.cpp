#include "formats/backbone_tensors.hpp"

#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace assay::formats {
namespace {

class Lister {
 public:
  explicit Lister(const ModelConfig& config) : config_(config) {}

  std::vector<BackboneTensor> list() && {
    add("embed_tokens.weight", {config_.vocabulary_size, config_.hidden_size});
    for (std::size_t i = 0; i < config_.layers.size(); ++i) add_layer("layers." + std::to_string(i) + ".", i);
    add("norm.weight", {config_.hidden_size});
    return std::move(tensors_);
  }

 private:
  void add(std::string name, std::vector<std::uint64_t> shape) {
    tensors_.push_back({std::move(name), std::move(shape)});
  }

  void add_layer(const std::string& prefix, std::size_t index) {
    add(prefix + "input_layernorm.weight", {config_.hidden_size});
    if (config_.layers[index] == LayerType::full_attention) {
      add_attention(prefix + "self_attn.");
    } else {
      add_linear_attention(prefix + "linear_attn.");
    }
    add(prefix + "post_attention_layernorm.weight", {config_.hidden_size});
    add(prefix + "mlp.gate_proj.weight", {config_.intermediate_size, config_.hidden_size});
    add(prefix + "mlp.up_proj.weight", {config_.intermediate_size, config_.hidden_size});
    add(prefix + "mlp.down_proj.weight", {config_.hidden_size, config_.intermediate_size});
  }

  void add_attention(const std::string& prefix) {
    const std::uint64_t query = config_.heads * config_.head_dim;
    const std::uint64_t key = config_.kv_heads * config_.head_dim;
    const std::uint64_t gates =
        config_.family == Family::qwen3_5 ? 2 : 1;  // Qwen3.5's q_proj yields query and gate
    add(prefix + "q_proj.weight", {gates * query, config_.hidden_size});
    add(prefix + "k_proj.weight", {key, config_.hidden_size});
    add(prefix + "v_proj.weight", {key, config_.hidden_size});
    add(prefix + "o_proj.weight", {config_.hidden_size, query});
    add(prefix + "q_norm.weight", {config_.head_dim});
    add(prefix + "k_norm.weight", {config_.head_dim});
  }

  void add_linear_attention(const std::string& prefix) {
    const std::uint64_t heads = config_.linear_value_heads;
    add(prefix + "in_proj_qkv.weight", {config_.conv_channels(), config_.hidden_size});
    add(prefix + "in_proj_z.weight", {config_.linear_value_size(), config_.hidden_size});
    add(prefix + "in_proj_b.weight", {heads, config_.hidden_size});
    add(prefix + "in_proj_a.weight", {heads, config_.hidden_size});
    add(prefix + "conv1d.weight", {config_.conv_channels(), 1, config_.linear_conv_width});
    add(prefix + "A_log", {heads});
    add(prefix + "dt_bias", {heads});
    add(prefix + "norm.weight", {config_.linear_value_dim});
    add(prefix + "out_proj.weight", {config_.hidden_size, config_.linear_value_size()});
  }

  const ModelConfig& config_;
  std::vector<BackboneTensor> tensors_;
};

/// Whether a canonical name lies where the backbone's tensors do. Old saves have rotary frequencies there,
/// which follow from the configuration.
bool is_of_the_stack(std::string_view name) {
  if (name.ends_with(".rotary_emb.inv_freq")) return false;
  return name.starts_with("layers.") || name.starts_with("embed_tokens.") || name.starts_with("norm.");
}

}  // namespace

std::vector<BackboneTensor> backbone_tensors(const ModelConfig& config) {
  return Lister(config).list();
}

void check_backbone_tensors(const TensorSource& source, const ModelConfig& config) {
  std::set<std::string, std::less<>> known;
  for (BackboneTensor& tensor : backbone_tensors(config)) {
    require_floating(require(source, tensor.name, tensor.shape));
    known.insert(std::move(tensor.name));
  }
  for (const std::string& name : source.names()) {
    if (!is_of_the_stack(name) || known.contains(name)) continue;
    throw Error(
        ErrorKind::unsupported,
        {.where = require(source, name).origin + ": tensor '" + name + "'",
         .found = "a tensor that this backbone does not have",
         .expected = "those of " + std::to_string(config.layers.size()) + " layers, by the configuration",
         .advice = "the configuration is another model's, or the weights are quantised or changed"});
  }
}

}  // namespace assay::formats
