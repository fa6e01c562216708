#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "music/causal_lm.hpp"
#include "music/checkpoint.hpp"
#include "music/planner_text.hpp"
#include "music/token_sampler.hpp"

namespace assay::music {

struct PlannerOptions {
  TokenSampling sampling = {};
  float guidance = 2.0f;  ///< 1: none, and half the work
  std::uint64_t seed = 0;
  bool metadata = true;  ///< false: what is given is taken as it is, and nothing is asked for
  bool caption = true;   ///< whether the planner words the prompt anew
  bool language = true;  ///< whether it names the language
  bool codes = true;     ///< false: metadata alone
  /// Seconds of audio codes to write; 0: the planner ends where it likes, at 600 seconds at the latest.
  double duration = 0;
};

struct Plan {
  SongMetadata metadata;
  std::vector<std::int32_t> codes;  ///< five a second
  std::uint64_t seed = 0;           ///< which the same plan can be had by again
};

/// Called as codes are written: (stage, done, expected), expected 0 where it is not known.
using PlannerProgress = std::function<void(std::string_view stage, std::size_t done, std::size_t expected)>;

/// Writes a song's metadata and then its audio codes, as ACE-Step's 5 Hz language model does: two phases,
/// each with classifier-free guidance, the tokens restricted to what the phase may hold. The k-th token that
/// is drawn takes uniform number k of the seed's planner stream (music/noise.hpp), so that a plan depends on
/// model, prompt, options and seed alone.
/// Throws Error(invalid_argument) for options out of range or metadata that the grammar lacks,
/// Error(limit_exceeded) for texts too long, Error(cancelled), Error(non_finite).
Plan plan_song(CausalLm& model, const PlannerPrompt& prompt, const SongMetadata& given,
               const PlannerOptions& options, const PlannerProgress& progress = nullptr,
               const std::stop_token& stop = {});

/// Throws Error(mismatch) naming `planner` where it has more audio codes than the model: it was trained for
/// another one, and would write such a code sooner or later.
void require_known_codes(std::size_t codes, const Checkpoint& checkpoint, const std::string& planner);

inline constexpr std::size_t kCodesPerSecond = 5;
inline constexpr double kLongestSong = 600;  ///< seconds

}  // namespace assay::music
