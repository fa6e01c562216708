#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "device/memory.hpp"
#include "formats/model_config.hpp"

namespace assay::backbone {

/// What a segment leaves behind for its children, fp32 as it lives in the layers: per full-attention layer
/// its keys and values, per recurrent layer its convolution inputs and its matrix state.
///
/// A state owns exactly its own bytes (no slice of a batch buffer) and, once its segment's last token has
/// been run, never changes: children and caches share it by reference. One that has room left is growing
/// (Backbone::growing_state): it can be continued, and is nobody's parent.
class SegmentState {
 public:
  /// Room for `tokens` positions starting at `position`, behind `parent` (null for a root).
  SegmentState(const formats::ModelConfig& config, std::size_t tokens,
               std::shared_ptr<const SegmentState> parent);

  std::size_t tokens() const noexcept { return tokens_; }  ///< its own, run so far
  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t position() const noexcept;  ///< of its first token
  std::size_t end() const noexcept { return position() + tokens_; }
  std::size_t bytes() const noexcept;  ///< its own, parents apart
  const std::shared_ptr<const SegmentState>& parent() const noexcept { return parent_; }

  struct Layer {
    device::Buffer<float> k;          ///< [capacity, kv_heads · head_dim], rotated
    device::Buffer<float> v;          ///< [capacity, kv_heads · head_dim]
    device::Buffer<float> conv;       ///< [conv_width − 1, conv_channels]
    device::Buffer<float> recurrent;  ///< [value_heads, key_dim, value_dim]
  };
  const Layer& layer(std::size_t index) const { return layers_[index]; }
  Layer& layer(std::size_t index) { return layers_[index]; }
  void advance(std::size_t tokens);

 private:
  std::shared_ptr<const SegmentState> parent_;
  std::size_t capacity_;
  std::size_t tokens_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace assay::backbone
