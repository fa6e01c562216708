#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay::music {

/// The parts of an ACE-Step checkpoint that have tensors.
enum class Part { text_encoder, condition_encoder, transformer, audio_tokenizer, audio_detokenizer, vae };

/// The part's folder in a diffusers checkpoint: "condition_encoder", "audio_token_detokenizer".
std::string_view folder_of(Part part);

/// The name by which diffusers, and so everything here, knows a tensor of an original checkpoint's
/// model.safetensors, or nothing where it is not of that part. The one table of both layouts
/// (huggingface/diffusers, scripts/convert_ace_step_to_diffusers.py). Text encoder and VAE have files of
/// their own in both.
std::optional<std::string> part_name(Part part, std::string_view original);

}  // namespace assay::music
