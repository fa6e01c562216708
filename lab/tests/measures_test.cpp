#include "lab/gate/measures.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::lab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

NumericMeasures of(std::vector<double> x, std::vector<double> y) {
  return measure(Values(std::move(x)), Values(std::move(y)));
}

std::vector<double> sine(std::size_t samples, double cycles_a_sample, double amplitude = 0.5) {
  std::vector<double> signal(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    signal[i] = amplitude * std::sin(2 * std::numbers::pi * cycles_a_sample * static_cast<double>(i));
  }
  return signal;
}

Array sound(std::vector<std::size_t> shape, std::vector<double> values, double rate = 1000) {
  return {.name = "wave", .shape = std::move(shape), .values = std::move(values), .sample_rate = rate};
}

TEST(Measures, AreTheirDefinitionsOnASmallExample) {
  const NumericMeasures m = of({3, -4, 0, 5}, {3, -4.5, 0, 5.5});
  EXPECT_DOUBLE_EQ(m.nrmse, std::sqrt(0.5 / 50));
  EXPECT_DOUBLE_EQ(m.snr_db, 10 * std::log10(50 / 0.5));
  EXPECT_DOUBLE_EQ(m.max_abs, 0.5);
  EXPECT_EQ(m.worst, 1u);
  EXPECT_NEAR(m.pearson.value(), 0.99946127, 1e-7);
}

TEST(Measures, IdenticalSignalsHaveNoErrorAndInfiniteRatio) {
  for (const std::vector<double>& signal : {std::vector<double>{1, -2, 3}, {0, 0}, {7, 7, 7}}) {
    const NumericMeasures m = of(signal, signal);
    EXPECT_EQ(m.nrmse, 0);
    EXPECT_EQ(m.snr_db, kInfinity);
    EXPECT_EQ(m.pearson, 1);
    EXPECT_EQ(to_json(m)["snr_db"], "infinity");
  }
}

TEST(Measures, NoiseWhereTheOracleIsSilentIsInfinitelyWrong) {
  const NumericMeasures m = of({0, 0}, {0, 1e-20});
  EXPECT_EQ(m.nrmse, kInfinity);
  EXPECT_EQ(m.snr_db, -kInfinity);
  EXPECT_EQ(to_json(m)["snr_db"], "-infinity");
  EXPECT_FALSE(m.pearson.has_value());
  EXPECT_TRUE(to_json(m)["pearson"].is_null());
}

TEST(Measures, ACorrelationWithAConstantIsUndefined) {
  EXPECT_FALSE(of({1, 1, 1}, {1, 2, 3}).pearson.has_value());
  EXPECT_FALSE(of({1, 2, 3}, {2, 2, 2}).pearson.has_value());
  EXPECT_DOUBLE_EQ(of({1, 2, 3}, {3, 2, 1}).pearson.value(), -1);
}

TEST(Measures, ValuesThatAreNotFiniteAreCountedAndLeftOutOfTheRest) {
  const NumericMeasures m = of({1, NAN, kInfinity, kInfinity, 2, 3}, {1, NAN, kInfinity, -kInfinity, NAN, 3});
  EXPECT_EQ(m.non_finite, 2u);
  EXPECT_EQ(m.nrmse, 0);
  EXPECT_EQ(of({NAN}, {0}).non_finite, 1u);
}

TEST(Measures, AValueLostToZeroIsACollapseUnlessTheScaleHidesIt) {
  EXPECT_EQ(of({1, 1e-3, 1e-9}, {1, 0, 0}).collapsed, 1u);
  EXPECT_EQ(of({0, 1}, {0, 1}).collapsed, 0u);
}

TEST(Measures, NothingDiffersInNothing) {
  const NumericMeasures m = of({}, {});
  EXPECT_EQ(m.values, 0u);
  EXPECT_EQ(m.nrmse, 0);
  EXPECT_EQ(log_spectral_distance({}, {}), 0);
}

TEST(AudioMeasures, FindTheSecondThatIsWrong) {
  const std::vector<double> x = sine(2500, 0.05);
  std::vector<double> y = x;
  y[1500] += 0.25;
  const AudioMeasures m = measure_audio(sound({2500}, x), sound({2500}, y));
  ASSERT_EQ(m.nrmse_per_second.size(), 3u);
  EXPECT_EQ(m.nrmse_per_second[0], 0);
  EXPECT_GT(m.nrmse_per_second[1], 0.01);
  EXPECT_EQ(m.nrmse_per_second[2], 0);
}

TEST(AudioMeasures, TakeAllChannelsOfASecondTogether) {
  std::vector<double> x = sine(2000, 0.05);
  std::vector<double> y = x;
  y[1200] += 0.25;  // second 0 of the second channel
  const AudioMeasures m = measure_audio(sound({2, 1000}, x), sound({2, 1000}, y));
  EXPECT_EQ(m.channels, 2u);
  ASSERT_EQ(m.nrmse_per_second.size(), 1u);
  EXPECT_NEAR(m.nrmse_per_second[0], m.whole.nrmse, 1e-15);
}

TEST(AudioMeasures, PeakAndRmsAreThoseOfTheSignals) {
  const AudioMeasures m =
      measure_audio(sound({1000}, sine(1000, 0.05, 0.5)), sound({1000}, sine(1000, 0.05, 0.4)));
  EXPECT_NEAR(m.peak_difference, 0.1, 1e-9);
  EXPECT_NEAR(m.rms, 0.5 / std::numbers::sqrt2, 1e-9);
  EXPECT_NEAR(m.rms_difference, 0.1 / std::numbers::sqrt2, 1e-9);
}

TEST(AudioMeasures, AGainMovesTheWholeSpectrumByItsDecibels) {
  // A step of noise without a window's gaps: every bin well above the floor moves by 20·log₁₀(2).
  std::vector<double> x(4096);
  unsigned state = 1;
  for (double& value : x)
    value = static_cast<double>(state = state * 1664525u + 1013904223u) / 4294967296.0 - 0.5;
  std::vector<double> y = x;
  for (double& value : y) value *= 2;
  EXPECT_NEAR(log_spectral_distance(x, y), 20 * std::log10(2.0), 1e-9);
  EXPECT_EQ(log_spectral_distance(x, x), 0);
}

TEST(AudioMeasures, SilenceAgainstSoundIsFarAndFinite) {
  const std::vector<double> silence(3000), tone = sine(3000, 0.1);
  EXPECT_EQ(log_spectral_distance(silence, silence), 0);
  EXPECT_GT(log_spectral_distance(silence, tone), 5);
  EXPECT_TRUE(std::isfinite(log_spectral_distance(silence, tone)));
}

TEST(AudioMeasures, ATonesPlaceInTheSpectrumCounts) {
  const std::vector<double> low = sine(4096, 64.0 / 1024), high = sine(4096, 200.0 / 1024);
  EXPECT_GT(log_spectral_distance(low, high), 4);
}

}  // namespace
}  // namespace assay::lab
