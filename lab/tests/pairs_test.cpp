#include "lab/window/pairs.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"
#include "lab/window/floor.hpp"
#include "lab/window/order.hpp"
#include "lab/window/samples.hpp"

namespace assay::lab {
namespace {

/// Times of two forms in the order of a window of two processes; `drift` of a turn multiplies it.
std::vector<MatchedPair> plant(
    std::mt19937_64& random, std::size_t repetitions, double candidate, double noise,
    const std::function<double(std::size_t)>& drift = [](std::size_t) { return 1.0; }) {
  std::normal_distribution<double> normal(1, noise);
  std::vector<MatchedPair> pairs(2 * repetitions);
  std::size_t number = 0;
  for (const Stage& stage : rounds_schedule({1, 2, 2, repetitions})) {
    for (const Turn& turn : stage.turns) {
      MatchedPair& pair = pairs[turn.process * repetitions + turn.repetition];
      pair.process = turn.process;
      (turn.form == 0 ? pair.baseline : pair.candidate) =
          (turn.form == 0 ? 1 : candidate) * normal(random) * drift(number++);
    }
  }
  return pairs;
}

TEST(WindowPairs, APlantedRatioIsFoundWithItsInterval) {
  std::mt19937_64 random(1);
  for (const double ratio : {1.1, 1.5, 3.0}) {
    const PairResult faster = compare_pairs(plant(random, 12, 1 / ratio, 0.02), {});
    EXPECT_EQ(faster.verdict, PairVerdict::faster);
    EXPECT_NEAR(faster.ratio, ratio, 0.03 * ratio);
    EXPECT_TRUE(faster.interval.contains(faster.ratio));
    EXPECT_EQ(faster.pairs, 24u);
    EXPECT_EQ(faster.wins + faster.losses, 24u);
    EXPECT_FALSE(faster.suspicious);
    EXPECT_TRUE(faster.why.empty());
    const PairResult slower = compare_pairs(plant(random, 12, ratio, 0.02), {});
    EXPECT_EQ(slower.verdict, PairVerdict::slower);
    EXPECT_NEAR(slower.ratio, 1 / ratio, 0.03);
  }
}

TEST(WindowPairs, NoiseAloneIsCalledADifferenceInFewerThanOneOfTwenty) {
  std::mt19937_64 random(2);
  for (const std::size_t repetitions : {4u, 6u, 12u}) {
    int called = 0;
    constexpr int kTrials = 400;
    for (int trial = 0; trial < kTrials; ++trial) {
      PairRule rule;
      rule.resamples = 200;
      rule.min_ratio = 1;  // what the interval and the wins alone keep out
      const PairResult result = compare_pairs(plant(random, repetitions, 1, 0.1), rule);
      called += result.verdict == PairVerdict::inconclusive ? 0 : 1;
    }
    EXPECT_LE(called, kTrials / 20) << repetitions;
  }
}

TEST(WindowPairs, DriftOfTheMachineIsNoDifference) {
  std::mt19937_64 random(3);
  const auto warming = [](std::size_t turn) { return 1 + 0.02 * static_cast<double>(turn); };
  const PairResult same = compare_pairs(plant(random, 12, 1, 0.001, warming), {});
  EXPECT_EQ(same.verdict, PairVerdict::inconclusive);
  EXPECT_NEAR(same.ratio, 1, 0.02);
  const PairResult faster = compare_pairs(plant(random, 12, 0.8, 0.001, warming), {});
  EXPECT_EQ(faster.verdict, PairVerdict::faster);
  EXPECT_NEAR(faster.ratio, 1.25, 0.03);
}

TEST(WindowPairs, AnInconclusiveVerdictSaysWhatItLacks) {
  std::mt19937_64 random(4);
  const PairResult marginal = compare_pairs(plant(random, 12, 1 / 1.01, 0.0005), {});
  EXPECT_EQ(marginal.verdict, PairVerdict::inconclusive);
  ASSERT_EQ(marginal.why.size(), 1u);
  EXPECT_THAT(marginal.why[0], testing::HasSubstr("1.020 is the least"));

  const PairResult few = compare_pairs(plant(random, 2, 0.5, 0.01), {});
  EXPECT_EQ(few.verdict, PairVerdict::inconclusive);
  EXPECT_THAT(few.why[0], testing::HasSubstr("4 pairs, 8 are needed"));

  std::vector<MatchedPair> mixed = plant(random, 12, 0.8, 0.01);
  for (MatchedPair& pair : mixed) {
    if (pair.process == 1) pair.candidate *= 1.3;
  }
  const PairResult disagreeing = compare_pairs(mixed, {});
  EXPECT_EQ(disagreeing.verdict, PairVerdict::inconclusive);
  EXPECT_THAT(disagreeing.why.back(), testing::HasSubstr("processes disagree"));
}

TEST(WindowPairs, TooGoodIsSuspicious) {
  std::mt19937_64 random(5);
  const PairResult result = compare_pairs(plant(random, 12, 0.05, 0.01), {});
  EXPECT_EQ(result.verdict, PairVerdict::faster);
  EXPECT_TRUE(result.suspicious);
  EXPECT_TRUE(compare_pairs(plant(random, 12, 20, 0.01), {}).suspicious);
}

TEST(WindowPairs, BadInputIsRefused) {
  expect_error(ErrorKind::invalid_argument, "values", [] { compare_pairs({}, {}); });
  const std::vector<MatchedPair> zero{{0, 1, 0}, {1, 1, 1}};
  expect_error(ErrorKind::invalid_argument, "positive", [&] { compare_pairs(zero, {}); });
}

TEST(Floor, IsTheLargerOfArithmeticAndTraffic) {
  const WorkCost cost{.fp32_operations = 1e9, .bf16_operations = 4e9, .bytes = 1e8};
  const StatedCeilings ceilings{.fp32_flops = 1e11, .bf16_flops = 4e11, .bytes_per_second = 1e9};
  EXPECT_DOUBLE_EQ(floor_seconds(cost, ceilings, 0), 0.1);
  EXPECT_DOUBLE_EQ(floor_seconds(cost, {.fp32_flops = 1e11, .bf16_flops = 4e11}, 0), 0.02);
  EXPECT_DOUBLE_EQ(floor_seconds(cost, ceilings, std::size_t{60} << 20), 0.02) << "the cache may hold it";
  EXPECT_EQ(floor_seconds(cost, {}, 0), 0);
  EXPECT_EQ(floor_seconds({}, ceilings, 0), 0);
}

TEST(Floor, CeilingsAreTheBestThatAReceiptOfThisMachineMeasured) {
  using Json = nlohmann::ordered_json;
  const auto rate = [](double max) { return Json{{"median", max / 2}, {"max", max}}; };
  const Json result{{"peaks",
                     {{{"precision", "fp32"}, {"operations_per_second", rate(1e11)}},
                      {{"precision", "fp32"}, {"operations_per_second", rate(2e11)}}}},
                    {"bandwidths",
                     {{{"level", "l1"}, {"bytes_per_second", rate(9e11)}},
                      {{"level", "memory"}, {"bytes_per_second", rate(3e10)}}}}};
  const TemporaryDirectory folder;
  const auto written = [&](ReceiptKind kind, const Json& body) {
    return write_receipt(folder.path(), make_receipt(kind, Json::object(), body));
  };
  const StatedCeilings ceilings = ceilings_of(written(ReceiptKind::ceilings, result));
  EXPECT_EQ(ceilings.fp32_flops, 2e11);
  EXPECT_FALSE(ceilings.bf16_flops.has_value());
  EXPECT_EQ(ceilings.bytes_per_second, 3e10);
  expect_error(ErrorKind::mismatch, "a gate receipt",
               [&] { ceilings_of(written(ReceiptKind::gate, result)); });
  expect_error(ErrorKind::malformed, "bandwidths", [&] {
    ceilings_of(written(ReceiptKind::ceilings, {{"peaks", Json::array()}}));
  });
  Receipt other = written(ReceiptKind::ceilings, result);
  other.body["device"]["id"] = "cpu-another";
  expect_error(ErrorKind::mismatch, "cpu-another", [&] { ceilings_of(other); });
}

TEST(Samples, OfAThrottledDeviceAreDroppedAndCounted) {
  std::vector<Sample> samples(5);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].order = i;
  samples[0].megahertz = 2000;
  samples[1].megahertz = 1499;
  samples[2].megahertz = 1500;
  samples[3].megahertz = 900;
  EXPECT_EQ(drop_throttled(samples, 2000), 2u);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].order, 0u);
  EXPECT_EQ(samples[1].order, 2u);
  EXPECT_EQ(samples[2].order, 4u) << "a sample without a clock stays";
}

}  // namespace
}  // namespace assay::lab
