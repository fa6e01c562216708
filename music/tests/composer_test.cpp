#include "music/composer.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/tests/expect_error.hpp"
#include "base/tests/sanitized.hpp"
#include "base/tests/temporary_directory.hpp"
#include "formats/safetensors.hpp"
#include "music/noise.hpp"
#include "music/taps.hpp"
#include "music/tests/ace_fixture.hpp"

namespace assay::music {
namespace {

/// Sanitized, every sixth comparison is made: each task is among them.
constexpr std::size_t kCompareEvery = kSanitized ? 6 : 1;

const std::filesystem::path kTinyCheckpoint = std::filesystem::path(ASSAY_TEST_DATA) / "ace-tiny";

class Band {
 public:
  explicit Band(std::size_t threads = 2, ops::Precision precision = ops::Precision::fp32,
                const std::filesystem::path& checkpoint = kTinyCheckpoint)
      : threads_(threads), composer_(Checkpoint::open(checkpoint), ops::select_forms(precision), threads_) {}
  Composer& composer() { return composer_; }

  /// The latents of the songs alone.
  std::vector<std::vector<float>> latents(const SongRequest& request) {
    ComposeOptions options;
    options.decode = false;
    std::vector<std::vector<float>> all;
    for (ComposedSong& song : composer_.compose(request, options)) all.push_back(std::move(song.latents));
    return all;
  }

