#include "music/edit.hpp"

#include <gtest/gtest.h>

namespace assay::music {
namespace {

TEST(Edit, SilenceRepeats) {
  const std::vector<float> silence = {1, 2, 3, 4};
  EXPECT_EQ(silence_of(silence, 3, 2), (std::vector<float>{1, 2, 3, 4, 1, 2}));
  EXPECT_EQ(silence_of(silence, 1, 2), (std::vector<float>{1, 2}));
}

TEST(Edit, ContextHasSourceAndMaskSideBySide) {
  const std::vector<float> source = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(context_rows(source, 2), (std::vector<float>{1, 2, 1, 1, 3, 4, 1, 1, 5, 6, 1, 1}));
  const std::vector<float> silence = {7, 7, 8, 8, 9, 9};
  EXPECT_EQ(repaint_context_rows(source, silence, 2, {1, 2}),
            (std::vector<float>{1, 2, 0, 0, 8, 8, 1, 1, 5, 6, 0, 0}));
}

audio::Sound ramp(std::size_t frames) {
  audio::Sound sound;
  for (std::size_t i = 0; i < frames; ++i) {
    sound.samples.push_back(static_cast<float>(i));
    sound.samples.push_back(-static_cast<float>(i));
  }
  return sound;
}

TEST(Edit, TimbreClipIsThirtySecondsOfAnyReference) {
  constexpr std::size_t kTen = 480000;
  const std::vector<float> whole = timbre_clip(ramp(4 * kTen));
  ASSERT_EQ(whole.size(), 6 * kTen);
  EXPECT_EQ(whole[0], 0.0f);
  EXPECT_EQ(whole[2 * kTen], static_cast<float>(4 * kTen / 3));
  EXPECT_EQ(whole[4 * kTen], static_cast<float>(3 * kTen));
  EXPECT_EQ(whole[6 * kTen - 1], -static_cast<float>(4 * kTen - 1));
  // Seven seconds are repeated five times, to 35.
  const std::size_t seven = 7 * 48000;
  const std::vector<float> repeated = timbre_clip(ramp(seven));
  ASSERT_EQ(repeated.size(), 6 * kTen);
  EXPECT_EQ(repeated[2 * kTen], static_cast<float>(5 * seven / 3 % seven));
  EXPECT_EQ(repeated[4 * kTen], static_cast<float>((5 * seven - kTen) % seven));
  EXPECT_EQ(timbre_clip(ramp(1)).size(), 6 * kTen);
}

}  // namespace
}  // namespace assay::music
