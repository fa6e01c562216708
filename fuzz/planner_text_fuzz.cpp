// What a caller writes to the planner and what the planner writes back: prompts that no caption can break
// out of, metadata that comes back as it was written, codes or an Error.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "music/planner_text.hpp"
#include "music/song_request.hpp"

namespace {

using namespace assay::music;

void check(bool holds) {
  if (!holds) std::abort();
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

void check_turns(const std::string& prompt) {
  check(count(prompt, "<|im_start|>") == 3 && count(prompt, "<|im_end|>") == 2);
}

void check_prompts(std::string_view text) {
  const PlannerPrompt prompt{.caption = std::string(text), .lyrics = std::string(text), .negative = {}};
  const std::string asked = metadata_prompt(prompt);
  check_turns(asked);
  check(count(asked, "think>") == count(text, "think>") * 2 && count(asked, "<think>") == 0);
  check_turns(unguided_metadata_prompt(prompt));
  const std::string thought =
      unguided_codes_prompt({.caption = prompt.caption, .lyrics = {}, .negative = {}});
  check_turns(thought);
  check(count(thought, "<think>") == 1 && count(thought, "</think>") == 1);
}

void check_metadata(std::string_view text) {
  const SongMetadata metadata = parse_metadata_lines(text);
  check(!metadata.bpm || (*metadata.bpm >= 30 && *metadata.bpm <= 300));
  check(!metadata.duration || (*metadata.duration >= 10 && *metadata.duration <= 600));
  const std::string lines = metadata_lines(metadata);
  check(count(lines, "<|im_end|>") == 0 && count(lines, "</think>") == 0);
  // Control tokens are broken up once; whatever has none left comes back as it is.
  const SongMetadata written = parse_metadata_lines(lines);
  check(parse_metadata_lines(metadata_lines(written)) == written);
}

void check_codes(std::string_view text) {
  try {
    const std::vector<std::int32_t> codes = parse_codes(text, "codes");
    check(!codes.empty());
    std::string written;
    for (const std::int32_t code : codes) written += "<|audio_code_" + std::to_string(code) + "|>";
    check(parse_codes(written, "codes") == codes);
  } catch (const assay::Error& error) {
    check(error.kind() == assay::ErrorKind::invalid_argument);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_prompts(text);
  check_metadata(text);
  check_codes(text);
  return 0;
}
