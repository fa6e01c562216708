#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "music/block.hpp"
#include "music/dit.hpp"
#include "music/time_embedding.hpp"

namespace assay::music {

/// One block: AdaLN self-attention, cross-attention, AdaLN SwiGLU.
struct DitLayer {
  std::vector<float> self_norm;
  SelfAttentionWeights self_attention;
  std::vector<float> cross_norm;
  CrossAttentionWeights cross_attention;
  std::vector<float> mlp_norm;
  MlpWeights mlp;
  std::vector<float>
      modulation;  ///< [6, hidden]: shift, scale and gate of self-attention, then of the SwiGLU
};

struct DitWeights {
  Linear patch_in;  ///< [hidden, patch · in_channels]
  TimeEmbedding time;
  TimeEmbedding time_difference;  ///< of t − r
  Linear condition;               ///< [hidden, condition_size]
  std::vector<DitLayer> layers;
  std::vector<float> out_norm;
  std::vector<float> out_modulation;  ///< [2, hidden]: shift, scale
  Linear patch_out;                   ///< [patch · latent_width, hidden]
  std::size_t bytes = 0;              ///< of packed products
};

/// Values of one layer's [k | v] row of a prepared condition.
std::size_t cross_key_width(const DitConfig& config);

/// The activations of one pass over a few songs, and the steps that take them through the layers. Everything
/// is allocated from the context's arena when it is made.
class DitPass {
 public:
  /// frames[i] are those of songs[i].
  DitPass(const DitConfig& config, const DitWeights& weights, const ops::Selection& forms,
          const ops::Context& context, std::span<const DitSong> songs, std::span<const std::size_t> frames,
          const StopPoint& stop);

  void patch_in();
  /// `modulation`: the six rows of the time.
  void layer(std::size_t index, std::span<const float> modulation);
  /// `embedding`: of the time. Writes every song's velocity.
  void patch_out(std::span<const float> embedding);

  /// Bytes that one over songs of so many frames allocates, scratch of the ops aside.
  static std::size_t arena_bytes(const DitConfig& config, std::span<const std::size_t> frames);

 private:
  /// normed_ = norm(hidden_) · w · (1 + scale) + shift.
  void modulated_norm(const std::vector<float>& w, std::span<const float> scale,
                      std::span<const float> shift);
  /// hidden_ += branch_ · gate.
  void add_gated(std::span<const float> gate);

  const DitConfig& config_;
  const DitWeights& weights_;
  const ops::Context& context_;
  std::span<const DitSong> songs_;
  std::span<const std::size_t> frames_;
  std::vector<std::size_t> tokens_;  ///< of each song
  BlockRunner block_;
  std::span<float> patches_;  ///< [tokens, the wider of a patch of input and of output]
  std::span<float> hidden_;   ///< [tokens, hidden], the residual stream
  std::span<float> normed_;
  std::span<float> branch_;
};

}  // namespace assay::music
