#include "audio/sound_spool.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/path.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::audio {
namespace {

TEST(SoundSpool, KeepsSamplesAndPeakWithoutAName) {
  const TemporaryDirectory directory;
  SoundSpool spool(directory.path());
  spool.append(std::vector<float>{0.5f, -2.0f});
  spool.append(std::vector<float>{1.0f, 0.25f, 0.0f, 0.125f});
  EXPECT_TRUE(list_directory(directory.path()).empty());
  EXPECT_EQ(spool.samples(), 6u);
  EXPECT_EQ(spool.peak(), 2.0f);
  std::vector<float> middle(3);
  spool.read(1, middle);
  EXPECT_EQ(middle, (std::vector<float>{-2.0f, 1.0f, 0.25f}));
  std::vector<float> past(8);
  expect_error(ErrorKind::io, "decoded samples", [&] { spool.read(1, past); });
}

TEST(SoundSpool, NamesTheSecondOfANaN) {
  const TemporaryDirectory directory;
  SoundSpool spool(directory.path());
  spool.append(std::vector<float>(96000, 0.5f));
  std::vector<float> bad(9600, 0.25f);
  bad[4800] = NAN;
  expect_error(ErrorKind::non_finite, "1.050 s", [&] { spool.append(bad); });
  EXPECT_EQ(spool.samples(), 96000u);
  expect_error(ErrorKind::missing, "no place", [&] { SoundSpool none(directory / "none"); });
}

TEST(Loudness, BringsThePeakToMinusOneDecibel) {
  const float target = std::pow(10.0f, -0.05f);
  for (const float peak : {0.01f, 0.5f, 1.0f, 1.5f, 80.0f}) {
    EXPECT_NEAR(loudness_of(peak).apply(peak), target, 1e-6f) << peak;
  }
  EXPECT_EQ(loudness_of(0.0f).apply(0.0f), 0.0f);
}

}  // namespace
}  // namespace assay::audio