 private:
  device::ThreadPool threads_;
  Composer composer_;
};

audio::Sound recorded_sound(const std::string& name) {
  const std::vector<float> planar = fixture::answer(name);
  audio::Sound sound;
  const std::size_t frames = planar.size() / 2;
  for (std::size_t i = 0; i < planar.size(); ++i) sound.samples.push_back(planar[i % 2 * frames + i / 2]);
  return sound;
}

/// A case as the oracle ran it: without correction, and with a source that is not put back.
SongRequest recorded_request(const std::string& id) {
  const nlohmann::json& record = fixture::record(id);
  SongRequest request;
  request.prompt = record["prompt"];
  request.lyrics = record["lyrics"];
  request.language = record["vocal_language"];
  if (record["audio_duration"] > 0) request.duration = record["audio_duration"].get<double>();
  if (record.contains("bpm")) request.bpm = record["bpm"].get<std::uint32_t>();
  request.key_scale = record.value("keyscale", "");
  request.time_signature = record.value("timesignature", "");
  request.task = parse_task(record.value("task_type", "text2music"), "task_type");
  if (record.contains("shift")) request.shift = record["shift"].get<float>();
  if (record.contains("num_inference_steps"))
    request.steps = record["num_inference_steps"].get<std::size_t>();
  if (record.contains("audio_codes"))
    request.codes = parse_codes(record["audio_codes"].get<std::string>(), "codes");
  if (record.contains("src")) request.source = recorded_sound(id + ".src_audio");
  request.repaint_from = record.value("repainting_start", 0.0);
  request.repaint_to = record.value("repainting_end", -1.0);
  if (request.task == Task::repaint) {
    request.repaint_injection = 0;
    request.repaint_fade = std::nullopt;
  }
  request.dcw = std::nullopt;
  request.noise = {fixture::answer(id + ".noise")};
  return request;
}

/// The song scaled as a file would have it, planar like the oracle's.
std::vector<float> planar_song(const audio::SoundSpool& sound) {
  std::vector<float> samples(sound.samples());
  sound.read(0, samples);
  const audio::Loudness loudness = audio::loudness_of(sound.peak());
  std::vector<float> planar(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    planar[i % 2 * (samples.size() / 2) + i / 2] = loudness.apply(samples[i]);
  }
  return planar;
}

class RecordedCase : public testing::TestWithParam<const char*> {};

TEST_P(RecordedCase, IsTheOraclesSongToTheLatentsAndTheWaveform) {
  const std::string id = GetParam();
  if (kSanitized && (id == "b" || id == "c" || id == "d")) GTEST_SKIP() << "sanitized: three cases";
  Band band;
  std::map<std::string, std::vector<float>> taps;
  const TemporaryDirectory directory;
  ComposeOptions options;
  options.spool_folder = directory.path();
  options.tap = [&](std::string_view name, std::size_t, std::span<const float> values) {
    taps[std::string(name)].assign(values.begin(), values.end());
  };
  const std::vector<ComposedSong> songs = band.composer().compose(recorded_request(id), options);
  ASSERT_EQ(songs.size(), 1u);
  EXPECT_LT(fixture::nrmse(fixture::answer(id + ".condition"), taps["condition"]), 1e-5);
  EXPECT_LT(fixture::nrmse(fixture::answer(id + ".velocity_first"), taps["0.velocity_00"]), 1e-5);
  EXPECT_LT(fixture::nrmse(fixture::answer(id + ".latents"), songs[0].latents), 1e-4);
  EXPECT_LT(fixture::nrmse(fixture::answer(id + ".wav"), planar_song(*songs[0].sound)), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Composer, RecordedCase, testing::ValuesIn(fixture::kCases),
                         [](const auto& info) { return std::string(info.param); });

SongRequest short_song() {
  SongRequest request;
  request.prompt = "calm piano";
  request.lyrics = "la la";
  request.duration = 0.4;
  request.steps = 2;
  request.seeds = {7};
  return request;
}

audio::Sound tone(double seconds) {
  audio::Sound sound;
  sound.samples.resize(2 * static_cast<std::size_t>(seconds * 48000));
  for (std::size_t i = 0; i < sound.samples.size(); ++i) {
    sound.samples[i] = 0.4f * std::sin(0.03f * static_cast<float>(i / 2));
  }
  return sound;
}

SongRequest short_edit(Task task) {
  SongRequest request = short_song();
  request.duration.reset();
  request.task = task;
  request.source = tone(0.4);
  if (task == Task::repaint) {
    request.repaint_from = 0.12;
    request.repaint_to = 0.24;
    request.repaint_fade = 2;
  }
  return request;
}

TEST(Composer, EveryParameterMatters) {
  struct Change {
    const char* name;
    SongRequest from;
    std::function<void(SongRequest&)> change;
  };
  const SongRequest plain = short_song();
  const SongRequest repaint = short_edit(Task::repaint);
  const SongRequest cover = short_edit(Task::cover);
  const std::vector<Change> changes = {
      {"prompt", plain, [](auto& r) { r.prompt = "loud drums"; }},
      {"lyrics", plain, [](auto& r) { r.lyrics = "la"; }},
      {"language", plain, [](auto& r) { r.language = "ja"; }},
      {"instruction", plain, [](auto& r) { r.instruction = "Sing:"; }},
      {"bpm", plain, [](auto& r) { r.bpm = 90; }},
      {"key", plain, [](auto& r) { r.key_scale = "D major"; }},
      {"time signature", plain, [](auto& r) { r.time_signature = "3"; }},
      {"low half of the seed", plain, [](auto& r) { r.seeds = {8}; }},
      {"high half of the seed", plain, [](auto& r) { r.seeds = {7 + (std::uint64_t{1} << 32)}; }},
      {"steps", plain, [](auto& r) { r.steps = 3; }},
      {"shift", plain, [](auto& r) { r.shift = 2.0f; }},
      {"timesteps", plain,
       [](auto& r) {
         r.steps.reset();
         r.timesteps = {1.0f, 0.6f, 0.2f};
       }},
      {"dcw", plain, [](auto& r) { r.dcw.reset(); }},
      {"dcw's bands", plain,
       [](auto& r) {
         r.dcw = Dcw{0.02f, 0.06f};
       }},
      {"task", repaint, [&](auto& r) { r = cover; }},
      {"source", repaint, [](auto& r) { r.source->samples[2000] += 0.5f; }},
      {"from", repaint, [](auto& r) { r.repaint_from = 0.16; }},
      {"to", repaint, [](auto& r) { r.repaint_to = 0.28; }},
      {"injection", repaint, [](auto& r) { r.repaint_injection = 0; }},
      {"fade", repaint, [](auto& r) { r.repaint_fade = 1; }},
      {"no fade", repaint, [](auto& r) { r.repaint_fade.reset(); }},
      {"the cover's source", cover,
       [](auto& r) {
         for (float& sample : r.source->samples) sample *= -2.5f;
       }},
      {"cover strength", cover, [](auto& r) { r.cover_strength = 0.5f; }},
      {"cover noise", cover, [](auto& r) { r.cover_noise = 0.5f; }},
  };
  Band band;
  std::map<Task, std::vector<std::vector<float>>> unchanged;
  for (const SongRequest& from : {plain, repaint, cover}) unchanged[from.task] = band.latents(from);
  for (std::size_t i = 0; i < changes.size(); i += kCompareEvery) {
    const Change& change = changes[i];
    SongRequest changed = change.from;
    change.change(changed);
    EXPECT_NE(unchanged[change.from.task], band.latents(changed)) << change.name;
  }
}

TEST(Composer, RepaintKeepsTheSourceOutsideAndChangesTheInside) {
  Band band;
  SongRequest request = short_edit(Task::repaint);
  ComposeOptions options;
  options.decode = false;
  std::vector<float> source;
  options.tap = [&](std::string_view name, std::size_t, std::span<const float> values) {
    if (name == "source_latents") source.assign(values.begin(), values.end());
  };
  const std::vector<float> latents = band.composer().compose(request, options)[0].latents;
  ASSERT_EQ(latents.size(), source.size());
  // Frames 3 to 5 are made anew, two on either side fade.
  for (std::size_t frame = 0; frame < 10; ++frame) {
    const bool same = std::equal(latents.begin() + static_cast<std::ptrdiff_t>(frame * 64),
                                 latents.begin() + static_cast<std::ptrdiff_t>((frame + 1) * 64),
                                 source.begin() + static_cast<std::ptrdiff_t>(frame * 64));
    EXPECT_EQ(same, frame < 1 || frame > 7) << frame;
  }
}

TEST(Composer, BitsDependOnNeitherThreadsNorBatchMates) {
  SongRequest request = short_song();
  request.duration = 0.44;
  const std::vector<std::vector<float>> alone = Band(1).latents(request);
  EXPECT_EQ(Band(3).latents(request), alone);
  request.seeds = {99, 7, 3};
  EXPECT_EQ(Band(2).latents(request)[1], alone[0]);
  request.seeds = {7};
  EXPECT_EQ(Band(1, ops::Precision::bf16).latents(request), Band(3, ops::Precision::bf16).latents(request));
}

TEST(Composer, EveryDurationGivesASongOfItsLength) {
  Band band;
  const TemporaryDirectory directory;
  ComposeOptions options;
  options.spool_folder = directory.path();
  options.decode_window = 6;
  for (const double seconds : {0.001, 0.05, 0.12, 0.32, 0.63}) {
    SongRequest request = short_song();
    request.duration = seconds;
    request.steps = 1;
    const std::vector<ComposedSong> songs = band.composer().compose(request, options);
    const auto frames = static_cast<std::size_t>(std::ceil(seconds * 25));
    EXPECT_EQ(songs[0].latents.size(), frames * 64) << seconds;
    EXPECT_EQ(songs[0].sound->samples(), frames * 1920 * 2) << seconds;
    EXPECT_GT(songs[0].sound->peak(), 0.01f) << seconds;
  }
}

TEST(Composer, StopsWhereverItIsAsked) {
  Band band;
  const TemporaryDirectory directory;
  SongRequest request = short_edit(Task::cover);
  request.source = tone(0.08);
  for (const Stage stage :
       {Stage::source, Stage::codes, Stage::text, Stage::condition, Stage::sample, Stage::decode}) {
    std::stop_source stop;
    ComposeOptions options;
    options.spool_folder = directory.path();
    options.stop = stop.get_token();
    Stage reached = Stage::source;
    options.progress = [&](Stage now, double) {
      reached = now;
      if (now == stage) stop.request_stop();
    };
    expect_error(ErrorKind::cancelled, "", [&] { band.composer().compose(request, options); });
    EXPECT_EQ(reached, stage);
  }
}

TEST(Composer, NamesWhatIsWrong) {
  Band band;
  const auto refused = [&](ErrorKind kind, const char* field,
                           const std::function<void(SongRequest&)>& spoil) {
    SongRequest request = short_song();
    spoil(request);
    expect_error(kind, field, [&] { band.latents(request); });
  };
  refused(ErrorKind::limit_exceeded, "prompt", [](auto& r) {
    for (int i = 0; i < 400; ++i) r.prompt += " x7";
  });
  refused(ErrorKind::limit_exceeded, "lyrics", [](auto& r) {
    for (int i = 0; i < 3000; ++i) r.lyrics += " x7";
  });
  refused(ErrorKind::invalid_argument, "64000", [](auto& r) {
    r.duration.reset();
    r.codes = {5, 64000};
  });
  refused(ErrorKind::limit_exceeded, "codes", [](auto& r) {
    r.duration.reset();
    r.codes.assign(3001, 1);
  });
  refused(ErrorKind::mismatch, "noise", [](auto& r) { r.noise = {std::vector<float>(64)}; });
  refused(ErrorKind::invalid_argument, "0.01000 s", [](auto& r) {
    r = short_edit(Task::cover);
    r.source = tone(0.01);
  });
}

/// The checkpoint declared a base one, which takes guidance.
class BaseCheckpoint {
 public:
  BaseCheckpoint() {
    for (const auto& entry : std::filesystem::directory_iterator(kTinyCheckpoint)) {
      if (entry.path().filename() == "transformer") continue;
      std::filesystem::create_symlink(std::filesystem::absolute(entry.path()),
                                      directory_ / entry.path().filename().string());
    }
    nlohmann::json config = nlohmann::json::parse(fixture::config_text("transformer"));
    config["is_turbo"] = false;
    config["model_version"] = "base";
    directory_.write("transformer/config.json", config.dump());
    std::filesystem::create_symlink(
        std::filesystem::absolute(fixture::part("transformer") / "diffusion_pytorch_model.safetensors"),
        directory_ / "transformer/diffusion_pytorch_model.safetensors");
  }
  const std::filesystem::path& path() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

TEST(Composer, ABaseCheckpointTakesGuidanceOverAnyPartOfTheWay) {
  const BaseCheckpoint base;
  Band guided(2, ops::Precision::fp32, base.path());
  SongRequest request = short_song();
  request.shift = 3.0f;
  const auto song = guided.latents(request);
  const auto with = [&](const std::function<void(SongRequest&)>& change) {
    SongRequest changed = request;
    change(changed);
    return guided.latents(changed);
  };
  EXPECT_EQ(with([](auto& r) { r.guidance = 7.0f; }), song) << "the default";
  EXPECT_NE(with([](auto& r) { r.guidance = 3.0f; }), song);
  EXPECT_NE(with([](auto& r) { r.guidance_from = 0.2f; }), song);
  EXPECT_NE(with([](auto& r) { r.guidance_to = 0.2f; }), song);
  EXPECT_EQ(with([](auto& r) { r.guidance = 1.0f; }), Band().latents(request)) << "none is the turbo's way";
}

TEST(Taps, EveryTensorIsAFileOfItsOwn) {
  Band band;
  const TemporaryDirectory directory;
  ComposeOptions options;
  options.decode = false;
  options.tap = taps_into(directory / "taps");
  const std::vector<float> latents = band.composer().compose(short_song(), options)[0].latents;
  const auto file = formats::open_safetensors(directory / "taps" / "0.latents.safetensors");
  const std::vector<std::uint64_t> shape = {10, 64};
  EXPECT_EQ(formats::read_tensor(*file, "0.latents", shape), latents);
  for (const char* name :
       {"text_hidden", "lyric_embedding", "condition", "context", "0.noise", "0.velocity_01"}) {
    EXPECT_TRUE(std::filesystem::exists(directory / "taps" / (std::string(name) + ".safetensors"))) << name;
  }
}

}  // namespace
}  // namespace assay::music
