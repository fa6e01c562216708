#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/window/statistics.hpp"

namespace assay::lab {

/// When one form counts as faster than another. The default follows from tests on planted data
/// (lab/tests/pairs_test.cpp): noise alone is called a difference in fewer than one comparison of twenty.
struct PairRule {
  /// Of the interval of the ratio, which must leave 1 out, and of the sign test of the wins: with few pairs
  /// the bootstrap alone is too sure of itself.
  double confidence = 0.95;
  double min_wins = 0.75;        ///< share of the pairs that the faster form must win
  double min_ratio = 1.02;       ///< least ratio that matters
  std::size_t min_pairs = 8;     ///< fewer pairs decide nothing
  double suspicious_ratio = 10;  ///< a ratio beyond this is a question, not a result
  std::size_t resamples = 2000;
  std::uint64_t seed = 1;
};

enum class PairVerdict { faster, slower, inconclusive };
std::string_view to_string(PairVerdict verdict);

/// Times of two forms on one item, taken next to each other: process p and repetition r of both.
struct MatchedPair {
  std::size_t process = 0;
  double baseline = 0;
  double candidate = 0;
};

struct PairResult {
  std::size_t pairs = 0;
  std::size_t wins = 0;    ///< pairs in which the candidate took less time
  std::size_t losses = 0;  ///< and in which it took more
  double ratio = 1;        ///< median of the baseline ÷ median of the candidate: above 1 is faster
  Interval interval;       ///< of the ratio, pairs drawn whole
  PairVerdict verdict = PairVerdict::inconclusive;
  bool suspicious = false;
  std::vector<std::string> why;  ///< what an inconclusive verdict lacks; what makes a ratio suspicious
};

/// The candidate is faster where the interval leaves 1 out above, the wins are enough and more than chance
/// gives, the ratio is enough, and every process alone has a ratio on the same side; slower by the mirror
/// image; anything less is inconclusive and says why. Throws Error(invalid_argument) for no pairs or a time
/// that is not above zero.
PairResult compare_pairs(std::span<const MatchedPair> pairs, const PairRule& rule);

}  // namespace assay::lab
