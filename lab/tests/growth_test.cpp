#include "lab/cost/growth.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "device/memory.hpp"
#include "lab/cost/process_memory.hpp"

namespace assay::lab {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

/// Normal noise of that deviation about that level, the same at every run.
std::vector<double> noise(std::size_t count, double level, double deviation, unsigned seed = 3) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<double> bytes(count);
  for (double& value : bytes) value = level + normal(random);
  return bytes;
}

GrowthVerdict verdict(const std::vector<double>& bytes) {
  return analyze_growth(bytes, {}).verdict;
}

TEST(Growth, AFlatSeriesIsNotGrowingAndItsIntervalIsAPoint) {
  const GrowthAnalysis analysis = analyze_growth(std::vector<double>(200, 100 * kMiB), {});
  EXPECT_EQ(analysis.verdict, GrowthVerdict::not_growing);
  EXPECT_EQ(analysis.slope, 0);
  EXPECT_EQ(analysis.interval.low, 0);
  EXPECT_EQ(analysis.interval.high, 0);
  EXPECT_GE(analysis.confidence, 0.95);
  EXPECT_TRUE(analysis.steps.empty());
}

TEST(Growth, NoiseIsNotGrowing) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(verdict(noise(200, 100 * kMiB, 8192, seed)), GrowthVerdict::not_growing) << seed;
  }
}

TEST(Growth, NoiseTooWideForTheCallsIsInconclusiveAndNeverGrowing) {
  std::size_t inconclusive = 0;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const GrowthVerdict found = verdict(noise(200, 1000 * kMiB, 10 * kMiB, seed));
    EXPECT_NE(found, GrowthVerdict::growing) << seed;
    inconclusive += found == GrowthVerdict::inconclusive ? 1 : 0;
  }
  EXPECT_GT(inconclusive, 45u);
}

TEST(Growth, ALeakThatIsSlowAgainstTheNoiseIsGrowing) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::vector<double> bytes = noise(400, 100 * kMiB, 8192, seed);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] += 3000 * static_cast<double>(i);
    const GrowthAnalysis analysis = analyze_growth(bytes, {});
    EXPECT_EQ(analysis.verdict, GrowthVerdict::growing) << seed;
    EXPECT_TRUE(analysis.interval.contains(3000)) << seed;
    EXPECT_NEAR(analysis.total, 3000 * 380, 3e4);
  }
}

TEST(Growth, UpToFourStepsAreListedAndAreNoGrowth) {
  std::vector<double> bytes = noise(200, 100 * kMiB, 2000);
  const std::vector<std::size_t> places = {37, 80, 121, 170};
  for (const std::size_t place : places) {
    for (std::size_t i = place; i < bytes.size(); ++i) bytes[i] += 2 * kMiB;
  }
  const GrowthAnalysis analysis = analyze_growth(bytes, {});
  EXPECT_EQ(analysis.verdict, GrowthVerdict::not_growing);
  ASSERT_EQ(analysis.steps.size(), places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(analysis.steps[i].call), static_cast<double>(places[i]), 10);
    EXPECT_NEAR(analysis.steps[i].bytes, 2 * kMiB, 4000);
  }
  EXPECT_NEAR(analysis.total, 8 * kMiB, 4000);
}

TEST(Growth, ALeakUnderTheThresholdIsWithinIt) {
  std::vector<double> bytes(200);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = 1e8 + 500 * static_cast<double>(i);
  GrowthOptions options;
  EXPECT_EQ(analyze_growth(bytes, options).verdict, GrowthVerdict::not_growing);
  options.threshold = 400;
  EXPECT_EQ(analyze_growth(bytes, options).verdict, GrowthVerdict::growing);
}

TEST(Growth, AFallingSeriesIsNotGrowing) {
  std::vector<double> bytes(200);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = 1e8 - 5000 * static_cast<double>(i);
  EXPECT_EQ(verdict(bytes), GrowthVerdict::not_growing);
}

TEST(Growth, LengthsOfARoundAreAllDifferentAndDependOnTheSeedAlone) {
  GrowthOptions options;
  options.shortest = 8;
  options.longest = 57;
  options.calls = 120;
  const std::vector<std::size_t> lengths = growth_lengths(options);
  ASSERT_EQ(lengths.size(), 120u);
  for (const std::ptrdiff_t first : {0, 50}) {
    const std::set<std::size_t> round(lengths.begin() + first, lengths.begin() + first + 50);
    EXPECT_EQ(round.size(), 50u);
    EXPECT_EQ(*round.begin(), 8u);
    EXPECT_EQ(*round.rbegin(), 57u);
  }
  EXPECT_EQ(lengths, growth_lengths(options));
  options.seed = 2;
  EXPECT_NE(lengths, growth_lengths(options));
}

