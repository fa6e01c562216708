#include "lab/window/pairs.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"

namespace assay::lab {
namespace {

struct Times {
  std::vector<double> baseline;
  std::vector<double> candidate;
  double ratio() const { return median(baseline) / median(candidate); }
};

/// What keeps the candidate from being called faster; empty where nothing does. For slower, times are
/// swapped.
std::vector<std::string> missing_for_faster(const PairResult& result, const PairRule& rule) {
  std::vector<std::string> missing;
  if (result.pairs < rule.min_pairs) {
    missing.push_back(fmt::format("{}, {} are needed", counted(result.pairs, "pair"), rule.min_pairs));
  }
  if (!(result.interval.low > 1)) {
    missing.push_back(fmt::format("the {:.0f} % interval of the ratio holds 1", 100 * rule.confidence));
  }
  if (static_cast<double>(result.wins) < rule.min_wins * static_cast<double>(result.pairs)) {
    missing.push_back(fmt::format("the faster one won {} of {} pairs, {:.0f} % are needed", result.wins,
                                  result.pairs, 100 * rule.min_wins));
  }
  if (const double chance = sign_test(result.wins, result.losses); chance > 1 - rule.confidence) {
    missing.push_back(fmt::format("{} won and {} lost would come by chance with probability {:.2f}",
                                  result.wins, result.losses, chance));
  }
  if (result.ratio < rule.min_ratio) {
    missing.push_back(
        fmt::format("a ratio of {:.3f}, {:.3f} is the least that counts", result.ratio, rule.min_ratio));
  }
  return missing;
}

PairResult mirrored(PairResult result) {
  std::swap(result.wins, result.losses);
  result.ratio = 1 / result.ratio;
  result.interval = {1 / result.interval.high, 1 / result.interval.low};
  return result;
}

bool processes_disagree(const std::map<std::size_t, Times>& by_process) {
  bool above = false;
  bool below = false;
  for (const auto& [process, times] : by_process) (times.ratio() > 1 ? above : below) = true;
  return above && below;
}

void decide(PairResult& result, const std::map<std::size_t, Times>& by_process, const PairRule& rule) {
  const bool towards_faster = result.ratio >= 1;
  result.why = missing_for_faster(towards_faster ? result : mirrored(result), rule);
  if (processes_disagree(by_process)) {
    result.why.emplace_back(
        "the processes disagree: in some this form is the faster one, in others the slower");
  }
  if (result.why.empty()) result.verdict = towards_faster ? PairVerdict::faster : PairVerdict::slower;
  if (std::max(result.ratio, 1 / result.ratio) > rule.suspicious_ratio) {
    result.suspicious = true;
    result.why.push_back(
        fmt::format("a ratio beyond {:g}: check that both forms did the same work before believing it",
                    rule.suspicious_ratio));
  }
}

}  // namespace

std::string_view to_string(PairVerdict verdict) {
  switch (verdict) {
    case PairVerdict::faster:
      return "faster";
    case PairVerdict::slower:
      return "slower";
    case PairVerdict::inconclusive:
      return "inconclusive";
  }
  return "";
}

PairResult compare_pairs(std::span<const MatchedPair> pairs, const PairRule& rule) {
  Times all;
  std::map<std::size_t, Times> by_process;
  PairResult result;
  result.pairs = pairs.size();
  for (const MatchedPair& pair : pairs) {
    for (Times* times : {&all, &by_process[pair.process]}) {
      times->baseline.push_back(pair.baseline);
      times->candidate.push_back(pair.candidate);
    }
    result.wins += pair.candidate < pair.baseline ? 1 : 0;
    result.losses += pair.candidate > pair.baseline ? 1 : 0;
  }
  result.interval =
      paired_ratio_interval(all.baseline, all.candidate,
                            {.confidence = rule.confidence, .resamples = rule.resamples, .seed = rule.seed});
  result.ratio = all.ratio();
  decide(result, by_process, rule);
  return result;
}

}  // namespace assay::lab
