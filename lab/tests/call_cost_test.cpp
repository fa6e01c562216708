#include "lab/cost/call_cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace assay::lab {
namespace {

std::vector<double> default_lengths() {
  const CallCostOptions options;
  return {options.lengths.begin(), options.lengths.end()};
}

/// `cost` at every length, with normal noise of that deviation, the same at every run.
template <class Cost>
std::vector<double> planted(const std::vector<double>& lengths, double deviation, unsigned seed,
                            const Cost& cost) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, deviation);
  std::vector<double> values;
  values.reserve(lengths.size());
  for (const double length : lengths) values.push_back(cost(length) + (deviation > 0 ? noise(random) : 0.0));
  return values;
}

TEST(CostFit, FindsAPlantedLineExactlyAndChoosesIt) {
  const auto lengths = default_lengths();
  const CostFit fit = fit_cost(lengths, planted(lengths, 0, 1, [](double n) { return 22.2 + 0.62 * n; }));
  EXPECT_NEAR(fit.line.intercept, 22.2, 1e-9);
  EXPECT_NEAR(fit.line.slope, 0.62, 1e-9);
  EXPECT_NEAR(fit.line.residual_rms, 0, 1e-9);
  EXPECT_EQ(fit.chosen, CostShape::line);
}

TEST(CostFit, ALineInNoiseIsSeldomTakenForMore) {
  const auto lengths = default_lengths();
  std::size_t lines = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const CostFit fit = fit_cost(lengths, planted(lengths, 2, seed, [](double n) { return 20 + 0.6 * n; }));
    lines += fit.chosen == CostShape::line ? 1 : 0;
  }
  EXPECT_GE(lines, 180u);
}

TEST(CostFit, FindsPlantedTiles) {
  const auto lengths = default_lengths();
  for (const std::size_t tile : {16u, 32u}) {
    const auto cost = [tile](double n) {
      return 3 + 0.05 * n + 6 * std::ceil(n / static_cast<double>(tile));
    };
    for (unsigned seed = 1; seed <= 20; ++seed) {
      const CostFit fit = fit_cost(lengths, planted(lengths, 0.2, seed, cost));
      EXPECT_EQ(fit.chosen, CostShape::tiles) << tile << " " << seed;
      EXPECT_EQ(fit.tiles.tile, tile) << seed;
      EXPECT_NEAR(fit.tiles.per_tile, 6, 0.5);
      EXPECT_NEAR(fit.at(33), cost(33), 1);
      EXPECT_LT(fit.tiles.residual_rms, fit.line.residual_rms);
    }
  }
}

TEST(CostFit, FindsAPlantedBend) {
  const auto lengths = default_lengths();
  const auto cost = [](double n) { return n <= 64 ? 10 + 0.1 * n : 16.4 + 0.8 * (n - 64); };
  const CostFit fit = fit_cost(lengths, planted(lengths, 0.1, 1, cost));
  EXPECT_EQ(fit.chosen, CostShape::pieces);
  ASSERT_EQ(fit.pieces.pieces.size(), 2u);
  EXPECT_NEAR(fit.pieces.pieces[0].line.slope, 0.1, 0.02);
  EXPECT_NEAR(fit.pieces.pieces[1].line.slope, 0.8, 0.02);
  EXPECT_NEAR(fit.at(200), cost(200), 0.5);
}

TEST(CostFit, LengthsThatEveryTileDividesShowNoTiles) {
  const std::vector<double> lengths = {384, 768, 1152, 1536, 1920};
  const CostFit fit = fit_cost(lengths, {{1.0, 2.1, 2.9, 4.0, 5.2}});
  EXPECT_EQ(fit.tiles.tile, 0u);
  EXPECT_TRUE(to_json(fit)["tiles"].is_null());
}

TEST(CallCost, EveryMeasurementComesOnceARoundAndNoneStaysInItsPlace) {
  std::map<std::size_t, double> places;
  for (std::size_t round = 0; round < 6; ++round) {
    const std::vector<std::size_t> order = balanced_order(18, round);
    EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), 18u);
    for (std::size_t i = 0; i < order.size(); ++i) places[order[i]] += static_cast<double>(i);
  }
  // Over three rotations, each forwards and backwards, every measurement stands in the middle on average.
  for (const auto& [item, sum] : places) EXPECT_DOUBLE_EQ(sum / 6, 8.5) << item;
  EXPECT_TRUE(balanced_order(0, 1).empty());
}

CallCostOptions quick() {
  CallCostOptions options;
  options.lengths = {3, 1, 2, 2};
  options.rounds = 4;
  return options;
}

