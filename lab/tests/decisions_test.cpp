#include "lab/gate/decisions.hpp"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::lab {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr DecisionBar kBar;

RowComparison compare(const std::vector<double>& oracle, const std::vector<double>& found) {
  return compare_row("r.q", oracle, found, kBar);
}

TEST(Decisions, ARowIsANearTieByTheOraclesMarginAlone) {
  EXPECT_TRUE(compare({0.505, 0.495}, {0.9, 0.1}).near_tie);
  EXPECT_FALSE(compare({0.52, 0.48}, {0.5, 0.5}).near_tie);
  EXPECT_TRUE(compare({0.1, 0.45, 0.45}, {1, 0, 0}).near_tie);
  EXPECT_FALSE(compare({1.0}, {1.0}).near_tie);
}

TEST(Decisions, PassesWithinTheBarAndCountsNearTiesApart) {
  const auto verdict = judge({compare({0.8, 0.2}, {0.801, 0.199}), compare({0.505, 0.495}, {0.498, 0.502}),
                              compare({0.505, 0.495}, {0.505, 0.495}), compare({1.0}, {1.0})},
                             {.mean_delta = 0.01});
  EXPECT_TRUE(verdict.pass()) << testing::PrintToString(verdict.failures);
  EXPECT_EQ(verdict.rows, 4u);
  EXPECT_EQ(verdict.decided, 2u);
  EXPECT_EQ(verdict.decided_agreeing, 2u);
  EXPECT_EQ(verdict.near_ties, 2u);
  EXPECT_EQ(verdict.near_ties_agreeing, 1u);
  EXPECT_NEAR(verdict.max_delta, 0.007, 1e-12);
  EXPECT_NEAR(verdict.mean_of_row_means, 0.002, 1e-12);
}

TEST(Decisions, EveryPartOfTheBarCanFailByItself) {
  EXPECT_THAT(judge({}, kBar).failures, Contains("no rows"));
  // 0.5105 against 0.4895 is decided, and a move within max |Δp| turns it.
  EXPECT_THAT(judge({compare({0.5105, 0.4895}, {0.4995, 0.5005})}, {.mean_delta = 1}).failures,
              Contains(HasSubstr("another option")));
  EXPECT_THAT(judge({compare({0.8, 0.2}, {0.75, 0.25})}, {.mean_delta = 1}).failures,
              Contains(HasSubstr("max |Δp|")));
  EXPECT_THAT(judge({compare({0.8, 0.2}, {0.79, 0.21})}, kBar).failures,
              Contains(HasSubstr("mean of row means")));
  EXPECT_THAT(judge({compare({0.8, 0.2}, {NAN, 0.2})}, kBar).failures, Contains(HasSubstr("not finite")));
  RowComparison tokens = compare({0.8, 0.2}, {0.8, 0.2});
  tokens.token_difference = "state ids: 3 at 1, the oracle has 4";
  EXPECT_THAT(judge({tokens}, kBar).failures, Contains(HasSubstr("r.q: state ids")));
}

TEST(Decisions, TheExactPathHasTheTighterBar) {
  EXPECT_EQ(default_bar(ops::Precision::fp32).max_delta, 1e-4);
  EXPECT_EQ(default_bar(ops::Precision::bf16).max_delta, 0.02);
}

}  // namespace
}  // namespace assay::lab
