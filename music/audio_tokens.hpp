#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "device/arena.hpp"
#include "device/thread_pool.hpp"
#include "formats/tensor_source.hpp"
#include "music/config.hpp"
#include "music/encoder_layer.hpp"
#include "ops/selection.hpp"

/// Latents to 5 Hz audio codes and back. Source: huggingface/diffusers,
/// pipelines/ace_step/modeling_ace_step.py (AceStepAudioTokenizer, _AceStepResidualFSQ with one quantizer,
/// AceStepAudioTokenDetokenizer).
namespace assay::music {

/// Finite scalar quantization: a code is one level in each of a few dimensions, spread evenly over [−1, 1];
/// its number counts the first dimension fastest. Everything is fp32 in every run, as the authors have it.
class Quantizer {
 public:
  /// Reads "{prefix}project_in.…" and "{prefix}project_out.…".
  Quantizer(const AudioTokenConfig& config, const formats::TensorSource& source, const std::string& prefix);

  /// How many codes there are: 64,000.
  std::int32_t codebook_size() const { return codebook_size_; }

  /// Nearest code of each row [rows, code_width].
  std::vector<std::int32_t> quantize(std::span<const float> rows) const;

  /// The rows [codes, code_width] that stand for codes. Throws Error(invalid_argument) naming a code outside
  /// [0, codebook_size).
  std::vector<float> embed(std::span<const std::int32_t> codes) const;

 private:
  std::vector<std::size_t> levels_;
  std::size_t width_;
  std::int32_t codebook_size_ = 0;
  std::vector<float> in_, in_bias_;    ///< [levels, width], [levels]
  std::vector<float> out_, out_bias_;  ///< [width, levels], [width]
};

/// Runs are serial: one at a time per object.
class AudioTokenizer {
 public:
  /// Reads "audio_acoustic_proj.…", "attention_pooler.…", "quantizer.…"; nothing of `source` is read later.
  /// Throws Error(missing | mismatch | non_finite) naming tensor and file.
  AudioTokenizer(const AudioTokenConfig& config, const formats::TensorSource& source,
                 const ops::Selection& forms, device::ThreadPool& threads, const std::stop_token& stop = {});

  /// One code for every pool_window frames of latents [frames, latent_width]. A last window that is not whole
  /// is filled up with the first frames of `silence` [≥ pool_window − 1 frames, latent_width]. Throws
  /// Error(mismatch) for latents of another width or none, Error(non_finite).
  std::vector<std::int32_t> encode(std::span<const float> latents, std::span<const float> silence,
                                   const std::stop_token& stop = {});

  const Quantizer& quantizer() const { return quantizer_; }
  std::size_t weight_bytes() const;

 private:
  AudioTokenizer(const AudioTokenConfig& config, const WeightLoader& loader, const ops::Selection& forms,
                 device::ThreadPool& threads);
  /// The codes of `count` whole windows.
  std::vector<std::int32_t> encode_windows(std::span<const float> latents, std::size_t count,
                                           const std::stop_token& stop);

  AudioTokenConfig config_;
  ops::Selection forms_;
  device::ThreadPool& threads_;
  device::Arena arena_;
  Linear acoustic_projection_;
  Linear embedding_;
  std::vector<float> special_token_;  ///< [hidden], the position that pools its window
  EncoderStack pooler_;
  Quantizer quantizer_;
};

/// Runs are serial: one at a time per object.
class AudioDetokenizer {
 public:
  /// Reads "embed_tokens.…", "special_tokens", "layers.…", "norm.weight", "proj_out.…"; as AudioTokenizer.
  AudioDetokenizer(const AudioTokenConfig& config, const formats::TensorSource& source,
                   const ops::Selection& forms, device::ThreadPool& threads,
                   const std::stop_token& stop = {});

  /// Latents [rows · pool_window, latent_width] of a quantizer's rows [rows, hidden_size]. Throws
  /// Error(mismatch) for rows of another width or none, Error(non_finite).
  std::vector<float> decode(std::span<const float> rows, const std::stop_token& stop = {});

  std::size_t weight_bytes() const;

 private:
  AudioDetokenizer(const AudioTokenConfig& config, const WeightLoader& loader, const ops::Selection& forms,
                   device::ThreadPool& threads);

  AudioTokenConfig config_;
  ops::Selection forms_;
  device::ThreadPool& threads_;
  device::Arena arena_;
  Linear embedding_;
  std::vector<float> special_tokens_;  ///< [pool_window, hidden], one a frame of the window
  EncoderStack stack_;
  Linear projection_;
};

}  // namespace assay::music
