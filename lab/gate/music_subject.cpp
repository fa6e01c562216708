#include "lab/gate/music_subject.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "music/audio_tokens.hpp"
#include "music/noise.hpp"

namespace assay::lab {
namespace {

constexpr std::string_view kWav = "wav";
constexpr std::string_view kCodes = "codes";
constexpr std::string_view kSourceLatents = "src_latents";
constexpr std::uint64_t kWrongSeeds = 1000;  ///< the oracle's noise is of no seed of ours

[[noreturn]] void other_music_model(const MusicFixture& fixture, const MusicCase& song, std::string_view what,
                                    std::string found, std::string expected) {
  throw Error(ErrorKind::mismatch, {.where = fmt::format("{}: {}: {}", fixture.file, song.id, what),
                                    .found = std::move(found),
                                    .expected = std::move(expected),
                                    .advice = "use the fixture that was made with this checkpoint"});
}

void check_ids(const MusicFixture& fixture, const MusicCase& song, const text::Tokenizer& tokenizer,
               const std::string& text, const std::vector<std::int32_t>& ids) {
  const std::vector<std::int32_t> found = tokenizer.encode(text);
  if (found == ids) return;
  const auto place = std::mismatch(found.begin(), found.end(), ids.begin(), ids.end()).second - ids.begin();
  other_music_model(fixture, song, "token ids", fmt::format("others from number {} on", place),
                    "those that the model's tokenizer gives the recorded text");
}

void check_same_music_model(const music::Checkpoint& checkpoint, const MusicFixture& fixture) {
  const text::Tokenizer tokenizer = checkpoint.tokenizer();
  const auto require = [&](const MusicCase& song, std::string_view tensor, std::size_t found,
                           std::size_t expected) {
    if (found == expected) return;
    other_music_model(fixture, song, tensor, std::to_string(found), fmt::format("the model's {}", expected));
  };
  for (const MusicCase& song : fixture.cases) {
    require(song, "latents, width", fixture.shape(song, "latents")[1], checkpoint.vae().latent_width);
    require(song, "condition, width", fixture.shape(song, "condition")[1],
            checkpoint.parts().dit.condition_size);
    require(song, "wav, samples a frame", fixture.shape(song, kWav)[1] / song.frames,
            checkpoint.vae().samples_per_frame());
    check_ids(fixture, song, tokenizer, song.text, song.text_ids);
    check_ids(fixture, song, tokenizer, song.lyric_text, song.lyric_ids);
  }
}

/// [2, samples] to samples by pairs.
std::vector<float> interleaved(const std::vector<float>& channels) {
  const std::size_t samples = channels.size() / 2;
  std::vector<float> pairs(channels.size());
  for (std::size_t i = 0; i < samples; ++i) {
    pairs[2 * i] = channels[i];
    pairs[2 * i + 1] = channels[samples + i];
  }
  return pairs;
}

music::SongRequest request_of(const MusicFixture& fixture, const MusicCase& song) {
  music::SongRequest request;
  request.task = song.task;
  request.prompt = song.prompt;
  request.lyrics = song.lyrics;
  request.language = song.language;
  if (song.duration > 0) request.duration = song.duration;
  request.bpm = song.bpm;
  request.key_scale = song.key_scale;
  request.time_signature = song.time_signature;
  request.noise = {fixture.values(song, "noise")};
  request.steps = song.steps;
  request.shift = song.shift;
  request.dcw = std::nullopt;
  request.guidance = 1.0f;
  if (!song.audio_codes.empty()) {
    request.codes = music::parse_codes(song.audio_codes, fixture.file + ": " + song.id + ": audio_codes");
  }
  if (fixture.has(song, "src_audio")) {
    request.source = audio::Sound{.samples = interleaved(fixture.values(song, "src_audio"))};
  }
  request.repaint_from = song.repaint_from;
  request.repaint_to = song.repaint_to;
  if (request.task == music::Task::repaint) {
    request.repaint_injection = 0;
    request.repaint_fade = std::nullopt;
  }
  return request;
}

/// The words of another song in place of its own.
void swap_condition(music::SongRequest& request, const MusicFixture& fixture, std::size_t index) {
  for (std::size_t step = 1; step < fixture.cases.size(); ++step) {
    const MusicCase& other = fixture.cases[(index + step) % fixture.cases.size()];
    if (other.prompt == request.prompt && other.lyrics == request.lyrics) continue;
    request.prompt = other.prompt;
    request.lyrics = other.lyrics;
    request.language = other.language;
    return;
  }
  throw Error(ErrorKind::invalid_argument,
              {fixture.file, "the same words in all cases", "songs with different prompts or lyrics",
               "the red arm that swaps conditions needs a fixture with several"});
}

std::vector<float> scaled_channels(const audio::SoundSpool& sound) {
  std::vector<float> pairs(sound.samples());
  sound.read(0, pairs);
  const std::size_t samples = pairs.size() / 2;
  const audio::Loudness loudness = audio::loudness_of(sound.peak());
  std::vector<float> channels(pairs.size());
  for (std::size_t i = 0; i < samples; ++i) {
    channels[i] = loudness.apply(pairs[2 * i]);
    channels[samples + i] = loudness.apply(pairs[2 * i + 1]);
  }
  return channels;
}

/// The composer's name for a tensor of its first song as the fixture has it; empty for those that it has not.
std::string stage_of_tap(std::string_view tap, bool first_velocity) {
  if (tap == "text_hidden" || tap == "condition") return std::string(tap);
  if (tap.starts_with("0.velocity_")) return first_velocity ? "velocity_first" : "velocity_last";
  if (tap == "source_latents") return std::string(kSourceLatents);
  return tap == "0.latents" ? "latents" : "";
}

}  // namespace

MusicSubject::MusicSubject(music::Checkpoint checkpoint, const MusicFixture& fixture,
                           const ops::Selection& selection, ops::Precision precision, std::size_t threads)
    : fixture_(fixture),
      selection_(selection),
      precision_(precision),
      identity_(checkpoint.identity()),
      threads_(threads),
      composer_(std::move(checkpoint), selection, threads_) {
  check_same_music_model(composer_.checkpoint(), fixture);
}

nlohmann::ordered_json MusicSubject::describe() const {
  return {{"type", "music"},
          {"model_identity", identity_},
          {"forms", ops::describe(selection_)},
          {"precision", ops::to_string(precision_)},
          {"fixture", fixture_.file},
          {"fixture_sha256", fixture_.sha256}};
}

std::size_t MusicSubject::cases() const {
  return fixture_.cases.size();
}

std::string MusicSubject::case_name(std::size_t index) const {
  return fixture_.cases[index].id;
}

std::vector<std::string> MusicSubject::stages(std::size_t index) const {
  std::vector<std::string> stages = fixture_.cases[index].stages;
  if (precision_ != ops::Precision::fp32) std::erase(stages, kCodes);
  return stages;
}

Answer MusicSubject::expected(std::size_t index) {
  const MusicCase& song = fixture_.cases[index];
  Answer answer;
  for (const std::string& stage : stages(index)) {
    Array array{.name = stage, .shape = fixture_.shape(song, stage), .values = fixture_.values(song, stage)};
    if (stage == kCodes) array.shape = {value_count(array.values)};
    if (stage == kWav) array.sample_rate = static_cast<double>(composer_.checkpoint().vae().sample_rate);
    answer.arrays.push_back(std::move(array));
  }
  return answer;
}

Answer MusicSubject::run(std::size_t index) {
  return answer(index, request_of(fixture_, fixture_.cases[index]));
}

std::optional<Answer> MusicSubject::run_changed(std::size_t index, std::string_view arm) {
  music::SongRequest request = request_of(fixture_, fixture_.cases[index]);
  if (arm == input_arm::kWrongSeed) {
    music::fill_normal(kWrongSeeds + index, music::NoiseStream::latents, 0, request.noise.front());
  } else if (arm == input_arm::kSwappedConditions) {
    swap_condition(request, fixture_, index);
  } else {
    throw Error(ErrorKind::unsupported, {.where = "red arm " + std::string(arm),
                                         .found = "nothing that a music model can be run with",
                                         .expected = "wrong_seed or swapped_conditions"});
  }
  return answer(index, request);
}

Error MusicSubject::in_case(const Error& error, std::size_t index) const {
  Error::Parts parts = error.parts();
  parts.where = fmt::format("{}: {}: {}", fixture_.file, fixture_.cases[index].id, parts.where);
  return Error(error.kind(), std::move(parts));
}

Answer MusicSubject::answer(std::size_t index, const music::SongRequest& request) {
  Arrays found;
  try {
    found = compose(request);
    add_codes(index, found);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::non_finite) throw in_case(error, index);
  }
  Answer answer = expected(index);
  for (Array& array : answer.arrays) {
    const auto own = found.find(array.name);
    if (own == found.end()) {
      array.values = std::vector<float>(value_count(array.values), std::numeric_limits<float>::quiet_NaN());
    } else {
      array.shape = own->second.shape;
      array.values = own->second.values;
    }
  }
  return answer;
}

