#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "music/block.hpp"

namespace assay::music {

/// One bidirectional Qwen3-style block: norm, self-attention, norm, SwiGLU, each added to the stream.
struct EncoderLayer {
  std::vector<float> input_norm;
  SelfAttentionWeights attention;
  std::vector<float> post_attention_norm;
  MlpWeights mlp;
};

/// The blocks and final norm that ACE-Step's lyric and timbre encoders, its audio tokenizer's pooler and its
/// detokenizer have in common. Source: huggingface/diffusers, pipelines/ace_step/modeling_ace_step.py
/// (AceStepEncoderLayer and the classes that stack it).
class EncoderStack {
 public:
  /// Reads "{prefix}layers.{i}.…" and "{prefix}norm.weight".
  EncoderStack(const WeightLoader& loader, StackConfig config, const std::string& prefix);

  const BlockConfig& block() const { return config_.block; }

  /// Runs the rows of sequences of these lengths, one after the other, in place: x is [Σ lengths, hidden] and
  /// ends as the final norm's output. A row's bits depend on its own sequence alone.
  void run(const ops::Context& context, const ops::Selection& forms, std::span<const std::size_t> lengths,
           std::span<float> x, const StopPoint& stop) const;

  std::size_t weight_bytes() const;

 private:
  StackConfig config_;
  std::vector<EncoderLayer> layers_;
  std::vector<float> norm_;
};

}  // namespace assay::music
