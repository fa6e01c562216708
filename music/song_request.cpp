#include "music/song_request.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "music/metadata_grammar.hpp"

namespace assay::music {
namespace {

[[noreturn]] void bad_value(const char* field, std::string found, std::string expected) {
  throw Error(ErrorKind::invalid_argument,
              {.where = field, .found = std::move(found), .expected = std::move(expected)});
}

void require_share(const char* field, float value) {
  if (!(value >= 0 && value <= 1)) bad_value(field, fmt::format("{}", value), "0 to 1");
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n\r\f\v") == std::string_view::npos;
}

/// The values that the planner may write are those that the authors' models were trained on; another word
/// would go into the prompt and mean nothing.
void require_metadata(const char* field, std::string_view name, const std::string& value,
                      const char* expected) {
  const std::vector<std::string> known = metadata_values(name);
  if (std::ranges::find(known, value) != known.end()) return;
  bad_value(field, "'" + value.substr(0, 40) + "'", expected);
}

/// Looked at here, before the model's form is around it: so the place is that in the text itself.
void require_utf8(const char* field, const std::string& text) {
  const std::optional<std::size_t> bad = find_invalid_utf8(text);
  if (bad) bad_value(field, fmt::format("no UTF-8 at byte {}", *bad), "UTF-8; convert the text first");
}

void check_texts(const SongRequest& request) {
  require_utf8("prompt", request.prompt);
  require_utf8("lyrics", request.lyrics);
  if (request.instruction) require_utf8("instruction", *request.instruction);
  if (is_blank(request.prompt)) bad_value("prompt", "no text", "a description of the song");
  require_metadata("language", "language", request.language, "a code such as en, ja or yue, or unknown");
  if (!request.key_scale.empty()) {
    require_metadata("key", "keyscale", request.key_scale,
                     "a note, A to G with # or b, then major or minor: C# minor");
  }
  if (!request.time_signature.empty()) {
    require_metadata("time signature", "timesignature", request.time_signature, "2, 3, 4 or 6 beats a bar");
  }
  if (request.bpm) require_metadata("bpm", "bpm", std::to_string(*request.bpm), "30 to 300 beats a minute");
}

void check_duration(const SongRequest& request) {
  if (!request.duration) return;
  const double seconds = *request.duration;
  if (!(seconds > 0 && seconds <= audio::kLongestSeconds)) {
    bad_value("duration", fmt::format("{} s", seconds),
              fmt::format("above 0, at most {} s", audio::kLongestSeconds));
  }
  if (request.source || !request.codes.empty()) {
    bad_value(
        "duration", fmt::format("{} s", seconds),
        request.source ? "none: the song is as long as its source" : "none: the codes say how long it is");
  }
}

void check_songs(const SongRequest& request) {
  const std::size_t songs = request.seeds.size();
  if (songs == 0 || songs > kMostSongs)
    bad_value("seeds", counted(songs, "song"), fmt::format("1 to {}", kMostSongs));
  if (!request.noise.empty() && request.noise.size() != songs) {
    bad_value("noise", counted(request.noise.size(), "tensor"),
              fmt::format("one for each of {}", counted(songs, "song")));
  }
}

void check_source(const SongRequest& request, Task task) {
  const bool edits = task != Task::text_to_music;
  if (request.source && !request.codes.empty()) bad_value("codes", "codes and a source", "one of them");
  if (request.source && !edits) bad_value("source", "a source for text2music", "the task repaint or cover");
  if (task == Task::repaint && !request.source)
    bad_value("task", "repaint without a source", "a source to repaint");
  if (task == Task::cover && !request.source && request.codes.empty()) {
    bad_value("task", "cover without a source", "a source or audio codes");
  }
}

void check_repaint(const SongRequest& request, Task task) {
  const SongRequest plain;
  if (task != Task::repaint) {
    if (request.repaint_from != plain.repaint_from || request.repaint_to != plain.repaint_to) {
      bad_value("from, to", "a window without repaint", "the task repaint");
    }
    if (request.repaint_injection != plain.repaint_injection || request.repaint_fade != plain.repaint_fade) {
      bad_value("repaint injection, fade", "no repaint", "the task repaint");
    }
    return;
  }
  const double from = request.repaint_from;
  const double to = request.repaint_to;
  const double seconds = request.source->seconds();
  if (!(from >= 0) || from >= seconds) {
    bad_value("from", fmt::format("{} s", from), fmt::format("within the source's {:.2f} s", seconds));
  }
  if (!std::isfinite(to) || (to > 0 && to <= from)) {
    bad_value("to", fmt::format("{} s", to), fmt::format("after from, {} s", from));
  }
  // Lengths are told in hundredths, and the last frame may be a part of one.
  constexpr double kFrame = 0.04;
  if (to > seconds + kFrame) {
    bad_value("to", fmt::format("{} s", to), fmt::format("within the source's {:.2f} s", seconds));
  }
  require_share("repaint injection", request.repaint_injection);
}

void check_cover(const SongRequest& request, Task task) {
  require_share("cover strength", request.cover_strength);
  require_share("cover noise", request.cover_noise);
  if (task != Task::cover && request.cover_strength != 1)
    bad_value("cover strength", "no cover", "the task cover");
  if (request.cover_noise != 0 && (task != Task::cover || !request.source)) {
    bad_value("cover noise", "no source to start from", "a cover of a source");
  }
}

float plan_guidance(const SongRequest& request, const DitConfig& dit) {
  constexpr float kUsual = 7;
  constexpr float kMost = 100;
  require_share("guidance from", request.guidance_from);
  require_share("guidance to", request.guidance_to);
  if (request.guidance_from > request.guidance_to) {
    bad_value("guidance from", fmt::format("{}", request.guidance_from), "at most guidance to");
  }
  const float guidance = request.guidance.value_or(dit.turbo ? 1.0f : kUsual);
  if (!(guidance >= 1 && guidance <= kMost)) bad_value("guidance", fmt::format("{}", guidance), "1 to 100");
  if (dit.turbo && guidance != 1) {
    bad_value("guidance", fmt::format("{}", guidance), "1: guidance is distilled into a turbo checkpoint");
  }
  if (guidance == 1 && (request.guidance_from != 0 || request.guidance_to != 1)) {
    bad_value("guidance from, to", "no guidance", "guidance above 1");
  }
  return guidance;
}

std::vector<float> plan_timesteps(const SongRequest& request, const DitConfig& dit) {
  if (request.timesteps.empty()) {
    return schedule(request.steps.value_or(dit.turbo ? 8 : 50),
                    request.shift.value_or(dit.turbo ? 3.0f : 1.0f));
  }
  if (request.steps || request.shift) bad_value("timesteps", "beside steps or shift", "the one or the other");
  return checked_schedule(request.timesteps);
}

void check_dcw(const std::optional<Dcw>& dcw) {
  if (!dcw) return;
  for (const float scale : {dcw->low, dcw->high}) {
    if (!(scale >= 0 && scale <= 1)) bad_value("dcw", fmt::format("{}", scale), "0 to 1");
  }
}

std::int32_t parse_code(std::string_view digits, const std::string& where) {
  std::int32_t code = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), code);
  if (failed == std::errc{} && end == digits.data() + digits.size() && code >= 0) return code;
  bad_value(where.c_str(), "'" + std::string(digits.substr(0, 40)) + "'", "<|audio_code_N|> or numbers");
}

}  // namespace

