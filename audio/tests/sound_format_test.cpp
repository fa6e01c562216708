#include "audio/sound_format.hpp"

#include <gtest/gtest.h>

#include "base/tests/expect_error.hpp"

namespace assay::audio {
namespace {

TEST(SoundFormat, FollowsTheEndingAndTheChoiceOfSamples) {
  const auto of = [](const char* file, const char* samples) {
    return sound_format_of(file, samples, "--samples");
  };
  EXPECT_EQ(of("a.wav", ""), SoundFormat::wav16);
  EXPECT_EQ(of("a.WAV", "24"), SoundFormat::wav24);
  EXPECT_EQ(of("a.wav", "float"), SoundFormat::wav_float);
  EXPECT_EQ(of("b.c.flac", ""), SoundFormat::flac16);
  EXPECT_EQ(of("a.flac", "24"), SoundFormat::flac24);
  EXPECT_EQ(of("a.mp3", ""), SoundFormat::mp3);
  expect_error(ErrorKind::invalid_argument, ".wav, .flac or .mp3", [&] { of("a.ogg", ""); });
  expect_error(ErrorKind::invalid_argument, ".wav, .flac or .mp3", [&] { of("song", "24"); });
  expect_error(ErrorKind::invalid_argument, "16, 24", [&] { of("a.flac", "float"); });
  expect_error(ErrorKind::invalid_argument, "--samples", [&] { of("a.mp3", "16"); });
}

}  // namespace
}  // namespace assay::audio
