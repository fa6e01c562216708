#include "decision/pointer_head.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "base/error.hpp"

namespace assay::decision {
namespace {

constexpr std::size_t kSums = 16;

/// weight · x + bias, [dim].
std::vector<float> project(std::span<const float> weight, std::span<const float> bias,
                           std::span<const float> x) {
  std::vector<float> y(bias.size());
  for (std::size_t row = 0; row < y.size(); ++row) {
    y[row] = dot(weight.subspan(row * x.size(), x.size()), x) + bias[row];
  }
  return y;
}

void check_sizes(const PointerHead& head, std::span<const float> decide, std::span<const float> options) {
  if (decide.size() == head.hidden && options.size() % head.hidden == 0) return;
  throw Error(
      ErrorKind::mismatch,
      {"pointer head", fmt::format("hidden vectors of {} and {} values", decide.size(), options.size()),
       fmt::format("multiples of {}", head.hidden), "the head and the backbone are of different models"});
}

}  // namespace

float dot(std::span<const float> a, std::span<const float> b) {
  std::array<float, kSums> sums{};
  const std::size_t whole = a.size() - a.size() % kSums;
  for (std::size_t i = 0; i < whole; i += kSums) {
    for (std::size_t lane = 0; lane < kSums; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (std::size_t i = whole; i < a.size(); ++i) sums[i - whole] += a[i] * b[i];
  for (std::size_t half = kSums / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

std::vector<float> option_logits(const PointerHead& head, std::span<const float> decide,
                                 std::span<const float> options, device::ThreadPool& threads) {
  check_sizes(head, decide, options);
  const std::vector<float> query = project(head.q_weight, head.q_bias, decide);
  const float root = std::sqrt(static_cast<float>(head.dim));
  std::vector<float> logits(options.size() / head.hidden);
  threads.parallel_for(logits.size(), [&](std::size_t option, std::size_t) {
    const auto hidden = options.subspan(option * head.hidden, head.hidden);
    const std::vector<float> key = project(head.k_weight, head.k_bias, hidden);
    logits[option] = dot(key, query) / root / head.temperature;
  });
  const auto bad = std::find_if_not(logits.begin(), logits.end(), [](float z) { return std::isfinite(z); });
  if (bad != logits.end()) {
    throw Error(ErrorKind::non_finite,
                {fmt::format("logit of option {}", bad - logits.begin()), fmt::format("{}", *bad),
                 "a finite number", "run `assay inspect` on the checkpoint, or ask with --precision fp32"});
  }
  return logits;
}

}  // namespace assay::decision
