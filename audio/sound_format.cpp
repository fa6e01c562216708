#include "audio/sound_format.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "base/error.hpp"

namespace assay::audio {
namespace {

struct FormatWords {
  SoundFormat format;
  std::string_view name;
  std::string_view ending;
  std::string_view samples;
};

/// The first of an ending is what it means without a choice.
constexpr std::array<FormatWords, 6> kFormats = {{{SoundFormat::wav16, "WAV, 16 bits", ".wav", "16"},
                                                  {SoundFormat::wav24, "WAV, 24 bits", ".wav", "24"},
                                                  {SoundFormat::wav_float, "WAV, float", ".wav", "float"},
                                                  {SoundFormat::flac16, "FLAC, 16 bits", ".flac", "16"},
                                                  {SoundFormat::flac24, "FLAC, 24 bits", ".flac", "24"},
                                                  {SoundFormat::mp3, "MP3", ".mp3", ""}}};

}  // namespace

std::string_view to_string(SoundFormat format) {
  return kFormats[static_cast<std::size_t>(format)].name;
}

SoundFormat sound_format_of(const std::filesystem::path& file, std::string_view samples,
                            std::string_view where) {
  std::string ending = file.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string choices;
  for (const FormatWords& words : kFormats) {
    if (words.ending != ending) continue;
    if (samples.empty() || samples == words.samples) return words.format;
    if (!words.samples.empty()) choices += (choices.empty() ? "" : ", ") + std::string(words.samples);
  }
  if (samples.empty() || !std::ranges::any_of(kFormats, [&](auto& w) { return w.ending == ending; })) {
    throw Error(ErrorKind::invalid_argument, {.where = file.string(),
                                              .found = "the ending '" + ending.substr(0, 20) + "'",
                                              .expected = ".wav, .flac or .mp3"});
  }
  throw Error(ErrorKind::invalid_argument,
              {.where = std::string(where),
               .found = "'" + std::string(samples.substr(0, 20)) + "' samples in a " + ending + " file",
               .expected = choices.empty() ? "no choice of samples" : choices});
}

}  // namespace assay::audio
