#pragma once

#include <filesystem>
#include <string_view>

namespace assay::audio {

/// What a sound is written as.
enum class SoundFormat { wav16, wav24, wav_float, flac16, flac24, mp3 };

std::string_view to_string(SoundFormat format);

/// The format of a file's name and, where given, a choice of samples: "" (WAV and FLAC 16), "16", "24" or
/// "float". `where` names the choice in messages. Throws Error(invalid_argument) for another ending, or
/// samples that such a file does not have.
SoundFormat sound_format_of(const std::filesystem::path& file, std::string_view samples,
                            std::string_view where);

}  // namespace assay::audio
