#include "decision/pointer_head.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "decision/tests/expect_error.hpp"

namespace assay::decision {
namespace {

std::vector<float> random_vector(std::size_t size, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0f, 0.2f);
  std::vector<float> values(size);
  for (float& value : values) value = normal(engine);
  return values;
}

PointerHead make_head(std::size_t dim, std::size_t hidden) {
  PointerHead head;
  head.dim = dim;
  head.hidden = hidden;
  head.q_weight = random_vector(dim * hidden, 1);
  head.q_bias = random_vector(dim, 2);
  head.k_weight = random_vector(dim * hidden, 3);
  head.k_bias = random_vector(dim, 4);
  head.temperature = 1.37f;
  return head;
}

/// The same readout in fp64, as its formula stands.
double exact_logit(const PointerHead& head, std::span<const float> decide, std::span<const float> option) {
  double sum = 0;
  for (std::size_t d = 0; d < head.dim; ++d) {
    double q = head.q_bias[d];
    double k = head.k_bias[d];
    for (std::size_t i = 0; i < head.hidden; ++i) {
      q += static_cast<double>(head.q_weight[d * head.hidden + i]) * decide[i];
      k += static_cast<double>(head.k_weight[d * head.hidden + i]) * option[i];
    }
    sum += q * k;
  }
  return sum / std::sqrt(static_cast<double>(head.dim)) / head.temperature;
}

TEST(PointerHead, EqualsTheFormulaAtSizesOffTheLaneCount) {
  device::ThreadPool threads(2);
  for (const auto& [dim, hidden] : {std::pair{64u, 256u}, {5u, 37u}, {1u, 1u}, {17u, 16u}, {3u, 15u}}) {
    const PointerHead head = make_head(dim, hidden);
    const auto decide = random_vector(hidden, 5);
    const auto options = random_vector(7 * hidden, 6);
    const auto logits = option_logits(head, decide, options, threads);
    ASSERT_EQ(logits.size(), 7u);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double exact = exact_logit(head, decide, std::span(options).subspan(i * hidden, hidden));
      EXPECT_NEAR(logits[i], exact, 1e-5 * std::max(1.0, std::fabs(exact)));
    }
  }
}

TEST(PointerHead, BitsDependOnNeitherThreadsNorTheOtherOptions) {
  const PointerHead head = make_head(64, 100);
  const auto decide = random_vector(100, 5);
  const auto options = random_vector(255 * 100, 6);
  device::ThreadPool one(1);
  device::ThreadPool three(3);
  const auto together = option_logits(head, decide, options, three);
  EXPECT_EQ(together, option_logits(head, decide, options, one));
  for (std::size_t i = 0; i < together.size(); i += 50) {
    EXPECT_EQ(option_logits(head, decide, std::span(options).subspan(i * 100, 100), one)[0], together[i]);
  }
}

TEST(PointerHead, WhatIsNotFiniteIsRefused) {
  device::ThreadPool threads(1);
  const PointerHead head = make_head(4, 8);
  auto options = random_vector(24, 6);
  options[8] = std::numeric_limits<float>::quiet_NaN();
  expect_error(ErrorKind::non_finite, {"logit of option 1"},
               [&] { option_logits(head, random_vector(8, 5), options, threads); });
}

TEST(PointerHead, HiddenVectorsOfAnotherSizeAreRefused) {
  device::ThreadPool threads(1);
  const PointerHead head = make_head(4, 8);
  expect_error(ErrorKind::mismatch, {"pointer head"},
               [&] { option_logits(head, random_vector(7, 5), random_vector(16, 6), threads); });
  expect_error(ErrorKind::mismatch, {"pointer head"},
               [&] { option_logits(head, random_vector(8, 5), random_vector(15, 6), threads); });
}

}  // namespace
}  // namespace assay::decision
