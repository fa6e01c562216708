#pragma once

#include <filesystem>

#include "music/composer.hpp"

namespace assay::music {

/// A tap that writes every tensor to `folder` as NAME.safetensors, one fp32 tensor of that name, [rows,
/// width]; those of the first song are named without its number's dot: "0.latents.safetensors". Makes the
/// folder. Throws Error(io).
SongTap taps_into(const std::filesystem::path& folder);

}  // namespace assay::music
