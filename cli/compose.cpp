#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "audio/output_file.hpp"
#include "audio/sound_format.hpp"
#include "audio/sound_writer.hpp"
#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/path.hpp"
#include "base/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/embedded_model.hpp"
#include "cli/stop_signals.hpp"
#include "device/thread_pool.hpp"
#include "formats/safetensors.hpp"
#include "music/causal_lm.hpp"
#include "music/composer.hpp"
#include "music/noise.hpp"
#include "music/planner.hpp"
#include "music/taps.hpp"
#include "ops/device_selection.hpp"

namespace assay::cli {
namespace {

using music::SongRequest;

struct ComposeFlags {
  std::string model;
  std::string prompt;
  std::optional<std::string> lyrics;
  std::string language = "en";
  std::optional<std::string> instruction;
  std::optional<double> duration;
  std::optional<std::uint32_t> bpm;
  std::string key;
  std::string time_signature;
  std::optional<std::uint64_t> seed;
  std::size_t count = 1;
  std::optional<std::size_t> steps;
  std::optional<double> shift;
  std::vector<double> timesteps;
  std::string dcw;
  std::optional<double> guidance;
  double guidance_from = 0;
  double guidance_to = 1;
  std::string codes;
  std::string source;
  std::string reference;
  std::string task = "text2music";
  double from = 0;
  std::optional<double> to;
  double injection = 0.5;
  std::string fade = "10";
  double cover_strength = 1;
  double cover_noise = 0;
  bool plan = false;
  std::string planner;
  bool metadata_only = false;
  std::optional<double> planner_guidance;
  std::optional<double> planner_temperature;
  std::optional<double> planner_top_p;
  std::string noise;
  std::string out;
  std::string samples;
  std::string taps;
  std::string precision = "bf16";
  std::vector<std::string> forms;
  std::size_t threads = 0;
  std::size_t window = 256;
  bool json = false;
};

void add_song_flags(CLI::App& command, ComposeFlags& flags) {
  command.add_option("--prompt", flags.prompt, "What the song is to be like")->required();
  command.add_option("--lyrics", flags.lyrics, "File of the lyrics; without it none are sung");
  command.add_option("--language", flags.language, "Of the lyrics: en, zh, ja, …, unknown")
      ->capture_default_str();
  command.add_option("--duration", flags.duration, "Seconds, at most 600; 60 where nothing else says");
  command.add_option("--bpm", flags.bpm, "Beats a minute");
  command.add_option("--key", flags.key, "Such as \"C minor\"");
  command.add_option("--time-signature", flags.time_signature, "Beats a bar: 2, 3, 4 or 6");
  command.add_option("--instruction", flags.instruction, "In place of the task's own");
  command.add_option("--seed", flags.seed, "64 bits; without one a fresh one is drawn and told");
  command.add_option("--count", flags.count, "Songs to make, with seeds that follow each other")
      ->capture_default_str();
  command.add_option("--noise", flags.noise, "Safetensors file whose tensor \"noise\" is started from");
}

void add_sampling_flags(CLI::App& command, ComposeFlags& flags) {
  command.add_option("--steps", flags.steps, "Of the sampler; 8 for a turbo model, else 50");
  command.add_option("--shift", flags.shift, "Of the schedule; 3 for a turbo model, else 1");
  command
      .add_option("--timesteps", flags.timesteps, "Instead of both: falling, comma-separated, from at most 1")
      ->delimiter(',');
  command.add_option(
      "--dcw", flags.dcw,
      "Correction after each step: \"off\", or scales of the low and high band; 0.05,0.02, with a "
      "planner's codes 0.02,0.06");
  command.add_option("--guidance", flags.guidance, "Of models that are not turbo; 7 there");
  command.add_option("--guidance-from", flags.guidance_from, "Share of the way where it begins")
      ->capture_default_str();
  command.add_option("--guidance-to", flags.guidance_to, "Share of the way where it ends")
      ->capture_default_str();
}

void add_source_flags(CLI::App& command, ComposeFlags& flags) {
  command.add_option("--task", flags.task, "text2music, repaint or cover")->capture_default_str();
  command.add_option("--source", flags.source, "Sound file to repaint or cover");
  command.add_option("--reference", flags.reference, "Sound file whose timbre is wanted");
  command.add_option("--codes", flags.codes, "Audio codes, 5 a second, or @FILE of them");
  command.add_option("--from", flags.from, "Second where repainting begins")->capture_default_str();
  command.add_option("--to", flags.to, "Second where it ends; without it the source's end");
  command
      .add_option("--injection", flags.injection,
                  "Share of the steps after which what is not repainted is put back")
      ->capture_default_str();
  command
      .add_option("--fade", flags.fade,
                  "Frames, 25 a second, over which the edges join the source, or \"none\"")
      ->capture_default_str();
  command
      .add_option("--cover-strength", flags.cover_strength, "How much the cover keeps to its source: 0 to 1")
      ->capture_default_str();
  command
      .add_option("--cover-noise", flags.cover_noise,
                  "Where the cover starts: 0 from noise, 1 from the source")
      ->capture_default_str();
}

void add_run_flags(CLI::App& command, ComposeFlags& flags) {
  command.add_option(
      "--model", flags.model,
      "Directory of an ACE-Step 1.5 checkpoint, of either layout; by default the small one that "
      "comes with the program");
  command.add_flag("--plan", flags.plan, "Metadata and codes by the model's own planner, its folder planner");
  command.add_option("--planner", flags.planner, "The same by the language model in this directory");
  command.add_flag("--metadata-only", flags.metadata_only,
                   "The planner writes no codes: only prompt and metadata lead");
  command.add_option("--planner-guidance", flags.planner_guidance,
                     "Of the planner: 0 to 100, 1 is none; 2 without it");
  command.add_option("--planner-temperature", flags.planner_temperature,
                     "Of the planner: 0 to 100, 0 draws the likeliest; 0.85 without it");
  command.add_option("--planner-top-p", flags.planner_top_p,
                     "Of the planner: above 0, at most 1; 0.9 without it");
  command.add_option("-o,--out", flags.out, "File to write: .wav, .flac or .mp3")->required();
  command.add_option("--samples", flags.samples, "Of WAV and FLAC: 16, 24, and for WAV float; 16 without it");
  command.add_option("--taps", flags.taps, "Folder for every stage's tensors");
  command.add_option("--precision", flags.precision, "Of the matrix products: fp32 or bf16")
      ->capture_default_str();
  command.add_option("--form", flags.forms,
                     "op=name: run this form of an op (see `assay forms`); repeatable");
  command.add_option("--threads", flags.threads, "Threads to use; 0 is one a core")->capture_default_str();
  command.add_option("--window", flags.window, "Frames decoded at once: memory, not sound, depends on it")
      ->capture_default_str();
  command.add_flag("--json", flags.json, "Print JSON");
}

// ---- request

[[noreturn]] void bad_flag(const char* flag, std::string found, std::string expected) {
  throw Error(ErrorKind::invalid_argument,
              {.where = flag, .found = std::move(found), .expected = std::move(expected)});
}

std::optional<music::Dcw> parse_dcw(const std::string& text, bool planned) {
  if (text == "off") return std::nullopt;
  if (text.empty()) return planned ? music::Dcw{0.02f, 0.06f} : music::Dcw{};
  music::Dcw dcw;
  int used = 0;
  if (std::sscanf(text.c_str(), "%f,%f%n", &dcw.low, &dcw.high, &used) != 2 ||
      static_cast<std::size_t>(used) != text.size()) {
    bad_flag("--dcw", "'" + text + "'", "off, or two numbers such as 0.05,0.02");
  }
  return dcw;
}

std::optional<std::size_t> parse_fade(const std::string& text) {
  if (text == "none") return std::nullopt;
  constexpr std::size_t kMostFrames = 15000;
  std::size_t frames = 0;
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos || text.size() > 5 ||
      (frames = std::stoul(text)) > kMostFrames) {
    bad_flag("--fade", "'" + text + "'", "none, or 0 to 15000 frames");
  }
  return frames;
}

std::string text_or_file(const std::string& value) {
  if (value == "@") bad_flag("--codes", "'@'", "the name of a file after it");
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  return value.starts_with('@') ? read_text_file(value.substr(1), kMostBytes) : value;
}

/// `width` is the latents' of the checkpoint. How many frames the song has is found out later.
std::vector<float> read_noise(const std::string& file, std::size_t width) {
  const auto source = formats::open_safetensors(file);
  const formats::TensorInfo& info = formats::require(*source, "noise");
  const std::array<std::uint64_t, 2> shape{info.shape.empty() ? 0 : info.shape.front(), width};
  return formats::read_tensor(*source, "noise", shape);
}

std::vector<std::uint64_t> seeds_of(const ComposeFlags& flags) {
  const std::uint64_t first = flags.seed ? *flags.seed : music::fresh_seed();
  std::vector<std::uint64_t> seeds;
  for (std::size_t song = 0; song < flags.count; ++song) seeds.push_back(first + song);
  return seeds;
}

void check_count(const ComposeFlags& flags) {
  if (flags.count == 0 || flags.count > music::kMostSongs)
    bad_flag("--count", std::to_string(flags.count), fmt::format("1 to {}", music::kMostSongs));
  if (!flags.noise.empty() && flags.count != 1) bad_flag("--noise", "beside --count", "one song");
  if (!flags.noise.empty() && flags.seed) bad_flag("--noise", "beside --seed", "the one or the other");
}

bool wants_plan(const ComposeFlags& flags) {
  return flags.plan || !flags.planner.empty();
}

/// Whether a planner's codes lead the song.
bool wants_codes(const ComposeFlags& flags) {
  return wants_plan(flags) && !flags.metadata_only;
}

void check_planner_sampling(const ComposeFlags& flags) {
  constexpr double kMost = 100;
  const auto require = [](const char* flag, const std::optional<double>& value, double most, bool zero,
                          const char* expected) {
    if (!value || (*value <= most && (*value > 0 || (zero && *value == 0)))) return;
    bad_flag(flag, fmt::format("{}", *value), expected);
  };
  require("--planner-guidance", flags.planner_guidance, kMost, true, "0 to 100");
  require("--planner-temperature", flags.planner_temperature, kMost, true, "0 to 100");
  require("--planner-top-p", flags.planner_top_p, 1, false, "above 0, at most 1");
}

void check_planned_duration(const ComposeFlags& flags) {
  if (!flags.duration) return;
  constexpr double kShortest = 10;  // of the durations that the authors' planner knows
  const double seconds = *flags.duration;
  if (!(seconds >= kShortest && seconds <= music::kLongestSong)) {
    bad_flag("--duration", fmt::format("{} s with a planner", seconds),
             "10 to 600 s; with --metadata-only any up to 600");
  }
  const double codes = seconds * music::kCodesPerSecond;
  if (std::abs(codes - std::round(codes)) > 1e-6) {
    bad_flag("--duration", fmt::format("{} s with a planner", seconds),
             "whole fifths of a second, a code each");
  }
}

void check_planner(const ComposeFlags& flags) {
  if (wants_plan(flags)) {
    check_planner_sampling(flags);
    const char* const flag = flags.plan ? "--plan" : "--planner";
    if (music::parse_task(flags.task, "--task") != music::Task::text_to_music) {
      bad_flag(flag, "beside --task " + flags.task, "a song from text alone: there is no planner for others");
    }
    if (!flags.codes.empty()) bad_flag(flag, "beside --codes", "the one or the other");
    if (!flags.source.empty()) bad_flag(flag, "beside --source", "the one or the other");
    if (wants_codes(flags)) check_planned_duration(flags);
    if (flags.plan && !flags.planner.empty()) bad_flag("--plan", "beside --planner", "the one or the other");
    return;
  }
  const char* const expected = "--plan or --planner DIR beside it";
  if (flags.metadata_only) bad_flag("--metadata-only", "no planner", expected);
  if (flags.planner_guidance) bad_flag("--planner-guidance", "no planner", expected);
  if (flags.planner_temperature) bad_flag("--planner-temperature", "no planner", expected);
  if (flags.planner_top_p) bad_flag("--planner-top-p", "no planner", expected);
}

void require_planner(const std::filesystem::path& directory) {
  if (path_exists(directory / "config.json")) return;
  const bool is_model = path_exists(directory / "planner" / "config.json");
  throw Error(ErrorKind::missing,
              {.where = "--planner",
               .found = "no config.json in " + printable(directory.string()),
               .expected = "the directory of a language model",
               .advice = is_model ? "name its folder planner, or give --plan" : "name another directory"});
}

/// The model and planner that the flags leave open.
void fill_in_models(ComposeFlags& flags) {
  if (flags.model.empty()) flags.model = embedded_music_model().string();
  if (!flags.planner.empty()) require_planner(flags.planner);
  if (!flags.plan) return;
  const std::filesystem::path planner = std::filesystem::path(flags.model) / "planner";
  if (!path_exists(planner / "config.json")) {
    const char* const lacking = path_exists(planner) ? "planner/config.json" : "planner";
    throw Error(ErrorKind::missing, {.where = "--plan",
                                     .found = fmt::format("no {} in {}", lacking, printable(flags.model)),
                                     .expected = "a language model in its folder planner",
                                     .advice = "name one with --planner DIR"});
  }
  flags.planner = planner.string();
}

SongRequest request_of(const ComposeFlags& flags, std::size_t latent_width) {
  constexpr std::size_t kMostLyrics = std::size_t{1} << 20;
  SongRequest request;
  request.task = music::parse_task(flags.task, "--task");
  request.prompt = flags.prompt;
  if (flags.lyrics) request.lyrics = read_text_file(*flags.lyrics, kMostLyrics);
  request.language = flags.language;
  request.instruction = flags.instruction;
  request.duration = flags.duration;
  request.bpm = flags.bpm;
  request.key_scale = flags.key;
  request.time_signature = flags.time_signature;
  request.seeds = seeds_of(flags);
  request.steps = flags.steps;
  if (flags.shift) request.shift = static_cast<float>(*flags.shift);
  for (const double t : flags.timesteps) request.timesteps.push_back(static_cast<float>(t));
  request.dcw = parse_dcw(flags.dcw, wants_codes(flags));
  if (flags.guidance) request.guidance = static_cast<float>(*flags.guidance);
  request.guidance_from = static_cast<float>(flags.guidance_from);
  request.guidance_to = static_cast<float>(flags.guidance_to);
  if (!flags.codes.empty()) request.codes = music::parse_codes(text_or_file(flags.codes), "--codes");
  request.repaint_from = flags.from;
  request.repaint_to = flags.to.value_or(-1);
  if (flags.to && !(*flags.to > 0)) bad_flag("--to", fmt::format("{} s", *flags.to), "above 0");
  request.repaint_injection = static_cast<float>(flags.injection);
  request.repaint_fade = parse_fade(flags.fade);
  request.cover_strength = static_cast<float>(flags.cover_strength);
  request.cover_noise = static_cast<float>(flags.cover_noise);
  if (!flags.noise.empty()) request.noise = {read_noise(flags.noise, latent_width)};
  if (!flags.source.empty()) request.source = audio::read_sound(flags.source);
  if (!flags.reference.empty()) request.reference = audio::read_sound(flags.reference);
  return request;
}

// ---- progress

/// One line on standard error while something runs, where that is a terminal: stage, share done, time left of
/// the stage by its pace so far.
class ProgressLine {
 public:
  void show(std::string_view stage, double done) {
    const auto now = std::chrono::steady_clock::now();
    if (stage != stage_) {
      stage_ = stage;
      began_ = now;
    }
    if (::isatty(STDERR_FILENO) == 0) return;
    const double seconds = std::chrono::duration<double>(now - began_).count();
    std::string line = fmt::format("{}: {:.0f} %", stage, 100 * done);
    if (done > 0.02 && done < 1) line += fmt::format(", {:.0f} s left", seconds * (1 - done) / done);
    std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
    std::fflush(stderr);
  }
  ~ProgressLine() {
    if (::isatty(STDERR_FILENO) != 0) std::fputs("\r\x1b[K", stderr);
  }

