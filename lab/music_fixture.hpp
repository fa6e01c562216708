#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor_source.hpp"
#include "music/text_format.hpp"

namespace assay::lab {

/// One song that an oracle made, and what it was asked for.
struct MusicCase {
  std::string id;
  std::string prompt;
  std::string lyrics;
  std::string language;
  double duration = 0;  ///< seconds; 0: as long as the codes or the source are
  std::optional<std::uint32_t> bpm;
  std::string key_scale;
  std::string time_signature;
  std::optional<float> shift;  ///< nothing: the model's default
  std::size_t steps = 0;       ///< that the oracle took
  music::Task task = music::Task::text_to_music;
  std::string audio_codes;  ///< "<|audio_code_0|>…"
  double repaint_from = 0;
  double repaint_to = -1;  ///< not above 0: the end
  std::size_t frames = 0;  ///< of latents
  std::string text;        ///< the prompt as the encoder read it
  std::string lyric_text;
  std::vector<std::int32_t> text_ids;  ///< of those texts
  std::vector<std::int32_t> lyric_ids;
  std::vector<std::string> stages;  ///< those of kMusicStages that were recorded, in that order
};

/// What is recorded of a case: tensors "<id>.<stage>". Those that are not required are compared where the
/// oracle kept them.
struct MusicStage {
  std::string_view name;
  bool required;
};
inline constexpr MusicStage kMusicStages[] = {
    {"text_hidden", false},    ///< of the text encoder, [text tokens, width]
    {"src_latents", false},    ///< of the source's sound, [frames, 64]
    {"codes", false},          ///< of those latents, i32 [⌈frames / 5⌉] or [·, 1]
    {"condition", true},       ///< [lyrics + timbre + text, width]
    {"velocity_first", true},  ///< of the first step, [frames, 64]
    {"velocity_last", true},   ///< of the last step
    {"latents", true},         ///< [frames, 64]
    {"wav", true},             ///< [2, samples], the peak brought to 1 where it was above
};

/// An oracle's songs: a JSON file with {"model", "made_by"?, "cases"} and beside it, of the same name with
/// .safetensors, the recorded tensors: each case's stages, its "noise" [frames, 64] and, for repaint and
/// cover, "src_audio" [2, samples] at 48 kHz. A "raw" of the waveform before its peak was brought down is
/// allowed and not read.
struct MusicFixture {
  std::string file;    ///< its name, for reports
  std::string sha256;  ///< over the SHA-256 of both files, so that it names the bytes of either
  std::string model;
  std::vector<MusicCase> cases;
  std::shared_ptr<const formats::TensorSource> tensors;

  /// A recorded tensor whole; codes as numbers. Throws Error(missing | non_finite).
  std::vector<float> values(const MusicCase& song, std::string_view name) const;
  std::vector<std::size_t> shape(const MusicCase& song, std::string_view name) const;
  bool has(const MusicCase& song, std::string_view name) const;
};

/// Whether a JSON file is one of songs, by its "cases", which no other fixture has; nothing else is looked
/// at. Throws Error(missing | io | malformed) for what is no JSON file.
bool is_music_fixture(const std::filesystem::path& path);

/// Throws Error(malformed | mismatch | missing) naming file and field or tensor for anything unknown, absent
/// or of another type, shape or range: a request field that this reader does not know would otherwise be a
/// song that is silently judged against another one.
MusicFixture read_music_fixture(const std::filesystem::path& path);

}  // namespace assay::lab
