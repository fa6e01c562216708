#include "lab/window/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/tests/expect_error.hpp"

namespace assay::lab {
namespace {

std::vector<double> noisy(std::mt19937_64& random, std::size_t count, double centre, double deviation) {
  std::normal_distribution<double> normal(centre, deviation);
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

TEST(Statistics, QuantilesAreLinearBetweenOrderStatistics) {
  const std::vector<double> values{4, 1, 3, 2, 5};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.1), 1.4);
  EXPECT_DOUBLE_EQ(median(values), 3);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 4.6);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 5);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{7}), 7);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{1, 2}), 1.5);
}

TEST(Statistics, SpreadIsTheDeviationOfNormalValuesAndUnmovedByOutliers) {
  std::mt19937_64 random(3);
  std::vector<double> values = noisy(random, 4000, 10, 2);
  EXPECT_NEAR(robust_spread(values), 2, 0.15);
  for (std::size_t i = 0; i < 400; ++i) values[i] = 1e6;
  EXPECT_NEAR(robust_spread(values), 2, 0.5);
  EXPECT_EQ(robust_spread(std::vector<double>{5}), 0);
}

TEST(Statistics, SummaryAgreesWithItsParts) {
  const std::vector<double> values{3, 9, 1, 4, 8};
  const Summary summary = summarize(values);
  EXPECT_EQ(summary.count, 5u);
  EXPECT_EQ(summary.median, median(values));
  EXPECT_EQ(summary.p10, quantile(values, 0.1));
  EXPECT_EQ(summary.p90, quantile(values, 0.9));
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 9);
  EXPECT_EQ(summary.spread, robust_spread(values));
}

TEST(Statistics, StudentsTIsThatOfTheTables) {
  EXPECT_NEAR(student_t(0.95, 1), 12.706, 1e-3);
  EXPECT_NEAR(student_t(0.95, 2), 4.303, 1e-3);
  EXPECT_NEAR(student_t(0.95, 3), 3.182, 1e-3);
  EXPECT_NEAR(student_t(0.99, 10), 3.169, 1e-3);
  EXPECT_NEAR(student_t(0.95, 120), 1.980, 1e-3);
}

// Anscombe's first set: intercept 3.0001, slope 0.5001, standard errors 1.1247 and 0.1179.
TEST(Statistics, LineOfAnscombesFirstSet) {
  const std::vector<double> x{10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5};
  const std::vector<double> y{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68};
  const LineFit fit = fit_line(x, y);
  EXPECT_NEAR(fit.intercept, 3.0001, 1e-4);
  EXPECT_NEAR(fit.slope, 0.5001, 1e-4);
  EXPECT_NEAR(fit.intercept_error, 1.1247, 1e-4);
  EXPECT_NEAR(fit.slope_error, 0.1179, 1e-4);
  EXPECT_NEAR(fit.residual_rms, std::sqrt(13.763 / 11), 1e-3);
  EXPECT_NEAR(fit.slope_interval.high - fit.slope, 2.2622 * 0.1179, 1e-3);
}

TEST(Statistics, SlopeIntervalHoldsTheTruthAtItsNominalRate) {
  std::mt19937_64 random(11);
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 7, 8};
  int held = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<double> y = noisy(random, x.size(), 0, 1);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] += 5 + 2 * x[i];
    held += fit_line(x, y).slope_interval.contains(2) ? 1 : 0;
  }
  EXPECT_NEAR(held, 950, 25);
}

TEST(Statistics, TwoPointsAreALineWithoutAnError) {
  const LineFit fit = fit_line(std::vector<double>{1, 3}, std::vector<double>{2, 8});
  EXPECT_DOUBLE_EQ(fit.slope, 3);
  EXPECT_DOUBLE_EQ(fit.intercept, -1);
  EXPECT_EQ(fit.slope_error, 0);
  EXPECT_TRUE(fit.slope_interval.contains(3));
}

TEST(Statistics, PiecesOfAKinkAndAStepAreFoundWhereTheyAre) {
  std::vector<double> x;
  std::vector<double> y;
  for (double tokens = 16; tokens <= 960; tokens += 16) {
    x.push_back(tokens);
    y.push_back(tokens <= 320 ? 5 + 0.01 * tokens : tokens <= 640 ? 9 + 0.02 * tokens : 30 + 0.005 * tokens);
  }
  const PiecewiseFit fit = fit_piecewise(x, y);
  ASSERT_EQ(fit.pieces.size(), 3u);
  EXPECT_EQ(fit.pieces[0].last_x, 320);
  EXPECT_EQ(fit.pieces[1].first_x, 336);
  EXPECT_EQ(fit.pieces[1].last_x, 640);
  EXPECT_NEAR(fit.pieces[2].line.slope, 0.005, 1e-9);
  EXPECT_NEAR(fit.residual_rms, 0, 1e-6);
}

TEST(Statistics, ANoisyLineStaysOnePiece) {
  std::mt19937_64 random(5);
  int single = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> x;
    std::vector<double> y = noisy(random, 24, 0, 0.3);
    for (std::size_t i = 0; i < y.size(); ++i) {
      x.push_back(static_cast<double>(40 * i));
      y[i] += 3 + 0.02 * x[i];
    }
    single += fit_piecewise(x, y).pieces.size() == 1 ? 1 : 0;
  }
  EXPECT_GE(single, 160);
}

