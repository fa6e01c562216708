#pragma once

#include <filesystem>
#include <stop_token>
#include <string>

#include "audio/sound_format.hpp"
#include "audio/sound_spool.hpp"

namespace assay::audio {

/// What a file says of itself: title, comment and software of WAV's LIST chunk, FLAC's comments, MP3's ID3.
struct SoundTags {
  std::string title;
  std::string comment;
};

/// Writes a spool's stereo samples at 48 kHz, scaled as loudness_of says, and puts the file in its place when
/// it is whole. Equal samples and tags give equal files. Throws Error(io) where the disk is full or refuses,
/// Error(cancelled) where `stop` asks, Error(unsupported) where this build of libsndfile lacks the format;
/// nothing is left then.
void write_sound(const std::filesystem::path& file, SoundFormat format, const SoundSpool& spool,
                 const SoundTags& tags, std::stop_token stop = {});

}  // namespace assay::audio
