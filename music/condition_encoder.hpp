#pragma once

#include <cstddef>
#include <span>
#include <stop_token>
#include <vector>

#include "device/arena.hpp"
#include "device/thread_pool.hpp"
#include "formats/tensor_source.hpp"
#include "music/config.hpp"
#include "music/encoder_layer.hpp"
#include "ops/selection.hpp"

namespace assay::music {

/// What a song's condition is made of; all [rows, width] fp32, row-major.
struct ConditionInput {
  std::span<const float> text = {};    ///< the text encoder's last hidden states, [tokens, text_width]
  std::span<const float> lyrics = {};  ///< its embedding rows of the lyrics' tokens, [tokens, text_width]
  std::span<const float> timbre = {};  ///< latents of the reference or of silence, [frames, timbre_width]
};

/// Text, lyrics and timbre to the rows that the DiT's cross-attention reads. Source: huggingface/diffusers,
/// pipelines/ace_step/modeling_ace_step.py (AceStepConditionEncoder, AceStepLyricEncoder,
/// AceStepTimbreEncoder).
///
/// Runs are serial: one at a time per object.
class ConditionEncoder {
 public:
  /// Reads "text_projector.…", "lyric_encoder.…", "timbre_encoder.…" and "null_condition_emb"; nothing of
  /// `source` is read later. Throws Error(missing | mismatch | non_finite) naming tensor and file,
  /// Error(cancelled) where `stop` asks.
  ConditionEncoder(const ConditionConfig& config, const formats::TensorSource& source,
                   const ops::Selection& forms, device::ThreadPool& threads,
                   const std::stop_token& stop = {});

  /// Rows of `hidden_size`: the lyrics', one of the timbre, the text's. At least one token of text and of
  /// lyrics and one frame of timbre. Throws Error(mismatch) for rows of another width or none,
  /// Error(non_finite) naming the stage.
  std::vector<float> encode(const ConditionInput& input, const std::stop_token& stop = {});

  /// The learned row that stands for no condition, [hidden_size]. The authors repeat it as often as the
  /// condition has rows; attention over equal rows is attention over one, so one is enough.
  std::span<const float> null_condition() const { return null_condition_; }

  std::size_t hidden_size() const { return config_.block.hidden_size; }
  std::size_t weight_bytes() const;

 private:
  ConditionEncoder(const ConditionConfig& config, const WeightLoader& loader, const ops::Selection& forms,
                   device::ThreadPool& threads);

  ConditionConfig config_;
  ops::Selection forms_;
  device::ThreadPool& threads_;
  device::Arena arena_;
  ops::MatmulWeight text_projector_;
  Linear lyric_embedding_;
  EncoderStack lyric_encoder_;
  Linear timbre_embedding_;
  EncoderStack timbre_encoder_;
  std::vector<float> null_condition_;
};

}  // namespace assay::music
