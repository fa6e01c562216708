#pragma once

#include <optional>
#include <string>
#include <string_view>

/// The texts that the planner, ACE-Step's 5 Hz language model, is asked with and answers in.
/// Source: ace-step/ACE-Step-1.5, acestep/llm_inference.py (build_formatted_prompt,
/// build_formatted_prompt_with_cot, _format_metadata_as_cot) and acestep/constants.py.
namespace assay::music {

/// What a song is described by besides caption and lyrics. Absent: for the planner to say.
struct SongMetadata {
  std::optional<int> bpm = {};                    ///< 30 to 300
  std::optional<std::string> caption = {};        ///< one line; the planner's own wording of the prompt
  std::optional<int> duration = {};               ///< seconds, 10 to 600
  std::optional<std::string> keyscale = {};       ///< "F# minor"
  std::optional<std::string> language = {};       ///< of the vocals: "en", "yue", "unknown"
  std::optional<std::string> timesignature = {};  ///< beats a bar: "2", "3", "4" or "6"
  bool operator==(const SongMetadata&) const = default;
};

/// What the planner is asked in both phases. Control tokens in it are broken up, so that no caption can end
/// its turn.
struct PlannerPrompt {
  std::string caption;
  std::string lyrics;
  std::string negative;  ///< what guidance leads away from; empty for none
};

/// First phase: the chat up to the assistant's turn, which is to begin with "<think>".
std::string metadata_prompt(const PlannerPrompt& prompt);
/// The same without guidance's caption (or with the negative one in its place).
std::string unguided_metadata_prompt(const PlannerPrompt& prompt);

/// Second phase: the chat with the metadata thought through, the assistant's turn open for the codes.
///
/// The authors format the whole turn by the tokenizer's chat template; which template the released planners
/// ship could not be seen. The turn is left open, as ServeurpersoCom/acestep.cpp does
/// (src/prompt.h, build_lm_prompt_with_cot).
std::string codes_prompt(const PlannerPrompt& prompt, const SongMetadata& metadata);
/// The same with an empty thought, and the negative caption where there is one.
std::string unguided_codes_prompt(const PlannerPrompt& prompt);

/// The metadata as the planner was taught to write it: YAML lines in alphabetical order, as PyYAML's dump
/// writes them (quotes where a plain word would be read as something else; lines folded after column 80).
/// Each line ends in a newline.
std::string metadata_lines(const SongMetadata& metadata);

/// Reads such lines back: folded lines joined, quotes taken off. What is not there or out of range is absent.
SongMetadata parse_metadata_lines(std::string_view lines);

}  // namespace assay::music
