#include "music/edit.hpp"

#include <algorithm>

namespace assay::music {

std::vector<float> silence_of(std::span<const float> silence, std::size_t frames, std::size_t width) {
  std::vector<float> rows(frames * width);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = silence[i % silence.size()];
  return rows;
}

std::vector<float> context_rows(std::span<const float> source, std::size_t width) {
  std::vector<float> rows(2 * source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    const std::size_t at = i / width * 2 * width + i % width;
    rows[at] = source[i];
    rows[at + width] = 1.0f;
  }
  return rows;
}

std::vector<float> repaint_context_rows(std::span<const float> source, std::span<const float> silence,
                                        std::size_t width, FrameWindow window) {
  std::vector<float> rows(2 * source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    const std::size_t frame = i / width;
    const bool inside = frame >= window.first && frame < window.last;
    const std::size_t at = frame * 2 * width + i % width;
    rows[at] = inside ? silence[i] : source[i];
    rows[at + width] = inside ? 1.0f : 0.0f;
  }
  return rows;
}

std::vector<float> timbre_clip(const audio::Sound& reference) {
  constexpr std::size_t kPart = 10 * audio::kSampleRate;
  const std::size_t frames = reference.frames();
  const std::size_t repeats = std::max<std::size_t>(1, (3 * kPart + frames - 1) / frames);
  const std::size_t total = frames * repeats;
  std::vector<float> clip;
  clip.reserve(6 * kPart);
  for (const std::size_t first : {std::size_t{0}, total / 3, total - kPart}) {
    for (std::size_t i = first; i < first + kPart; ++i) {
      const std::size_t frame = i % frames;
      clip.push_back(reference.samples[2 * frame]);
      clip.push_back(reference.samples[2 * frame + 1]);
    }
  }
  return clip;
}

}  // namespace assay::music