TEST(CallCost, TimesEveryLengthOfEveryCurveInEveryRoundAfterAWarmUp) {
  std::vector<std::pair<std::size_t, std::size_t>> calls;
  const auto curves = sweep_calls(
      quick(), {"a", "b"}, [&](std::size_t curve, std::size_t tokens) { calls.emplace_back(curve, tokens); },
      [](std::string_view) {});
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(calls.size(), 2u * 3 * (1 + 4));
  EXPECT_EQ(calls.front().second, 3u);
  for (const CostCurve& curve : curves) {
    ASSERT_EQ(curve.points.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(curve.points[i].tokens, i + 1);
      EXPECT_EQ(curve.points[i].seconds.size(), 4u);
    }
  }
}

TEST(CallCost, AModelsCallsAreMeasuredPlottedAndReported) {
  CallCostOptions options = quick();
  options.lengths = {1, 17, 33};
  options.rounds = 3;
  options.threads = 1;
  options.precision = ops::Precision::fp32;
  options.curves = {{}, {{"gated_delta_rule", "vector"}}};
  const CallCostReport report =
      measure_call_cost({.model = {}, .base = {}, .shape = "kev-tiny"}, options, [](std::string_view) {});
  const nlohmann::ordered_json result = to_json(report);
  EXPECT_EQ(result["curves"].size(), 2u);
  EXPECT_EQ(result["curves"][1]["label"], "gated_delta_rule=vector");
  EXPECT_THAT(result["curves"][1]["forms"].get<std::string>(), testing::HasSubstr("gated_delta_rule=vector"));
  for (const auto& point : result["curves"][0]["points"]) {
    EXPECT_GT(point["min"].get<double>(), 0);
    EXPECT_EQ(point["samples"].size(), 3u);
  }
  EXPECT_EQ(call_cost_subject(report)["lengths"].size(), 3u);
  EXPECT_THAT(to_table(report), testing::HasSubstr("chosen"));
  const std::string svg = to_svg(report);
  EXPECT_THAT(svg, testing::StartsWith("<svg"));
  EXPECT_THAT(svg, testing::HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, testing::HasSubstr("gated_delta_rule=vector"));
  EXPECT_THAT(svg, testing::Not(testing::HasSubstr("nan")));
  EXPECT_THAT(to_html(report), testing::HasSubstr(svg));
}

TEST(CallCost, BadOptionsAreErrorsThatNameTheFlag) {
  const auto message = [](auto change) -> std::string {
    CallCostOptions options = quick();
    change(options);
    try {
      measure_call_cost({.model = {}, .base = {}, .shape = "kev-tiny"}, options, [](std::string_view) {});
    } catch (const Error& error) {
      return error.what();
    }
    return "measured without an error";
  };
  using testing::HasSubstr;
  EXPECT_THAT(message([](auto& o) { o.lengths = {1, 2}; }), HasSubstr("--lengths"));
  EXPECT_THAT(message([](auto& o) { o.lengths = {0, 1, 2}; }), HasSubstr("--lengths"));
  EXPECT_THAT(message([](auto& o) { o.lengths = {1, 2, 8193}; }), HasSubstr("--lengths"));
  EXPECT_THAT(message([](auto& o) { o.rounds = 2; }), HasSubstr("--rounds"));
  EXPECT_THAT(message([](auto& o) { o.rounds = 1001; }), HasSubstr("--rounds"));
  EXPECT_THAT(message([](auto& o) { o.curves = {}; }), HasSubstr("--forms"));
  EXPECT_THAT(message([](auto& o) { o.curves = {{}, {}}; }), HasSubstr("twice"));
  EXPECT_THAT(message([](auto& o) { o.curves = {{{"matmul", "magic"}}}; }), HasSubstr("magic"));
}

TEST(MeasuredModel, IsACheckpointOrAShapeAndNotBothOrNeither) {
  EXPECT_THROW(open_model({}), Error);
  EXPECT_THROW(open_model({.model = "run", .base = {}, .shape = "kev-tiny"}), Error);
  EXPECT_THROW(open_model({.model = {}, .base = {}, .shape = "kev-9t"}), Error);
  EXPECT_THROW(open_model({.model = "/no/such/run", .base = {}, .shape = {}}), Error);
  const std::string run = std::string(ASSAY_TEST_DATA) + "/kev-tiny-hybrid/run";
  const MeasuredModel model = open_model({.model = run, .base = {}, .shape = {}});
  EXPECT_EQ(model.description["name"], "kev-tiny-hybrid/run");
  EXPECT_EQ(model.description["identity"].get<std::string>().size(), 64u);
}

}  // namespace
}  // namespace assay::lab
