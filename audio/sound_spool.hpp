#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace assay::audio {

/// How a song's samples are scaled: divided, then multiplied, in fp32, as huggingface/diffusers does
/// (pipelines/ace_step/pipeline_ace_step.py): by the peak where it exceeds 1, then to −1 dBFS.
struct Loudness {
  float divisor = 1;
  float factor = 1;
  float apply(float sample) const { return sample / divisor * factor; }
};
Loudness loudness_of(float peak);

/// Samples on their way from the decoder to the file. The last sample decides the scale of the first, so they
/// wait on disk: in a file without a name, which goes with this object or its process.
class SoundSpool {
 public:
  /// The file is made in `folder`. Throws Error(io | missing).
  explicit SoundSpool(const std::filesystem::path& folder);
  ~SoundSpool();
  SoundSpool(const SoundSpool&) = delete;
  SoundSpool& operator=(const SoundSpool&) = delete;

  /// Throws Error(non_finite) naming second and value for a NaN or infinity among `samples` (interleaved
  /// stereo at 48 kHz), Error(io) where the disk is full.
  void append(std::span<const float> samples);

  /// Samples [first, first + out.size()) as they were appended. Throws Error(io).
  void read(std::size_t first, std::span<float> out) const;

  std::size_t samples() const { return samples_; }
  float peak() const { return peak_; }

 private:
  std::filesystem::path folder_;
  int file_ = -1;
  std::size_t samples_ = 0;
  float peak_ = 0;
};

}  // namespace assay::audio
