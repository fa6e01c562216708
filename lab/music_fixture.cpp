#include "lab/music_fixture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "formats/safetensors.hpp"
#include "lab/json_reader.hpp"

namespace assay::lab {
namespace {

constexpr std::size_t kMostFixtureBytes = std::size_t{256} << 20;
constexpr std::size_t kMostFrames = 15000;  ///< 600 s
constexpr double kMostSeconds = 600;

[[noreturn]] void refuse_fixture(std::string where, std::string found, std::string expected) {
  throw Error(ErrorKind::malformed, {std::move(where), std::move(found), std::move(expected),
                                     "make the fixture again with its oracle script"});
}

std::string tensor_name(const MusicCase& song, std::string_view name) {
  return song.id + "." + std::string(name);
}

std::vector<std::int32_t> read_ids(JsonReader& reader, const std::string& name) {
  std::vector<std::int32_t> ids;
  for (const std::uint64_t id : reader.required<std::vector<std::uint64_t>>(name)) {
    if (id > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
      refuse_fixture(reader.where(name), std::to_string(id), "token ids");
    }
    ids.push_back(static_cast<std::int32_t>(id));
  }
  if (ids.empty()) refuse_fixture(reader.where(name), "no ids", "one or more");
  return ids;
}

double read_seconds(JsonReader& reader, const std::string& name, double otherwise) {
  const double value = reader.optional<double>(name).value_or(otherwise);
  if (std::abs(value) <= kMostSeconds) return value;
  refuse_fixture(reader.where(name), fmt::format("{}", value), "at most 600 seconds");
}

std::size_t read_size(JsonReader& reader, const std::string& name, std::size_t most) {
  const auto value = reader.required<std::uint64_t>(name);
  if (value >= 1 && value <= most) return value;
  refuse_fixture(reader.where(name), std::to_string(value), fmt::format("1 to {}", most));
}

void read_request(JsonReader& reader, MusicCase& song) {
  song.prompt = reader.required<std::string>("prompt");
  song.lyrics = reader.required<std::string>("lyrics");
  song.language = reader.required<std::string>("vocal_language");
  song.duration = read_seconds(reader, "audio_duration", 0);
  if (const auto bpm = reader.optional<std::uint64_t>("bpm")) song.bpm = static_cast<std::uint32_t>(*bpm);
  song.key_scale = reader.optional<std::string>("keyscale").value_or("");
  song.time_signature = reader.optional<std::string>("timesignature").value_or("");
  if (const auto shift = reader.optional<double>("shift")) song.shift = static_cast<float>(*shift);
  song.audio_codes = reader.optional<std::string>("audio_codes").value_or("");
  song.repaint_from = read_seconds(reader, "repainting_start", 0);
  song.repaint_to = read_seconds(reader, "repainting_end", -1);
  if (const auto task = reader.optional<std::string>("task_type")) {
    song.task = music::parse_task(*task, reader.where("task_type"));
  }
}

MusicCase read_music_case(JsonReader reader) {
  MusicCase song;
  song.id = reader.required<std::string>("id");
  if (song.id.empty() || printable(song.id) != song.id || song.id.find('.') != std::string::npos) {
    refuse_fixture(reader.where("id"), in_quotes(song.id), "a printable name without a dot");
  }
  read_request(reader, song);
  song.frames = read_size(reader, "latent_frames", kMostFrames);
  song.steps = read_size(reader, "steps", 1000);
  if (const auto asked = reader.optional<std::uint64_t>("num_inference_steps");
      asked && *asked != song.steps) {
    refuse_fixture(reader.where("steps"), std::to_string(song.steps),
                   fmt::format("the {} asked for", *asked));
  }
  song.text_ids = read_ids(reader, "text_ids");
  song.lyric_ids = read_ids(reader, "lyric_ids");
  song.text = reader.required<std::string>("text");
  song.lyric_text = reader.required<std::string>("lyric_text");
  // What can be worked out from the rest: kept in the file for people.
  for (const char* name : {"raw_peak", "latents_std"}) reader.optional<double>(name);
  reader.optional<bool>("src");
  reader.finish();
  return song;
}

bool needs_source(const MusicCase& song) {
  return song.task != music::Task::text_to_music;
}

[[noreturn]] void refuse_tensor(const formats::TensorInfo& info, std::string expected) {
  throw Error(ErrorKind::mismatch, {.where = info.origin + ", " + info.name,
                                    .found = formats::describe_shape(info.shape),
                                    .expected = std::move(expected),
                                    .advice = "make the fixture again with its oracle script"});
}

void check_tensor(const MusicFixture& fixture, const MusicCase& song, std::string_view name,
                  const std::vector<std::uint64_t>& shape) {
  const formats::TensorInfo& info = formats::require(*fixture.tensors, tensor_name(song, name));
  if (info.shape != shape) refuse_tensor(info, formats::describe_shape(shape));
}

/// The sizes that can be known without the model; the subject compares the others with it.
void check_tensors(const MusicFixture& fixture, const MusicCase& song) {
  const formats::TensorInfo& noise = formats::require(*fixture.tensors, tensor_name(song, "noise"));
  if (noise.shape.size() != 2 || noise.shape[0] != song.frames) {
    refuse_tensor(noise, fmt::format("[{}, latent width]", song.frames));
  }
  for (const char* name : {"velocity_first", "velocity_last", "latents"}) {
    check_tensor(fixture, song, name, noise.shape);
  }
  const formats::TensorInfo& condition = formats::require(*fixture.tensors, tensor_name(song, "condition"));
  const std::size_t rows = song.text_ids.size() + song.lyric_ids.size() + 1;
  if (condition.shape.size() != 2 || condition.shape[0] != rows) {
    refuse_tensor(condition, fmt::format("[{}, width]: text, lyrics and one of timbre", rows));
  }
  const formats::TensorInfo& wav = formats::require(*fixture.tensors, tensor_name(song, "wav"));
  if (wav.shape.size() != 2 || wav.shape[0] != 2 || wav.shape[1] % song.frames != 0) {
    refuse_tensor(wav, fmt::format("[2, a multiple of {}]", song.frames));
  }
  if (!needs_source(song)) return;
  const formats::TensorInfo& source = formats::require(*fixture.tensors, tensor_name(song, "src_audio"));
  if (source.shape.size() != 2 || source.shape[0] != 2 || source.shape[1] == 0) {
    refuse_tensor(source, "[2, samples]");
  }
}

/// A tensor of no case, or of a stage that nobody knows, was meant to be compared and would not be.
void check_names(const MusicFixture& fixture) {
  std::set<std::string> known;
  for (const MusicCase& song : fixture.cases) {
    for (const std::string_view name : {"noise", "src_audio", "raw"}) known.insert(tensor_name(song, name));
    for (const MusicStage& stage : kMusicStages) known.insert(tensor_name(song, stage.name));
  }
  for (const std::string& name : fixture.tensors->names()) {
    if (known.contains(name)) continue;
    refuse_fixture(fixture.tensors->find(name)->origin, "a tensor " + in_quotes(name),
                   "stages of the cases in " + fixture.file);
  }
}

}  // namespace

bool MusicFixture::has(const MusicCase& song, std::string_view name) const {
  return tensors->find(tensor_name(song, name)) != nullptr;
}

std::vector<std::size_t> MusicFixture::shape(const MusicCase& song, std::string_view name) const {
  const formats::TensorInfo& info = formats::require(*tensors, tensor_name(song, name));
  return {info.shape.begin(), info.shape.end()};
}

std::vector<float> MusicFixture::values(const MusicCase& song, std::string_view name) const {
  const std::string full = tensor_name(song, name);
  const formats::TensorInfo& info = formats::require(*tensors, full);
  std::vector<float> values(formats::element_count(info));
  if (info.type != DType::i32) {
    tensors->read_rows(full, 0, info.shape.empty() ? 1 : info.shape[0], values);
    return values;
  }
  const std::span<const std::byte> bytes = tensors->stored_bytes(full);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int32_t value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    values[i] = static_cast<float>(value);
  }
  return values;
}

