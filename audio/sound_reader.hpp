#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace assay::audio {

inline constexpr std::size_t kSampleRate = 48000;
inline constexpr double kLongestSeconds = 600;

/// Stereo at 48 kHz.
struct Sound {
  std::vector<float> samples;  ///< interleaved: left, right
  std::size_t frames() const { return samples.size() / 2; }
  double seconds() const { return static_cast<double>(frames()) / static_cast<double>(kSampleRate); }
};

/// Reads any file that libsndfile knows (WAV, FLAC, MP3, Ogg, AIFF, …): mono becomes two equal channels,
/// another rate is resampled by soxr at its high quality. Throws Error(missing | io) for the file,
/// Error(malformed) for what is no sound file or ends before its header says, Error(unsupported) for more
/// than two channels or a rate outside 4 kHz to 768 kHz, Error(limit_exceeded) past ten minutes,
/// Error(non_finite) naming the second.
Sound read_sound(const std::filesystem::path& file);

/// The same from a file's bytes; `file` stands in errors. Memory is the sound's, whatever a header promises.
Sound parse_sound(std::span<const std::byte> bytes, const std::filesystem::path& file);

}  // namespace assay::audio