MusicSubject::Arrays MusicSubject::compose(const music::SongRequest& request) {
  Arrays arrays;
  music::ComposeOptions options;
  options.spool_folder = std::filesystem::temp_directory_path();
  options.tap = [&](std::string_view tap, std::size_t rows, std::span<const float> values) {
    const std::string stage = stage_of_tap(tap, !arrays.contains("velocity_first"));
    if (stage.empty()) return;
    const Array array{.name = stage,
                      .shape = {rows, values.size() / rows},
                      .values = std::vector<float>(values.begin(), values.end())};
    arrays.insert_or_assign(stage, array);
    // A single step is both.
    if (stage == "velocity_first") arrays.insert_or_assign("velocity_last", array);
  };
  const std::vector<music::ComposedSong> songs = composer_.compose(request, options);
  std::vector<float> wav = scaled_channels(*songs.front().sound);
  arrays.insert_or_assign(std::string(kWav),
                          Array{.name = std::string(kWav), .shape = {2, wav.size() / 2}, .values = wav});
  return arrays;
}

void MusicSubject::add_codes(std::size_t index, Arrays& arrays) {
  const std::vector<std::string> wanted = stages(index);
  const auto source = arrays.find(kSourceLatents);
  if (source == arrays.end() || std::find(wanted.begin(), wanted.end(), kCodes) == wanted.end()) return;
  const music::Checkpoint& checkpoint = composer_.checkpoint();
  music::AudioTokenizer tokenizer(checkpoint.audio_tokenizer(),
                                  *checkpoint.tensors(music::Part::audio_tokenizer), selection_, threads_);
  const std::vector<std::int32_t> codes =
      tokenizer.encode(std::get<std::vector<float>>(source->second.values), checkpoint.silence_latent());
  arrays.emplace(kCodes, Array{.name = std::string(kCodes),
                               .shape = {codes.size()},
                               .values = std::vector<float>(codes.begin(), codes.end())});
}

}  // namespace assay::lab