bool is_music_fixture(const std::filesystem::path& path) {
  return read_json_file(path, kMostFixtureBytes).root.has("cases");
}

MusicFixture read_music_fixture(const std::filesystem::path& path) {
  JsonFile json = read_json_file(path, kMostFixtureBytes);
  MusicFixture fixture{
      .file = path.filename().string(), .sha256 = {}, .model = {}, .cases = {}, .tensors = {}};
  fixture.model = json.root.required<std::string>("model");
  std::set<std::string> ids;
  for (JsonReader& item : json.root.required<std::vector<JsonReader>>("cases")) {
    fixture.cases.push_back(read_music_case(item));
    if (!ids.insert(fixture.cases.back().id).second) {
      refuse_fixture(item.where("id"), in_quotes(fixture.cases.back().id) + " for the second time",
                     "each id once");
    }
  }
  json.root.optional<std::string>("made_by");  // for people
  json.root.finish();
  if (fixture.cases.empty()) refuse_fixture(json.root.where("cases"), "no cases", "one or more");
  std::filesystem::path tensors = path;
  tensors.replace_extension(".safetensors");
  fixture.tensors = formats::open_safetensors(tensors);
  const std::string both = json.sha256 + sha256_hex(tensors);
  fixture.sha256 = sha256_hex(std::as_bytes(std::span(both)));
  for (MusicCase& song : fixture.cases) {
    check_tensors(fixture, song);
    for (const MusicStage& stage : kMusicStages) {
      if (stage.required || fixture.has(song, stage.name)) song.stages.emplace_back(stage.name);
    }
  }
  check_names(fixture);
  return fixture;
}

}  // namespace assay::lab
