#include "assay/assay.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::api {
namespace {

TEST(MusicModel, ComposesToAFileAndTellsTheSeed) {
  const TemporaryDirectory directory;
  MusicModel model(std::filesystem::path(ASSAY_TEST_DATA) / "ace-tiny", {.exact = true});
  std::string last;
  const ComposeOptions options{.progress = [&](std::string_view stage, double) { last = stage; }};
  const SongRequest request{.prompt = "calm piano", .duration = 0.2, .steps = 1};
  const Song song = model.compose(request, directory / "a.wav", options);
  EXPECT_EQ(last, "decoding");
  EXPECT_EQ(song.seconds, 0.2);
  SongRequest again = request;
  again.seed = song.seed;
  EXPECT_EQ(model.compose(again, directory / "b.wav").seed, song.seed);
  EXPECT_EQ(read_text_file(directory / "a.wav"), read_text_file(directory / "b.wav"));
  EXPECT_NE(model.compose(request, directory / "c.wav").seed, song.seed);
}

TEST(MusicModel, StopsAndRefusesWithoutAFile) {
  const TemporaryDirectory directory;
  MusicModel model(std::filesystem::path(ASSAY_TEST_DATA) / "ace-tiny");
  std::stop_source stop;
  const ComposeOptions options{.stop = stop.get_token(),
                               .progress = [&](std::string_view, double) { stop.request_stop(); }};
  expect_error(ErrorKind::cancelled, "stopped",
               [&] { model.compose({.prompt = "x"}, directory / "a.wav", options); });
  expect_error(ErrorKind::invalid_argument, "prompt",
               [&] { model.compose({.prompt = ""}, directory / "a.wav"); });
  expect_error(ErrorKind::invalid_argument, ".flac",
               [&] { model.compose({.prompt = "x"}, directory / "a.ogg"); });
  EXPECT_TRUE(list_directory(directory.path()).empty());
}

}  // namespace
}  // namespace assay::api
