#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <vector>

#include <sndfile.h>

namespace assay::audio {

/// A sine of so many frames, channel c at frequency·(c + 1).
inline std::vector<float> sine(std::size_t frames, int channels, double rate, double frequency, float level) {
  std::vector<float> samples(frames * static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto frame = static_cast<double>(i / static_cast<std::size_t>(channels));
    const double tone = frequency * static_cast<double>(i % static_cast<std::size_t>(channels) + 1);
    samples[i] = level * static_cast<float>(std::sin(2 * 3.14159265358979 * tone * frame / rate));
  }
  return samples;
}

/// Writes by libsndfile alone.
inline void write_plain(const std::filesystem::path& file, const std::vector<float>& samples, int channels,
                        int rate, int format) {
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = channels;
  info.format = format;
  SNDFILE* sound = sf_open(file.c_str(), SFM_WRITE, &info);
  sf_writef_float(sound, samples.data(), static_cast<sf_count_t>(samples.size()) / channels);
  sf_close(sound);
}

}  // namespace assay::audio
