#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "music/config.hpp"
#include "music/weight_loader.hpp"
#include "ops/selection.hpp"

/// What every transformer block of ACE-Step 1.5 is made of: attention with normed queries and keys, over the
/// sequence itself (with rotary positions) or over another one, and a SwiGLU. Source: huggingface/diffusers,
/// models/transformers/ace_step_transformer.py (AceStepAttention, AceStepMLP).
namespace assay::music {

struct SelfAttentionWeights {
  ops::MatmulWeight qkv;  ///< [q | k | v, hidden]
  ops::MatmulWeight out;  ///< [hidden, heads · head_dim]
  std::vector<float> q_norm;
  std::vector<float> k_norm;
};

struct CrossAttentionWeights {
  ops::MatmulWeight q;
  ops::MatmulWeight kv;  ///< [k | v, hidden]
  ops::MatmulWeight out;
  std::vector<float> q_norm;
  std::vector<float> k_norm;
};

struct MlpWeights {
  ops::MatmulWeight gate_up;  ///< [gate | up, hidden]
  ops::MatmulWeight down;     ///< [hidden, intermediate]
};

/// `prefix` ends with a dot: "layers.0.self_attn.".
SelfAttentionWeights load_self_attention(const WeightLoader& loader, const BlockConfig& config,
                                         const std::string& prefix);
CrossAttentionWeights load_cross_attention(const WeightLoader& loader, const BlockConfig& config,
                                           const std::string& prefix);
MlpWeights load_mlp(const WeightLoader& loader, const BlockConfig& config, const std::string& prefix);

/// What a cross-attention reads of one sequence: rows of [k | v], keys normed.
struct CrossKeys {
  const float* rows = nullptr;  ///< [length, 2 · kv_heads · head_dim]
  std::size_t length = 0;
};

/// Where a part of a block leaves its result: [rows, hidden], added to what is there (the residual stream) or
/// in its place.
struct BlockOutput {
  float* data = nullptr;
  bool accumulate = false;
};

/// Runs the parts over the rows of one or several sequences, one after the other, each with positions of its
/// own. A row's result does not depend on the other sequences or on the number of threads. Activations are
/// allocated from the context's arena when it is made and live as long as the enclosing Scope. `stop` is
/// looked at between the parts' steps: Error(cancelled).
class BlockRunner {
 public:
  BlockRunner(const BlockConfig& config, const ops::Selection& forms, const ops::Context& context,
              std::span<const std::size_t> lengths, StopPoint stop = {});

  std::size_t rows() const { return rows_; }

  /// y = x / rms(x) · w, [rows, hidden].
  void norm(const float* x, const std::vector<float>& w, float* y) const;
  /// Every row sees its sequence, or where `sliding`, sliding_window rows to either side.
  void self_attention(const SelfAttentionWeights& weights, bool sliding, const float* x,
                      const BlockOutput& y) const;
  /// Rows of sequence i see keys[i], all of them.
  void cross_attention(const CrossAttentionWeights& weights, std::span<const CrossKeys> keys, const float* x,
                       const BlockOutput& y) const;
  void mlp(const MlpWeights& weights, const float* x, const BlockOutput& y) const;

  /// Bytes that one with so many rows allocates, scratch of the ops aside.
  static std::size_t arena_bytes(const BlockConfig& config, std::size_t rows);

 private:
  void norm_heads(float* x, std::size_t heads, std::size_t stride, const std::vector<float>& w) const;
  void rotate(float* x, std::size_t heads, std::size_t stride) const;
  void attend(ops::AttentionMask mask, std::size_t q_stride,
              std::span<const ops::AttentionSegment> segments) const;
  /// The same where every query sees everything, some queries at a time.
  void attend_fully(std::size_t q_stride, std::span<const ops::AttentionSegment> segments) const;
  void project_out(const ops::MatmulWeight& weights, const BlockOutput& y) const;

  const BlockConfig& config_;
  const ops::Selection& forms_;
  const ops::Context& context_;
  std::span<const std::size_t> lengths_;
  StopPoint stop_;
  std::size_t rows_ = 0;
  std::span<float> projection_;  ///< [rows, q | k | v]
  std::span<float> mixed_;       ///< [rows, heads · head_dim]
  std::span<float> inner_;       ///< [at most kMlpRows, gate | up]
  std::span<float> cos_;         ///< [rows, head_dim / 2]
  std::span<float> sin_;
};

/// Keys and values of a sequence for one layer's cross-attention: rows [k | v] into `out`, keys normed.
/// x is [rows, hidden].
void project_cross_keys(const ops::Context& context, const ops::Selection& forms, const BlockConfig& config,
                        const CrossAttentionWeights& weights, const float* x, std::size_t rows, float* out);

}  // namespace assay::music