 private:
  std::string stage_;
  std::chrono::steady_clock::time_point began_;
};

// ---- planner

int whole_beats(std::uint32_t bpm) {
  return static_cast<int>(bpm);
}

/// Of the durations that a plan may have: whole seconds from 10 on.
int planned_seconds(double seconds) {
  return std::max(10, static_cast<int>(seconds));
}

/// Lets the planner complete what the request of one song leaves open, and write the codes.
void plan_with(music::CausalLm& model, const ComposeFlags& flags, const std::stop_token& stop,
               ProgressLine& line, SongRequest& request) {
  music::SongMetadata given;
  if (request.bpm) given.bpm = whole_beats(*request.bpm);
  if (!request.key_scale.empty()) given.keyscale = request.key_scale;
  if (!request.time_signature.empty()) given.timesignature = request.time_signature;
  given.language = request.language;
  if (request.duration) given.duration = planned_seconds(*request.duration);
  music::PlannerOptions options;
  if (flags.planner_temperature)
    options.sampling.temperature = static_cast<float>(*flags.planner_temperature);
  if (flags.planner_top_p) options.sampling.top_p = static_cast<float>(*flags.planner_top_p);
  if (flags.planner_guidance) options.guidance = static_cast<float>(*flags.planner_guidance);
  options.seed = request.seeds.front();
  options.language = false;
  options.caption = false;
  options.codes = wants_codes(flags);
  options.duration = request.duration.value_or(0);
  const music::Plan plan = music::plan_song(
      model, {.caption = request.prompt, .lyrics = request.lyrics, .negative = {}}, given, options,
      [&](std::string_view stage, std::size_t done, std::size_t expected) {
        line.show(stage, expected == 0 ? 0.0 : static_cast<double>(done) / static_cast<double>(expected));
      },
      stop);
  request.codes = plan.codes;
  if (options.codes) {
    request.duration.reset();
  } else if (!request.duration && plan.metadata.duration) {
    request.duration = *plan.metadata.duration;
  }
  if (plan.metadata.bpm) request.bpm = static_cast<std::uint32_t>(*plan.metadata.bpm);
  request.key_scale = plan.metadata.keyscale.value_or(request.key_scale);
  request.time_signature = plan.metadata.timesignature.value_or(request.time_signature);
}

/// One request for all songs; with a planner one a song, for each has a plan of its own, drawn by its seed.
std::vector<SongRequest> planned_requests(const ComposeFlags& flags, const music::Checkpoint& checkpoint,
                                          const ops::Selection& selection, device::ThreadPool& threads,
                                          const std::stop_token& stop, ProgressLine& line,
                                          const SongRequest& request) {
  if (!wants_plan(flags)) return {request};
  music::check_request(request, checkpoint);  // what is wrong with it is said before a plan is made
  music::CausalLm model(flags.planner, selection, threads);
  if (wants_codes(flags)) music::require_known_codes(model.codes().size(), checkpoint, flags.planner);
  std::vector<SongRequest> requests;
  for (const std::uint64_t seed : request.seeds) {
    requests.push_back(request);
    requests.back().seeds = {seed};
    plan_with(model, flags, stop, line, requests.back());
  }
  return requests;
}

// ---- output

/// song.flac, or of several song-1.flac, song-2.flac, …
std::filesystem::path file_of(const ComposeFlags& flags, std::size_t song) {
  if (flags.count == 1) return flags.out;
  const std::filesystem::path out = flags.out;
  return out.parent_path() / fmt::format("{}-{}{}", out.stem().string(), song + 1, out.extension().string());
}

struct WrittenSong {
  std::string file;
  std::optional<std::uint64_t> seed;
  double seconds = 0;
  float peak = 0;
  std::optional<std::uint32_t> bpm;  ///< asked for or planned, as the next two
  std::string key;
  std::string time_signature;
};

WrittenSong write_song(const ComposeFlags& flags, std::size_t song, const SongRequest& request,
                       const music::ComposedSong& composed, const std::stop_token& stop) {
  const std::filesystem::path file = file_of(flags, song);
  WrittenSong written;
  written.bpm = request.bpm;
  written.key = request.key_scale;
  written.time_signature = request.time_signature;
  written.file = file.string();
  if (flags.noise.empty()) written.seed = composed.seed;
  written.seconds = static_cast<double>(composed.sound->samples()) / 2 / audio::kSampleRate;
  written.peak = composed.sound->peak();
  const std::string seed = written.seed ? std::to_string(*written.seed) : "none: noise was given";
  const audio::SoundTags tags{.title = flags.prompt.substr(0, flags.prompt.find('\n')),
                              .comment = fmt::format("prompt: {}\nseed: {}", flags.prompt, seed)};
  audio::write_sound(file, audio::sound_format_of(file, flags.samples, "--samples"), *composed.sound, tags,
                     stop);
  return written;
}

std::string in_words(const WrittenSong& song, bool planned) {
  std::string text = fmt::format("{}: {:.2f} s", printable(song.file), song.seconds);
  if (song.seed) text += fmt::format(", seed {}", *song.seed);
  if (planned) {
    text += fmt::format(", planned: {} bpm, {}, {} beats a bar", song.bpm.value_or(0), song.key,
                        song.time_signature);
  }
  return text + "\n";
}

nlohmann::ordered_json as_json(const WrittenSong& song) {
  const auto or_null = [](const std::string& value) {
    return value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  nlohmann::ordered_json json = {
      {"file", song.file}, {"seed", nullptr}, {"seconds", song.seconds}, {"decoded_peak", song.peak}};
  if (song.seed) json["seed"] = *song.seed;
  json["bpm"] = nullptr;
  if (song.bpm) json["bpm"] = *song.bpm;
  json["key"] = or_null(song.key);
  json["time_signature"] = or_null(song.time_signature);
  return json;
}

std::string describe(const std::vector<WrittenSong>& songs, bool json, bool planned) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text;
  for (const WrittenSong& song : songs) {
    list.push_back(as_json(song));
    text += in_words(song, planned);
  }
  if (!json) return text;
  const nlohmann::ordered_json document = {{"songs", list}};
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Known before minutes are spent: where the files go, and what they are.
void check_output(const ComposeFlags& flags) {
  audio::sound_format_of(flags.out, flags.samples, "--samples");
  const std::filesystem::path folder = std::filesystem::path(flags.out).parent_path();
  if (flags.window == 0) bad_flag("--window", "0", "at least 1 frame");
  const audio::SoundSpool probe(folder);
  for (std::size_t song = 0; song < flags.count; ++song) {
    const std::filesystem::path file = file_of(flags, song);
    if (file.filename().string().size() > NAME_MAX) {
      bad_flag("--out", fmt::format("a name of {} bytes", file.filename().string().size()),
               fmt::format("at most {}", NAME_MAX));
    }
    const audio::OutputFile unwritten(file);
  }
}

std::string compose(ComposeFlags flags, std::stop_token stop) {
  const ops::Precision precision = parse_precision(flags.precision);
  const ops::Selection selection =
      ops::select_forms(precision, ops::with_device_selection(parse_forms(flags.forms), precision));
  check_count(flags);
  check_planner(flags);
  check_output(flags);
  fill_in_models(flags);
  music::Checkpoint checkpoint = music::Checkpoint::open(flags.model);
  const SongRequest request = request_of(flags, checkpoint.vae().latent_width);
  device::ThreadPool threads(flags.threads);
  ProgressLine line;
  const std::vector<SongRequest> requests =
      planned_requests(flags, checkpoint, selection, threads, stop, line, request);
  music::Composer composer(std::move(checkpoint), selection, threads);
  music::ComposeOptions options;
  options.spool_folder = std::filesystem::path(flags.out).parent_path();
  options.decode_window = flags.window;
  options.stop = stop;
  options.progress = [&](music::Stage stage, double done) { line.show(to_string(stage), done); };
  if (!flags.taps.empty()) options.tap = music::taps_into(flags.taps);
  std::vector<WrittenSong> written;
  for (const SongRequest& songs : requests) {
    for (const music::ComposedSong& song : composer.compose(songs, options)) {
      written.push_back(write_song(flags, written.size(), songs, song, stop));
    }
  }
  return describe(written, flags.json, wants_plan(flags));
}

}  // namespace

void add_compose(CLI::App& app) {
  const auto flags = std::make_shared<ComposeFlags>();
  CLI::App* command = app.add_subcommand("compose", "Make a song from a prompt and lyrics");
  add_run_flags(*command, *flags);
  add_song_flags(*command, *flags);
  add_sampling_flags(*command, *flags);
  add_source_flags(*command, *flags);
  command->callback([flags] {
    const StopSignals signals;
    try {
      print(compose(*flags, signals.token()));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::cancelled || !signals.received()) throw;
      throw CLI::RuntimeError(kStoppedBySignal);
    }
  });
}

}  // namespace assay::cli
