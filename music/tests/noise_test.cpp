#include "music/noise.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace assay::music {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Noise, PhiloxGivesTheAuthorsKnownAnswers) {
  // Random123's kat_vectors, philox4x32 with 10 rounds.
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Noise, ValuesAreBoxMullerOfTheirBlocks) {
  const std::uint64_t seed = 0x1234567890abcdefu;
  std::vector<float> values(4000);
  fill_normal(seed, NoiseStream::latents, 0, values);
  for (std::uint32_t k = 0; k < values.size(); k += 2) {
    const Words words = philox4x32({k / 4, 0, 0, 0}, {0x90abcdef, 0x12345678});
    const double radius = std::sqrt(-2.0 * std::log((words[k % 4] + 0.5) / 4294967296.0));
    const double angle = 2.0 * std::acos(-1.0) * (words[k % 4 + 1] / 4294967296.0);
    EXPECT_NEAR(values[k], radius * std::cos(angle), 1e-6);
    EXPECT_NEAR(values[k + 1], radius * std::sin(angle), 1e-6);
  }
}

TEST(Noise, ValueKDoesNotDependOnWhereOneStarts) {
  std::vector<float> whole(40);
  fill_normal(7, NoiseStream::latents, 0, whole);
  for (std::size_t first = 0; first < 9; ++first) {
    std::vector<float> part(20);
    fill_normal(7, NoiseStream::latents, first, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)));
  }
}

TEST(Noise, BitsAreTheSameEverywhere) {
  // What another machine or compiler has to give as well.
  std::vector<float> values(6);
  fill_normal(42, NoiseStream::latents, 0, values);
  const std::vector<float> recorded = {-0x1.f0bcb8p-1f, 0x1.8d59dp-3f,  -0x1.3c51a4p+0f,
                                       0x1.ec8676p+0f,  -0x1.2bc06p-4f, 0x1.1cf41ep-3f};
  EXPECT_EQ(values, recorded);
}

TEST(Noise, IsStandardNormal) {
  std::vector<float> values(200000);
  fill_normal(3, NoiseStream::latents, 0, values);
  double mean = 0;
  double square = 0;
  double fourth = 0;
  for (const double value : values) {
    mean += value;
    square += value * value;
    fourth += value * value * value * value;
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(mean / count, 0, 0.01);
  EXPECT_NEAR(square / count, 1, 0.02);
  EXPECT_NEAR(fourth / count, 3, 0.1);
}

TEST(Noise, AllBitsOfTheSeedAndTheStreamMatter) {
  const auto first_of = [](std::uint64_t seed, NoiseStream stream) {
    std::vector<float> values(8);
    fill_normal(seed, stream, 0, values);
    return values;
  };
  const auto base = first_of(5, NoiseStream::latents);
  EXPECT_NE(base, first_of(5, NoiseStream::planner));
  for (int bit = 0; bit < 64; ++bit)
    EXPECT_NE(base, first_of(5 ^ (std::uint64_t{1} << bit), NoiseStream::latents));
}

TEST(Noise, UniformsAreTheWords) {
  const Words words = philox4x32({1, 0, 1, 0}, {9, 0});
  EXPECT_EQ(uniform(9, NoiseStream::planner, 6), words[2] / 4294967296.0);
}

}  // namespace
}  // namespace assay::music
