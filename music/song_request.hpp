#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audio/sound_reader.hpp"
#include "music/config.hpp"
#include "music/sampler.hpp"
#include "music/text_format.hpp"

namespace assay::music {

/// In one request.
inline constexpr std::size_t kMostSongs = 64;

/// What is asked for. Everything left at its default is what the authors' pipeline does with the released
/// turbo model.
struct SongRequest {
  Task task = Task::text_to_music;
  std::string prompt;
  std::string lyrics = {};
  std::string language = "en";                            ///< as metadata_values("language") has it
  std::optional<std::string> instruction = std::nullopt;  ///< in place of the task's
  std::optional<double> duration = std::nullopt;          ///< seconds, (0, 600]; 60 where nothing else says
  std::optional<std::uint32_t> bpm = std::nullopt;        ///< 30 to 300, the authors' range
  std::string key_scale = {};       ///< "C# minor": of metadata_values("keyscale"), or empty
  std::string time_signature = {};  ///< "2", "3", "4" or "6", or empty

  std::vector<std::uint64_t> seeds = {0};      ///< one song each
  std::vector<std::vector<float>> noise = {};  ///< instead of the seeds' noise: [frames, latent width] a song

  std::optional<std::size_t> steps = std::nullopt;  ///< 8 for a turbo checkpoint, else 50
  std::optional<float> shift = std::nullopt;        ///< 3 for a turbo checkpoint, else 1
  std::vector<float> timesteps = {};                ///< instead of steps and shift
  std::optional<Dcw> dcw = Dcw{};
  std::optional<float> guidance = std::nullopt;  ///< 7 for a base checkpoint; a turbo one takes none but 1
  float guidance_from = 0;                       ///< the share of the way, 1 − t, where guidance begins
  float guidance_to = 1;                         ///< and where it ends

  std::vector<std::int32_t> codes = {};               ///< 5 a second; they set the length, and make a cover
  std::optional<audio::Sound> source = std::nullopt;  ///< of repaint and cover
  std::optional<audio::Sound> reference = std::nullopt;  ///< whose timbre is wanted
  double repaint_from = 0;                               ///< seconds
  double repaint_to = -1;  ///< seconds, at most a frame beyond the source; not above 0: to its end
  float repaint_injection =
      0.5f;  ///< share of the steps after which the source is put back outside the window
  /// Frames over which the edges join the source at the end; without it all frames stay as the DiT made them,
  /// as in diffusers' pipeline.
  std::optional<std::size_t> repaint_fade = 10;
  float cover_strength = 1;  ///< share of the cover's velocity; the rest is that under the text's condition
  float cover_noise = 0;     ///< 0 starts from noise, 1 from the source
};

/// Audio codes from text: "<|audio_code_12|><|audio_code_7|>", or numbers with commas or blanks between.
/// Throws Error(invalid_argument) naming `where` for anything else. Their range is the checkpoint's affair.
std::vector<std::int32_t> parse_codes(std::string_view text, const std::string& where);

/// A request whose every value has been looked at, completed by the checkpoint's defaults.
struct SongPlan {
  Task task = Task::text_to_music;
  std::vector<float> timesteps;   ///< falling, without the last 0
  float guidance = 1;             ///< 1 is none
  std::optional<double> seconds;  ///< from the request; nothing where source or codes decide
};

/// Throws Error(invalid_argument | limit_exceeded) naming the field of the request for a value that makes no
/// sense or would be without effect: no parameter is passed over in silence.
SongPlan plan_request(const SongRequest& request, const DitConfig& dit);

}  // namespace assay::music
