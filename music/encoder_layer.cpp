#include "music/encoder_layer.hpp"

#include <utility>

namespace assay::music {
namespace {

EncoderLayer load_encoder_layer(const WeightLoader& loader, const BlockConfig& config,
                                const std::string& prefix) {
  return {
      .input_norm = loader.vector(prefix + "input_layernorm.weight", config.hidden_size),
      .attention = load_self_attention(loader, config, prefix + "self_attn."),
      .post_attention_norm = loader.vector(prefix + "post_attention_layernorm.weight", config.hidden_size),
      .mlp = load_mlp(loader, config, prefix + "mlp.")};
}

}  // namespace

EncoderStack::EncoderStack(const WeightLoader& loader, StackConfig config, const std::string& prefix)
    : config_(std::move(config)) {
  layers_.reserve(config_.sliding.size());
  for (std::size_t i = 0; i < config_.sliding.size(); ++i) {
    layers_.push_back(
        load_encoder_layer(loader, config_.block, prefix + "layers." + std::to_string(i) + "."));
  }
  norm_ = loader.vector(prefix + "norm.weight", config_.block.hidden_size);
}

void EncoderStack::run(const ops::Context& context, const ops::Selection& forms,
                       std::span<const std::size_t> lengths, std::span<float> x,
                       const StopPoint& stop) const {
  const device::Arena::Scope scope(context.arena);
  const BlockRunner block(config_.block, forms, context, lengths, stop);
  const std::span<float> normed = context.arena.allocate<float>(x.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const EncoderLayer& layer = layers_[i];
    block.norm(x.data(), layer.input_norm, normed.data());
    block.self_attention(layer.attention, config_.sliding[i], normed.data(),
                         {.data = x.data(), .accumulate = true});
    block.norm(x.data(), layer.post_attention_norm, normed.data());
    block.mlp(layer.mlp, normed.data(), {.data = x.data(), .accumulate = true});
  }
  block.norm(x.data(), norm_, x.data());
}

std::size_t EncoderStack::weight_bytes() const {
  std::size_t bytes = 0;
  for (const EncoderLayer& layer : layers_) {
    bytes += layer.attention.qkv.data.bytes() + layer.attention.out.data.bytes() +
             layer.mlp.gate_up.data.bytes() + layer.mlp.down.data.bytes();
  }
  return bytes;
}

}  // namespace assay::music
