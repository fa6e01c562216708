#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/model_config.hpp"
#include "formats/tensor_source.hpp"
#include "music/config.hpp"
#include "music/part_names.hpp"
#include "text/tokenizer.hpp"

namespace assay::music {

/// An ACE-Step 1.5 checkpoint on disk, in either layout. Opening one reads configurations and no weights;
/// each part's tensors are mapped when asked for and unmapped when let go, so that a song holds one stage in
/// memory at a time.
///
/// Diffusers: model_index.json and a folder a part (text_encoder, tokenizer, condition_encoder, transformer,
/// vae, and where it has them audio_tokenizer and audio_token_detokenizer). Original: a folder such as
/// acestep-v15-turbo with the weights of all parts in model.safetensors (or shards) and silence_latent.pt,
/// beside Qwen3-Embedding-0.6B and vae.
class Checkpoint {
 public:
  enum class Layout { diffusers, original };

  /// `directory` is a diffusers checkpoint, an original DiT's folder, or the folder above it where it holds
  /// one such. Throws Error(missing | malformed | mismatch | unsupported) naming file and field;
  /// Error(invalid_argument) where several DiTs could be meant.
  static Checkpoint open(const std::filesystem::path& directory);

  /// Whether `directory` looks like one, of whatever soundness: what `assay inspect` asks.
  static bool looks_like(const std::filesystem::path& directory);

  Layout layout() const noexcept { return layout_; }
  const PartConfigs& parts() const noexcept { return parts_; }
  const VaeConfig& vae() const noexcept { return vae_; }
  const formats::ModelConfig& text_encoder() const noexcept { return text_encoder_; }

  /// The tokenizer and detokenizer of audio codes, which covers and codes need. Throws Error(missing) where
  /// the checkpoint has none.
  const AudioTokenConfig& audio_tokenizer() const;
  const AudioTokenConfig& audio_detokenizer() const;

  /// A part's tensors by diffusers' names, those of the text encoder by the backbone's. Throws as
  /// open_safetensors.
  std::shared_ptr<const formats::TensorSource> tensors(Part part) const;

  text::Tokenizer tokenizer() const;

  /// The latents of silence, [frames, latent width]. Throws Error(missing | mismatch | non_finite).
  std::vector<float> silence_latent() const;

  /// The condition of no condition, [condition size], which guidance needs; nothing where the checkpoint has
  /// none.
  std::optional<std::vector<float>> null_condition() const;

  /// Files whose bytes a song depends on, in a fixed order.
  std::vector<std::filesystem::path> files() const;

  /// SHA-256 over names (relative to the checkpoint), sizes and contents of files(). Reads all of them.
  std::string identity() const;

 private:
  Checkpoint() = default;
  static Checkpoint open_diffusers(const std::filesystem::path& root);
  static Checkpoint open_original(const std::filesystem::path& dit);
  std::filesystem::path weights_of(Part part) const;

  Layout layout_ = Layout::diffusers;
  std::filesystem::path root_;       ///< what the folders below are in
  std::filesystem::path dit_;        ///< original: the DiT's folder
  std::filesystem::path text_;       ///< of the text encoder
  std::filesystem::path tokenizer_;  ///< of tokenizer.json
  PartConfigs parts_;
  VaeConfig vae_;
  formats::ModelConfig text_encoder_;
};

}  // namespace assay::music
