#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The texts that the encoders were trained on (huggingface/diffusers,
/// src/diffusers/pipelines/ace_step/pipeline_ace_step.py: SFT_GEN_PROMPT, TASK_INSTRUCTIONS, _format_prompt).
/// Every newline counts.
namespace assay::music {

/// What is asked of the model. Audio codes make a text-to-music request a cover.
enum class Task { text_to_music, repaint, cover };

std::string_view to_string(Task task);
/// "text2music", "repaint" or "cover"; Error(invalid_argument) naming `where` for another word.
Task parse_task(std::string_view word, const std::string& where);

/// The sentence at the head of the prompt text.
std::string_view instruction_of(Task task);

/// The most tokens that each text may have; more is an error here, where the authors' code cuts the text
/// short.
inline constexpr std::size_t kMaxPromptTokens = 256;
inline constexpr std::size_t kMaxLyricTokens = 2048;

struct Metas {
  std::optional<std::uint32_t> bpm = std::nullopt;  ///< nothing and 0 are "N/A"
  std::string time_signature = {};                  ///< "4"; blank is "N/A"
  std::string key_scale = {};                       ///< "C minor"; blank is "N/A"
  double duration = 0;                              ///< seconds, above 0; written without its fraction
};

/// The text of instruction, caption and metas. An instruction without a colon at its end gets one.
std::string prompt_text(std::string_view instruction, std::string_view caption, const Metas& metas);
/// The text of the lyrics; `language` is a code such as "en", or "unknown".
std::string lyric_text(std::string_view language, std::string_view lyrics);

}  // namespace assay::music
