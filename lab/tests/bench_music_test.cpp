#include "lab/bench_music.hpp"

#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/tests/expect_error.hpp"

namespace assay::lab {
namespace {

TEST(MusicBench, CountsWhatTheRealShapesCompute) {
  const MusicShape turbo = music_shape("turbo");
  // Twice the multiply-adds that the authors' code does, counted by hand from its layers.
  EXPECT_NEAR(step_operations(turbo.dit, 300, 641) * 1e-12, 0.446, 0.001);
  EXPECT_NEAR(decode_operations(turbo.vae, 1) * 1e-9, 4.874, 0.001);
  EXPECT_EQ(decode_operations(turbo.vae, 300), 300 * decode_operations(turbo.vae, 1));
  EXPECT_GT(condition_operations(turbo.condition, 128, 512, 750), text_operations(turbo.text, 128));
  EXPECT_GT(prepare_operations(turbo.dit, 100), 0);
}

TEST(MusicBench, RunsEveryStageOfEverySong) {
  MusicBenchOptions options;
  options.shape = "tiny";
  options.seconds = {1, 2};
  options.steps = 2;
  options.text_tokens = 8;
  options.lyric_tokens = 16;
  const MusicBenchReport report = bench_music(options, [](std::string_view) {});
  EXPECT_EQ(report.parts.size(), 4u);
  EXPECT_EQ(report.condition_rows, 8u + 16u + 1u);
  ASSERT_EQ(report.songs.size(), 2u);
  for (const MusicBenchSong& song : report.songs) {
    EXPECT_EQ(song.frames, song.seconds * 25);
    ASSERT_EQ(song.stages.size(), 5u);
    EXPECT_EQ(song.stages[3].stage, "step");
    EXPECT_EQ(song.stages[3].seconds.size(), 2u);
    for (const MusicStageTime& stage : song.stages) {
      EXPECT_GT(stage.operations, 0) << stage.stage;
      for (const double seconds : stage.seconds) EXPECT_GT(seconds, 0) << stage.stage;
    }
  }
  const nlohmann::ordered_json json = to_json(report);
  EXPECT_EQ(json["songs"][1]["stages"].size(), 5u);
  EXPECT_GT(json["peak_bytes"].get<std::size_t>(), std::size_t{1} << 20);
  EXPECT_NE(to_table(report).find("times real time"), std::string::npos);
}

TEST(MusicBench, RefusesWhatItCannotMeasure) {
  MusicBenchOptions options;
  options.shape = "huge";
  expect_error(ErrorKind::invalid_argument, "turbo", [&] { bench_music(options, [](std::string_view) {}); });
  options.shape = "tiny";
  options.seconds = {0};
  expect_error(ErrorKind::invalid_argument, "--seconds",
               [&] { bench_music(options, [](std::string_view) {}); });
}

}  // namespace
}  // namespace assay::lab
