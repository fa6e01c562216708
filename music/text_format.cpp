#include "music/text_format.hpp"

#include <array>

#include <fmt/format.h>

#include "base/error.hpp"

namespace assay::music {
namespace {

struct TaskWords {
  Task task;
  std::string_view name;
  std::string_view instruction;
};

constexpr std::array<TaskWords, 3> kTasks = {{
    {Task::text_to_music, "text2music", "Fill the audio semantic mask based on the given conditions:"},
    {Task::repaint, "repaint", "Repaint the mask area based on the given conditions:"},
    {Task::cover, "cover", "Generate audio semantic tokens based on the given conditions:"},
}};

const TaskWords& words_of(Task task) {
  return kTasks[static_cast<std::size_t>(task)];
}

/// Blank as Python's str.strip sees it, for the ASCII that such a field holds.
std::string_view or_not_available(std::string_view text) {
  return text.find_first_not_of(" \t\n\r\f\v") == std::string_view::npos ? "N/A" : text;
}

}  // namespace

std::string_view to_string(Task task) {
  return words_of(task).name;
}

Task parse_task(std::string_view word, const std::string& where) {
  for (const TaskWords& words : kTasks) {
    if (words.name == word) return words.task;
  }
  throw Error(ErrorKind::invalid_argument, {.where = where,
                                            .found = "'" + std::string(word.substr(0, 40)) + "'",
                                            .expected = "text2music, repaint or cover"});
}

std::string_view instruction_of(Task task) {
  return words_of(task).instruction;
}

std::string prompt_text(std::string_view instruction, std::string_view caption, const Metas& metas) {
  const std::string bpm = metas.bpm.value_or(0) > 0 ? std::to_string(*metas.bpm) : "N/A";
  return fmt::format(
      "# Instruction\n{}{}\n\n# Caption\n{}\n\n# Metas\n- bpm: {}\n- timesignature: {}\n- keyscale: {}\n"
      "- duration: {} seconds\n<|endoftext|>\n",
      instruction, instruction.ends_with(':') ? "" : ":", caption, bpm,
      or_not_available(metas.time_signature), or_not_available(metas.key_scale),
      static_cast<std::int64_t>(metas.duration));
}

std::string lyric_text(std::string_view language, std::string_view lyrics) {
  return fmt::format("# Languages\n{}\n\n# Lyric\n{}<|endoftext|>", language, lyrics);
}

}  // namespace assay::music