/// Buffers of whole pages, so that what is measured does not depend on the allocator under the test.
device::Buffer<char> written_pages(std::size_t bytes) {
  device::Buffer<char> pages(bytes);
  std::fill(pages.span().begin(), pages.span().end(), char{1});
  return pages;
}

GrowthOptions quick_growth() {
  GrowthOptions options;
  options.shortest = 1;
  options.longest = 300;
  options.calls = 200;
  return options;
}

TEST(Growth, FlagsABufferKeptPerDistinctCallLength) {
  std::map<std::size_t, device::Buffer<char>> kept;
  const auto call = [&](std::size_t length) {
    if (kept.find(length) == kept.end()) kept.emplace(length, written_pages(64 * length));
  };
  const HeldBytes held;
  const GrowthReport report = measure_growth(quick_growth(), call, [&] { return held(); });
  EXPECT_EQ(report.analysis.verdict, GrowthVerdict::growing) << to_table(report);
  EXPECT_EQ(report.distinct_lengths, 200u);
}

TEST(Growth, FlagsALeakOfAPageACall) {
  std::vector<device::Buffer<char>> kept;
  kept.reserve(1000);
  const auto call = [&](std::size_t /*length*/) { kept.push_back(written_pages(4096)); };
  const HeldBytes held;
  const GrowthReport report = measure_growth(quick_growth(), call, [&] { return held(); });
  EXPECT_EQ(report.analysis.verdict, GrowthVerdict::growing) << to_table(report);
  EXPECT_NEAR(report.analysis.slope, 4096, 1500);
}

TEST(Growth, PassesAScratchThatGrowsToTheLongestCallAndAOneOffBuffer) {
  device::Buffer<char> scratch;
  device::Buffer<char> late;
  std::size_t calls = 0;
  const auto call = [&](std::size_t length) {
    if (scratch.size() < 4096 * length) scratch = written_pages(4096 * length);
    if (++calls == 120) late = written_pages(std::size_t{4} << 20);
  };
  const HeldBytes held;
  const GrowthReport report = measure_growth(quick_growth(), call, [&] { return held(); });
  EXPECT_EQ(report.analysis.verdict, GrowthVerdict::not_growing) << to_table(report);
  EXPECT_GE(report.bytes.back() - report.bytes.front(), 4 * kMiB);
}

TEST(Growth, ReportsWhatItMeasured) {
  std::size_t bytes = 0;
  const GrowthReport report = measure_growth(
      quick_growth(), [&](std::size_t) { bytes += 10'000; }, [&] { return bytes; });
  const nlohmann::ordered_json json = to_json(report);
  EXPECT_EQ(json["verdict"], "growing");
  EXPECT_EQ(json["slope_bytes_per_call"], 10'000.0);
  EXPECT_EQ(json["interval"]["low"], 10'000.0);
  EXPECT_EQ(json["held_bytes"].size(), 200u);
  EXPECT_EQ(json["held_bytes"][0], 10'000.0 * (GrowthOptions::kWarmUp + 1));
  EXPECT_EQ(json["lengths"].size(), 200u);
  EXPECT_NE(to_table(report).find("verdict: growing"), std::string::npos);
}

TEST(Growth, OptionsOutOfRangeAndTooFewSamplesAreErrors) {
  const auto fails = [](auto change) {
    GrowthOptions options;
    change(options);
    EXPECT_THROW(growth_lengths(options), Error);
    EXPECT_THROW(measure_growth(
                     options, [](std::size_t) {}, [] { return std::size_t{0}; }),
                 Error);
  };
  fails([](GrowthOptions& o) { o.shortest = 0; });
  fails([](GrowthOptions& o) { o.longest = o.shortest; });
  fails([](GrowthOptions& o) { o.longest = 65'537; });
  fails([](GrowthOptions& o) { o.calls = 39; });
  fails([](GrowthOptions& o) { o.calls = 100'001; });
  fails([](GrowthOptions& o) { o.threshold = 0; });
  fails([](GrowthOptions& o) { o.threshold = std::numeric_limits<double>::quiet_NaN(); });
  fails([](GrowthOptions& o) { o.confidence = 1; });
  EXPECT_THROW(analyze_growth(std::vector<double>(39, 1.0), {}), Error);
}

}  // namespace
}  // namespace assay::lab