TEST(Statistics, AnExactLineIsOnePieceEvenUnsortedAndWithRepeatedX) {
  std::vector<double> x;
  std::vector<double> y;
  for (const double tokens : {512.0, 32.0, 64.0, 512.0, 128.0, 256.0, 32.0, 1024.0, 2048.0, 96.0}) {
    x.push_back(tokens);
    y.push_back(1e-3 + 2e-5 * tokens);
  }
  const PiecewiseFit fit = fit_piecewise(x, y, 4, 3);
  ASSERT_EQ(fit.pieces.size(), 1u);
  EXPECT_EQ(fit.pieces[0].first_x, 32);
  EXPECT_EQ(fit.pieces[0].last_x, 2048);
  EXPECT_NEAR(fit.pieces[0].line.slope, 2e-5, 1e-12);
}

TEST(Statistics, RatioIntervalsHoldTheTruthAboutAsOftenAsTheySay) {
  std::mt19937_64 random(7);
  int apart = 0;
  int paired = 0;
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    const std::vector<double> slow = noisy(random, 40, 12, 0.6);
    const std::vector<double> fast = noisy(random, 40, 10, 0.5);
    const Bootstrap bootstrap{.confidence = 0.95, .resamples = 400, .seed = trial};
    apart += ratio_interval(slow, fast, bootstrap).contains(1.2) ? 1 : 0;
    paired += paired_ratio_interval(slow, fast, bootstrap).contains(1.2) ? 1 : 0;
  }
  EXPECT_GE(apart, 270);
  EXPECT_GE(paired, 270);
}

TEST(Statistics, PairsCancelWhatTheirHalvesShare) {
  std::mt19937_64 random(9);
  std::vector<double> slow = noisy(random, 40, 11, 0.02);
  std::vector<double> fast = noisy(random, 40, 10, 0.02);
  for (std::size_t i = 0; i < slow.size(); ++i) {
    const double drift = 1 + 0.02 * static_cast<double>(i);
    slow[i] *= drift;
    fast[i] *= drift;
  }
  const Interval pairs = paired_ratio_interval(slow, fast);
  const Interval lists = ratio_interval(slow, fast);
  EXPECT_TRUE(pairs.contains(1.1));
  EXPECT_LT(pairs.high - pairs.low, 0.2 * (lists.high - lists.low));
}

TEST(Statistics, TheSameSeedGivesTheSameInterval) {
  const std::vector<double> a{3, 4, 5, 6, 7};
  const std::vector<double> b{2, 3, 4, 5, 6};
  const Interval first = ratio_interval(a, b, {.seed = 4});
  const Interval again = ratio_interval(a, b, {.seed = 4});
  EXPECT_EQ(first.low, again.low);
  EXPECT_EQ(first.high, again.high);
}

TEST(Statistics, SignTestIsTheBinomialTail) {
  EXPECT_NEAR(sign_test(8, 0), 2.0 / 256, 1e-12);
  EXPECT_NEAR(sign_test(1, 7), 18.0 / 256, 1e-12);
  EXPECT_NEAR(sign_test(15, 5), 0.0414, 1e-4);
  EXPECT_EQ(sign_test(3, 3), 1);
  EXPECT_EQ(sign_test(0, 0), 1);
}

TEST(Statistics, BadInputIsRefused) {
  const std::vector<double> none;
  const std::vector<double> two{1, 2};
  const std::vector<double> three{1, 2, 3};
  const std::vector<double> same{4, 4, 4};
  const std::vector<double> infinite{1, std::numeric_limits<double>::infinity()};
  const std::vector<double> zero{0, 1};
  expect_error(ErrorKind::invalid_argument, "0 values", [&] { median(none); });
  expect_error(ErrorKind::invalid_argument, "0 values", [&] { summarize(none); });
  expect_error(ErrorKind::non_finite, "value 1 of 2", [&] { median(infinite); });
  expect_error(ErrorKind::invalid_argument, "quantile of 1.5", [&] { quantile(two, 1.5); });
  expect_error(ErrorKind::invalid_argument, "quantile of nan", [&] { quantile(two, std::nan("")); });
  expect_error(ErrorKind::invalid_argument, "2 and 3", [&] { fit_line(two, three); });
  expect_error(ErrorKind::invalid_argument, "single x", [&] { fit_line(same, three); });
  expect_error(ErrorKind::invalid_argument, "1 values",
               [&] { fit_line(std::vector<double>{1}, std::vector<double>{1}); });
  expect_error(ErrorKind::invalid_argument, "confidence of 1", [&] { fit_line(three, three, 1); });
  expect_error(ErrorKind::invalid_argument, "0 pieces", [&] { fit_piecewise(three, three, 0); });
  expect_error(ErrorKind::invalid_argument, "2001 points", [&] {
    std::vector<double> many(2001);
    for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i);
    fit_piecewise(many, many);
  });
  expect_error(ErrorKind::invalid_argument, "positive", [&] { ratio_interval(two, zero); });
  expect_error(ErrorKind::invalid_argument, "2 and 3", [&] { paired_ratio_interval(two, three); });
  expect_error(ErrorKind::invalid_argument, "10 resamples",
               [&] { ratio_interval(two, two, {.resamples = 10}); });
  expect_error(ErrorKind::invalid_argument, "degree of freedom", [&] { student_t(0.95, 0); });
}

}  // namespace
}  // namespace assay::lab
