#include "backbone/state.hpp"

#include <string>
#include <utility>

#include "base/error.hpp"

namespace assay::backbone {

using formats::LayerType;

SegmentState::SegmentState(const formats::ModelConfig& config, std::size_t tokens,
                           std::shared_ptr<const SegmentState> parent)
    : parent_(std::move(parent)), capacity_(tokens), layers_(config.layers.size()) {
  const std::size_t key_value_width = config.kv_heads * config.head_dim;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    if (config.layers[i] == LayerType::full_attention) {
      layer.k = device::Buffer<float>(tokens * key_value_width);
      layer.v = device::Buffer<float>(tokens * key_value_width);
    } else {
      layer.conv = device::Buffer<float>((config.linear_conv_width - 1) * config.conv_channels());
      layer.recurrent =
          device::Buffer<float>(config.linear_value_heads * config.linear_key_dim * config.linear_value_dim);
    }
  }
}

// A parent is counted whole: inside a call a child's positions are needed before the parent's tokens count as
// run.
std::size_t SegmentState::position() const noexcept {
  return parent_ == nullptr ? 0 : parent_->position() + parent_->capacity();
}

std::size_t SegmentState::bytes() const noexcept {
  std::size_t total = sizeof(SegmentState) + layers_.size() * sizeof(Layer);
  for (const Layer& layer : layers_) {
    total += layer.k.bytes() + layer.v.bytes() + layer.conv.bytes() + layer.recurrent.bytes();
  }
  return total;
}

void SegmentState::advance(std::size_t tokens) {
  if (tokens > capacity_ - tokens_) {
    throw Error(ErrorKind::internal, {.where = "segment state",
                                      .found = std::to_string(tokens_ + tokens) + " tokens",
                                      .expected = "at most " + std::to_string(capacity_)});
  }
  tokens_ += tokens;
}

}  // namespace assay::backbone
