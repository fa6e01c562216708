#include "music/token_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace assay::music {
namespace {

struct Candidate {
  float logit;
  std::size_t index;
};

bool more_likely(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.index < b.index);
}

std::vector<Candidate> allowed_candidates(std::span<const float> logits) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == std::numeric_limits<float>::infinity()) {
      throw Error(ErrorKind::non_finite, {.where = "logit " + std::to_string(i),
                                          .found = "a NaN or infinity",
                                          .advice = "the weights overflow: run with --precision fp32"});
    }
    if (std::isfinite(logits[i])) candidates.push_back({logits[i], i});
  }
  if (candidates.empty()) {
    throw Error(ErrorKind::non_finite, {.where = "logits", .found = "none that is finite"});
  }
  return candidates;
}

/// Leaves the candidates that top-k and top-p keep, the most likely first.
void keep_likely(std::vector<Candidate>& candidates, const TokenSampling& sampling) {
  std::ranges::sort(candidates, more_likely);
  if (sampling.top_k > 0 && candidates.size() > sampling.top_k) {
    // Ties with the last one kept stay, as a threshold on the logit would have it.
    const float least = candidates[sampling.top_k - 1].logit;
    candidates.erase(std::ranges::find_if(candidates, [&](const Candidate& c) { return c.logit < least; }),
                     candidates.end());
  }
  if (sampling.top_p >= 1) return;
  const double top = static_cast<double>(candidates.front().logit);
  double total = 0;
  for (const Candidate& c : candidates) total += std::exp(static_cast<double>(c.logit) - top);
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates.size() && sum <= static_cast<double>(sampling.top_p) * total) {
    sum += std::exp(static_cast<double>(candidates[kept++].logit) - top);
  }
  candidates.resize(kept);
}

[[noreturn]] void bad_sampling(const char* field, float found, const char* expected) {
  throw Error(ErrorKind::invalid_argument,
              {.where = field, .found = std::to_string(found), .expected = expected});
}

}  // namespace

void check_token_sampling(const TokenSampling& sampling) {
  const auto in_range = [](float value, float least) { return std::isfinite(value) && value >= least; };
  constexpr float kHottest = 100;
  if (!in_range(sampling.temperature, 0) || sampling.temperature > kHottest) {
    bad_sampling("temperature", sampling.temperature, "0 to 100");
  }
  if (!in_range(sampling.top_p, 0) || sampling.top_p == 0 || sampling.top_p > 1) {
    bad_sampling("top_p", sampling.top_p, "above 0, at most 1");
  }
  if (!in_range(sampling.repetition_penalty, 0) || sampling.repetition_penalty == 0) {
    bad_sampling("repetition_penalty", sampling.repetition_penalty, "above 0");
  }
}

void guide(std::span<float> guided, std::span<const float> unguided, float scale) {
  for (std::size_t i = 0; i < guided.size(); ++i) {
    if (guided[i] == -std::numeric_limits<float>::infinity()) continue;
    guided[i] = unguided[i] + scale * (guided[i] - unguided[i]);
  }
}

void penalize(std::span<float> logits, std::span<const std::size_t> seen, float penalty) {
  if (penalty == 1) return;
  std::vector<std::size_t> once(seen.begin(), seen.end());
  std::ranges::sort(once);
  once.erase(std::unique(once.begin(), once.end()), once.end());
  for (const std::size_t index : once) {
    float& logit = logits[index];
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

std::size_t draw_token(std::span<const float> logits, const TokenSampling& sampling, double u) {
  std::vector<Candidate> candidates = allowed_candidates(logits);
  if (sampling.temperature == 0) return std::ranges::min_element(candidates, more_likely)->index;
  keep_likely(candidates, sampling);
  const double top = static_cast<double>(candidates.front().logit);
  const double temperature = static_cast<double>(sampling.temperature);
  std::vector<double> sums;
  sums.reserve(candidates.size());
  double sum = 0;
  for (const Candidate& c : candidates) {
    sum += std::exp((static_cast<double>(c.logit) - top) / temperature);
    sums.push_back(sum);
  }
  const auto drawn = std::ranges::upper_bound(sums, u * sum);
  const auto at = std::min(static_cast<std::size_t>(drawn - sums.begin()), candidates.size() - 1);
  return candidates[at].index;
}

}  // namespace assay::music