std::vector<std::int32_t> parse_codes(std::string_view text, const std::string& where) {
  constexpr std::string_view kOpen = "<|audio_code_";
  constexpr std::string_view kClose = "|>";
  constexpr std::string_view kBetween = " \t\r\n,";
  std::vector<std::int32_t> codes;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) break;
    const bool token = text.starts_with(kOpen);
    if (token) text.remove_prefix(kOpen.size());
    const std::size_t end = token ? text.find(kClose) : text.find_first_of(" \t\r\n,<");
    if (token && end == std::string_view::npos)
      bad_value(where.c_str(), "a token without its end", "<|audio_code_N|>");
    codes.push_back(parse_code(text.substr(0, end), where));
    text.remove_prefix(std::min(end, text.size()));
    if (token) text.remove_prefix(kClose.size());
  }
  if (codes.empty()) bad_value(where.c_str(), "no codes", "at least one");
  return codes;
}

SongPlan plan_request(const SongRequest& request, const DitConfig& dit) {
  SongPlan plan;
  plan.task = request.task == Task::text_to_music && !request.codes.empty() ? Task::cover : request.task;
  check_texts(request);
  check_duration(request);
  check_songs(request);
  check_source(request, plan.task);
  check_repaint(request, plan.task);
  check_cover(request, plan.task);
  check_dcw(request.dcw);
  plan.guidance = plan_guidance(request, dit);
  plan.timesteps = plan_timesteps(request, dit);
  constexpr double kUsualSeconds = 60;
  if (!request.source && request.codes.empty()) plan.seconds = request.duration.value_or(kUsualSeconds);
  return plan;
}

}  // namespace assay::music
