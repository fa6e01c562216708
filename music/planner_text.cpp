#include "music/planner_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "text/control_tokens.hpp"

namespace assay::music {
namespace {

constexpr std::string_view kInstruction = "Generate audio semantic tokens based on the given conditions:";
constexpr std::size_t kFoldColumn = 80;

/// Caller text that forms neither a control token nor the tags around a thought.
std::string caller_text(std::string_view text) {
  std::string safe = text::without_control_tokens(text);
  for (const std::string_view tag : {"<think>", "</think>"}) {
    for (std::size_t at = safe.find(tag); at != std::string::npos; at = safe.find(tag, at)) {
      safe.insert(at + 1, "\xc2\xa6");
    }
  }
  return safe;
}

std::string song_block(std::string_view caption, std::string_view lyrics) {
  return fmt::format("# Caption\n{}\n\n# Lyric\n{}\n", caller_text(caption), caller_text(lyrics));
}

std::string chat(std::string_view user) {
  return fmt::format(
      "<|im_start|>system\n# Instruction\n{}\n\n<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n"
      "<|im_start|>assistant\n",
      kInstruction, user);
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(c < 0x80 ? std::tolower(c) : c); });
  return result;
}

/// Whether YAML 1.1 would read the plain word as a truth value or nothing, and PyYAML therefore quotes it.
bool resolves_to_other(std::string_view text) {
  constexpr std::array<std::string_view, 10> kWords{"yes", "no",   "true", "false", "on",
                                                    "off", "null", "~",    "=",     "<<"};
  return std::ranges::find(kWords, lower(text)) != kWords.end();
}

/// Whether a text can stand unquoted (PyYAML, emitter.py, analyze_scalar, block context).
bool plain(std::string_view text) {
  if (text.empty() || resolves_to_other(text)) return false;
  if (text.front() == ' ' || text.back() == ' ') return false;
  if (std::string_view("#,[]{}&*!|>'\"%@`").find(text.front()) != std::string_view::npos) return false;
  const bool indicator = std::string_view("?:-").find(text.front()) != std::string_view::npos;
  if (indicator && (text.size() == 1 || text[1] == ' ')) return false;
  if (text.starts_with("---") || text.starts_with("...")) return false;
  return text.find(": ") == std::string_view::npos && text.find(" #") == std::string_view::npos &&
         text.back() != ':';
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/// Whether a line may be folded at the space before `begin`: only where it stands alone, for a reader joins
/// lines by one space and trims what else is blank there; not before a closing quote.
bool may_fold(std::string_view scalar, std::size_t begin) {
  if (begin < 2 || begin >= scalar.size() || is_blank(scalar[begin - 2]) || is_blank(scalar[begin]))
    return false;
  return begin + 1 < scalar.size() || scalar[begin] != '\'';
}

/// `name: value`, folded at single spaces once a line is longer than 80 columns, as PyYAML's emitter does.
std::string yaml_line(std::string_view name, std::string_view value) {
  std::string scalar(value);
  if (!plain(value)) {
    for (std::size_t at = scalar.find('\''); at != std::string::npos; at = scalar.find('\'', at + 2)) {
      scalar.insert(at, 1, '\'');
    }
    scalar = "'" + scalar + "'";
  }
  std::string line = fmt::format("{}:", name);
  std::size_t column = line.size();
  std::size_t begin = 0;
  while (begin <= scalar.size()) {
    const std::size_t end = std::min(scalar.find(' ', begin), scalar.size());
    const std::string_view word = std::string_view(scalar).substr(begin, end - begin);
    const bool fold = column > kFoldColumn && may_fold(scalar, begin);
    line += fold ? "\n  " : " ";
    column = (fold ? 2 : column + 1) + static_cast<std::size_t>(std::ranges::count_if(word, [](char c) {
               return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // columns are code points
             }));
    line += word;
    begin = end + 1;
  }
  return line + "\n";
}

std::string_view trimmed_text(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

std::string unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '\'' || text.back() != '\'') return std::string(text);
  std::string result(text.substr(1, text.size() - 2));
  for (std::size_t at = result.find("''"); at != std::string::npos; at = result.find("''", at + 1)) {
    result.erase(at, 1);
  }
  return result;
}

std::optional<int> whole_number(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) return {};
  return value;
}

void set_field(SongMetadata& metadata, std::string_view name, const std::string& value) {
  if (value.empty()) return;
  if (name == "bpm") metadata.bpm = whole_number(value, 30, 300);
  if (name == "caption") metadata.caption = value;
  if (name == "duration") metadata.duration = whole_number(value, 10, 600);
  if (name == "keyscale") metadata.keyscale = value;
  if (name == "language") metadata.language = value;
  if (name == "timesignature") metadata.timesignature = value;
}

}  // namespace

std::string metadata_prompt(const PlannerPrompt& prompt) {
  return chat(song_block(prompt.caption, prompt.lyrics));
}

std::string unguided_metadata_prompt(const PlannerPrompt& prompt) {
  if (!prompt.negative.empty()) return chat(song_block(prompt.negative, prompt.lyrics));
  return chat(fmt::format("# Lyric\n{}\n", caller_text(prompt.lyrics)));
}

std::string codes_prompt(const PlannerPrompt& prompt, const SongMetadata& metadata) {
  return metadata_prompt(prompt) + "<think>\n" + metadata_lines(metadata) + "</think>\n\n";
}

std::string unguided_codes_prompt(const PlannerPrompt& prompt) {
  const std::string& caption = prompt.negative.empty() ? prompt.caption : prompt.negative;
  return chat(song_block(caption, prompt.lyrics)) + "<think>\n\n</think>\n\n";
}

std::string metadata_lines(const SongMetadata& metadata) {
  std::string lines;
  const auto text = [&](std::string_view name, const std::optional<std::string>& value) {
    if (value) lines += yaml_line(name, caller_text(*value));
  };
  if (metadata.bpm) lines += fmt::format("bpm: {}\n", *metadata.bpm);
  text("caption", metadata.caption);
  if (metadata.duration) lines += fmt::format("duration: {}\n", *metadata.duration);
  text("keyscale", metadata.keyscale);
  text("language", metadata.language);
  text("timesignature", metadata.timesignature);
  return lines;
}

SongMetadata parse_metadata_lines(std::string_view lines) {
  SongMetadata metadata;
  std::string name;
  std::string value;
  const auto finish = [&] { set_field(metadata, name, unquoted(trimmed_text(value))); };
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.starts_with(' ') || line.starts_with('\t')) {
      value.append(" ").append(trimmed_text(line));
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    finish();
    name = line.substr(0, colon);
    value = trimmed_text(line.substr(colon + 1));
  }
  finish();
  return metadata;
}

}  // namespace assay::music
