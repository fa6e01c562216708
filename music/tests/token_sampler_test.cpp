#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/error.hpp"
#include "music/token_sampler.hpp"

namespace assay::music {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

/// How often each index is drawn over evenly spread uniform numbers.
std::vector<double> shares(const std::vector<float>& logits, const TokenSampling& sampling) {
  std::vector<double> share(logits.size());
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) share[draw_token(logits, sampling, (i + 0.5) / kDraws)] += 1.0 / kDraws;
  return share;
}

TEST(TokenSampler, DrawsByTheSoftmaxAtTheTemperature) {
  const std::vector<float> logits{1.0f, kNever, 3.0f, -2.0f};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    const auto found = shares(logits, {.temperature = temperature, .top_p = 1});
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit) / temperature);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      EXPECT_NEAR(found[i], std::exp(static_cast<double>(logits[i]) / temperature) / total, 2e-4) << i;
    }
  }
}

TEST(TokenSampler, TopPKeepsTheTokenThatCrossesIt) {
  // Probabilities 0.5, 0.3, 0.2.
  const std::vector<float> logits{std::log(0.2f), std::log(0.5f), std::log(0.3f)};
  EXPECT_NEAR(shares(logits, {.temperature = 1, .top_p = 0.4f})[1], 1, 1e-9);
  const auto two = shares(logits, {.temperature = 1, .top_p = 0.6f});
  EXPECT_EQ(two[0], 0);
  EXPECT_NEAR(two[1], 0.5 / 0.8, 2e-4);
  EXPECT_GT(shares(logits, {.temperature = 1, .top_p = 0.85f})[0], 0.19);
}

TEST(TokenSampler, TopKKeepsTheMostLikelyAndTheirEquals) {
  const std::vector<float> logits{0, 2, 1, 1, -1};
  const auto one = shares(logits, {.temperature = 1, .top_k = 1, .top_p = 1});
  EXPECT_NEAR(one[1], 1, 1e-9);
  const auto two = shares(logits, {.temperature = 1, .top_k = 2, .top_p = 1});
  EXPECT_EQ(two[0], 0);
  EXPECT_GT(two[2], 0);
  EXPECT_NEAR(two[2], two[3], 1e-4);
}

TEST(TokenSampler, TemperatureZeroTakesTheLargestAndTheLowestOfEquals) {
  EXPECT_EQ(draw_token(std::vector<float>{1, 5, 5, 2}, {.temperature = 0}, 0.99), 1u);
  EXPECT_EQ(draw_token(std::vector<float>{kNever, -7}, {.temperature = 0}, 0), 1u);
}

TEST(TokenSampler, PenaltyWeakensEachSeenTokenOnce) {
  std::vector<float> logits{2, -2, 3};
  penalize(logits, std::array<std::size_t, 4>{0, 1, 1, 0}, 2);
  EXPECT_EQ(logits, (std::vector<float>{1, -4, 3}));
}

TEST(TokenSampler, GuidanceOfOneIsNoGuidance) {
  std::vector<float> guided{1, 2};
  guide(guided, std::array<float, 2>{5, 7}, 1);
  EXPECT_EQ(guided, (std::vector<float>{1, 2}));
  guide(guided, std::array<float, 2>{0, 1}, 2);
  EXPECT_EQ(guided, (std::vector<float>{2, 3}));
}

TEST(TokenSampler, TheEndsOfTheUniformRangeAreInside) {
  std::mt19937 rng(3);
  std::normal_distribution<float> normal(0, 5);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(1 + rng() % 50);
    for (float& logit : logits) logit = normal(rng);
    for (const double u : {0.0, 0.5, std::nextafter(1.0, 0.0)}) {
      EXPECT_LT(draw_token(logits, {}, u), logits.size());
    }
  }
}

TEST(TokenSampler, RefusesWhatHasNoMeaning) {
  const auto kind_of = [](const auto& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::internal;
  };
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(kind_of([&] { draw_token(std::vector<float>{0, bad}, {}, 0.5); }), ErrorKind::non_finite);
    EXPECT_EQ(kind_of([&] { check_token_sampling({.temperature = bad}); }), ErrorKind::invalid_argument);
    EXPECT_EQ(kind_of([&] { check_token_sampling({.top_p = bad}); }), ErrorKind::invalid_argument);
    EXPECT_EQ(kind_of([&] { check_token_sampling({.repetition_penalty = bad}); }),
              ErrorKind::invalid_argument);
  }
  EXPECT_EQ(kind_of([&] { draw_token(std::vector<float>{kNever, kNever}, {}, 0.5); }), ErrorKind::non_finite);
  EXPECT_EQ(kind_of([&] { draw_token({}, {}, 0.5); }), ErrorKind::non_finite);
  EXPECT_EQ(kind_of([&] { check_token_sampling({.temperature = -1}); }), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of([&] { check_token_sampling({.top_p = 0}); }), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of([&] { check_token_sampling({.top_p = 1.01f}); }), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of([&] { check_token_sampling({.repetition_penalty = 0}); }), ErrorKind::invalid_argument);
  EXPECT_NO_THROW(check_token_sampling({}));
}

}  // namespace
}  // namespace assay::music
