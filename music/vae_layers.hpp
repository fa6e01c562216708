#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "formats/tensor_source.hpp"
#include "ops/selection.hpp"

/// The layers that the Oobleck encoder and decoder are made of, as loaded: weight norm folded, Snake's
/// constants out of their logarithms, products packed for the run's forms. Sources: huggingface/diffusers,
/// src/diffusers/models/autoencoders/autoencoder_oobleck.py; torch.nn.utils.weight_norm (dim 0).
namespace assay::music {

struct SnakeLayer {
  std::vector<float> alpha;
  std::vector<float> inverse_beta;
  ops::SnakeChannels channels() const { return {alpha.data(), inverse_beta.data()}; }
};

struct ConvLayer {
  ops::Conv1dWeight weight;
  std::vector<float> bias;  ///< empty for none
  std::size_t stride = 1;
  std::size_t dilation = 1;
  std::size_t padding = 0;
};

struct TransposedLayer {
  ops::ConvTranspose1dWeight weight;
  std::vector<float> bias;
  std::size_t padding = 0;
};

/// x + conv2(snake2(conv1(snake1(x)))), conv1 of 7 dilated taps, conv2 of one.
struct ResidualUnit {
  SnakeLayer snake1;
  ConvLayer conv1;
  SnakeLayer snake2;
  ConvLayer conv2;
};

/// The units' dilations, in order.
inline constexpr std::size_t kUnitDilations[] = {1, 3, 9};
inline constexpr std::size_t kWideKernel = 7;

/// Reads layers by the names that the checkpoints have below `source`. Every member throws what
/// formats::require throws for a tensor that is missing or of another shape, and Error(non_finite) for one
/// that does not give finite weights.
class VaeLoader {
 public:
  VaeLoader(const formats::TensorSource& source, const ops::Selection& selection)
      : source_(source), selection_(selection) {}

  /// `kept` of the weight's `shape.out_channels` outputs, the first ones; 0 for all.
  ConvLayer conv(const std::string& name, const ops::ConvShape& shape, bool biased,
                 std::size_t kept = 0) const;
  TransposedLayer transposed(const std::string& name, const ops::ConvShape& shape, std::size_t stride) const;
  SnakeLayer snake(const std::string& name, std::size_t channels) const;
  ResidualUnit unit(const std::string& name, std::size_t channels, std::size_t dilation) const;

 private:
  struct Folded;
  Folded folded(const std::string& name, std::vector<std::uint64_t> shape) const;

  const formats::TensorSource& source_;
  const ops::Selection& selection_;
};

}  // namespace assay::music
