#include "lab/cost/growth.hpp"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"

namespace assay::lab {
namespace {

constexpr std::size_t kLongestCall = 65'536;

void check(bool holds, std::string_view where, std::string found, std::string expected) {
  if (holds) return;
  throw Error(ErrorKind::invalid_argument, {std::string(where), std::move(found), std::move(expected)});
}

void check(const GrowthOptions& options) {
  check(options.shortest >= 1, "shortest call", fmt::format("{}", options.shortest), "1 token or more");
  check(options.longest > options.shortest && options.longest <= kLongestCall, "longest call",
        fmt::format("{}", options.longest),
        fmt::format("more than the shortest, {}, at most {}", options.shortest, kLongestCall));
  check(options.calls >= GrowthOptions::kMinCalls && options.calls <= GrowthOptions::kMaxCalls, "calls",
        fmt::format("{}", options.calls),
        fmt::format("{} to {}", GrowthOptions::kMinCalls, GrowthOptions::kMaxCalls));
  check(std::isfinite(options.threshold) && options.threshold > 0, "threshold",
        fmt::format("{}", options.threshold), "bytes a call, over 0");
  check(options.confidence > 0.5 && options.confidence < 1, "confidence",
        fmt::format("{}", options.confidence), "over 0.5 and under 1");
}

/// splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014): the same order
/// on every machine, which the standard library's shuffle does not promise.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void shuffle(std::span<std::size_t> values, std::uint64_t& state) {
  for (std::size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[next_random(state) % left]);
  }
}

/// The most extreme order statistics that still bound the median at the confidence asked for.
struct OrderBounds {
  std::size_t skipped = 0;  ///< values left out at either end
  double confidence = 0;
};

OrderBounds median_bounds(std::size_t count, double confidence) {
  // P(the median lies outside the values left when k are skipped at either end) = 2 · P(Binomial(n, ½) ≤ k).
  double choose = std::exp2(-static_cast<double>(count));
  double outside = 2 * choose;
  OrderBounds bounds{0, 1 - outside};
  for (std::size_t k = 1; 2 * k < count; ++k) {
    choose *= static_cast<double>(count - k + 1) / static_cast<double>(k);
    outside += 2 * choose;
    if (1 - outside < confidence) break;
    bounds = {k, 1 - outside};
  }
  return bounds;
}

std::vector<double> medians_of_blocks(const std::vector<double>& bytes, std::size_t block_calls) {
  std::vector<double> medians;
  // What does not fill a block is left out at the beginning, nearest to the warm-up.
  std::size_t first = bytes.size() - GrowthOptions::kBlocks * block_calls;
  for (; first < bytes.size(); first += block_calls) {
    medians.push_back(median(std::span(bytes).subspan(first, block_calls)));
  }
  return medians;
}

GrowthVerdict judge(const Interval& interval, double threshold) {
  if (interval.low > threshold) return GrowthVerdict::growing;
  return interval.high <= threshold ? GrowthVerdict::not_growing : GrowthVerdict::inconclusive;
}

double give_back_free_memory(const std::function<std::size_t()>& held) {
  const auto before = static_cast<double>(held());
  ::malloc_trim(0);
  return before - static_cast<double>(held());
}

double kib(double bytes) {
  return bytes / 1024;
}

}  // namespace

std::string_view to_string(GrowthVerdict verdict) {
  switch (verdict) {
    case GrowthVerdict::not_growing:
      return "not growing";
    case GrowthVerdict::growing:
      return "growing";
    case GrowthVerdict::inconclusive:
      break;
  }
  return "inconclusive";
}

GrowthAnalysis analyze_growth(const std::vector<double>& bytes, const GrowthOptions& options) {
  check(options);
  check(bytes.size() >= GrowthOptions::kMinCalls, "samples of held bytes", fmt::format("{}", bytes.size()),
        fmt::format("{} or more", GrowthOptions::kMinCalls));
  GrowthAnalysis analysis;
  analysis.block_calls = bytes.size() / GrowthOptions::kBlocks;
  analysis.block_medians = medians_of_blocks(bytes, analysis.block_calls);
  const auto block_calls = static_cast<double>(analysis.block_calls);
  std::vector<double> rises;
  for (std::size_t i = 1; i < analysis.block_medians.size(); ++i) {
    const double rise = analysis.block_medians[i] - analysis.block_medians[i - 1];
    rises.push_back(rise);
    if (rise <= options.threshold * block_calls) continue;
    const std::size_t left_out = bytes.size() - GrowthOptions::kBlocks * analysis.block_calls;
    analysis.steps.push_back({left_out + i * analysis.block_calls, rise});
  }
  std::sort(rises.begin(), rises.end());
  const OrderBounds bounds = median_bounds(rises.size(), options.confidence);
  analysis.slope = median(rises) / block_calls;
  analysis.interval = {rises[bounds.skipped] / block_calls,
                       rises[rises.size() - 1 - bounds.skipped] / block_calls};
  analysis.confidence = bounds.confidence;
  analysis.total = analysis.block_medians.back() - analysis.block_medians.front();
  analysis.verdict = judge(analysis.interval, options.threshold);
  return analysis;
}

std::vector<std::size_t> growth_lengths(const GrowthOptions& options) {
  check(options);
  std::vector<std::size_t> round(options.longest - options.shortest + 1);
  std::iota(round.begin(), round.end(), options.shortest);
  std::vector<std::size_t> lengths;
  lengths.reserve(options.calls);
  for (std::uint64_t state = options.seed; lengths.size() < options.calls;) {
    shuffle(round, state);
    const std::size_t count = std::min(round.size(), options.calls - lengths.size());
    lengths.insert(lengths.end(), round.begin(), round.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return lengths;
}

GrowthReport measure_growth(const GrowthOptions& options, const std::function<void(std::size_t)>& call,
                            const std::function<std::size_t()>& held) {
  GrowthReport report;
  report.options = options;
  report.lengths = growth_lengths(options);
  report.distinct_lengths = std::min(options.calls, options.longest - options.shortest + 1);
  // Written once, so that the samples' own pages are there before the first of them.
  report.bytes.assign(options.calls, 0);
  report.before = static_cast<double>(held());
  for (std::size_t i = 0; i < GrowthOptions::kWarmUp; ++i) {
    call(i % 2 == 0 ? options.longest : options.shortest);
  }
  for (std::size_t i = 0; i < options.calls; ++i) {
    call(report.lengths[i]);
    report.bytes[i] = static_cast<double>(held());
  }
  report.trimmed = give_back_free_memory(held);
  report.analysis = analyze_growth(report.bytes, options);
  return report;
}

nlohmann::ordered_json to_json(const GrowthReport& report) {
  const GrowthAnalysis& analysis = report.analysis;
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const GrowthStep& step : analysis.steps) steps.push_back({{"call", step.call}, {"bytes", step.bytes}});
  return {{"verdict", to_string(analysis.verdict)},
          {"slope_bytes_per_call", analysis.slope},
          {"interval",
           {{"low", analysis.interval.low},
            {"high", analysis.interval.high},
            {"confidence", analysis.confidence}}},
          {"threshold_bytes_per_call", report.options.threshold},
          {"total_bytes", analysis.total},
          {"steps", std::move(steps)},
          {"block_calls", analysis.block_calls},
          {"block_medians_bytes", analysis.block_medians},
          {"warm_up_calls", GrowthOptions::kWarmUp},
          {"calls", report.options.calls},
          {"distinct_lengths", report.distinct_lengths},
          {"shortest", report.options.shortest},
          {"longest", report.options.longest},
          {"seed", report.options.seed},
          {"before_bytes", report.before},
          {"trimmed_bytes", report.trimmed},
          {"measures", "anonymous bytes of the process, resident or swapped, after each call"},
          {"lengths", report.lengths},
          {"held_bytes", report.bytes}};
}

std::string to_table(const GrowthReport& report) {
  const GrowthAnalysis& analysis = report.analysis;
  fmt::memory_buffer out;
  const auto line = std::back_inserter(out);
  fmt::format_to(line,
                 "{} calls of {} to {} tokens, {} different lengths, after {} warm-up calls\n"
                 "held: {:.0f} KiB before, {:.0f} KiB after the first call, {:.0f} KiB after the last "
                 "({:+.0f} KiB; malloc_trim gave back {:.0f} KiB)\n",
                 report.options.calls, report.options.shortest, report.options.longest,
                 report.distinct_lengths, GrowthOptions::kWarmUp, kib(report.before),
                 kib(report.bytes.front()), kib(report.bytes.back()),
                 kib(report.bytes.back() - report.bytes.front()), kib(report.trimmed));
  fmt::format_to(line, "slope: {:.1f} bytes a call, {:.1f} % interval {:.1f} to {:.1f}; threshold {:.0f}\n",
                 analysis.slope, 100 * analysis.confidence, analysis.interval.low, analysis.interval.high,
                 report.options.threshold);
  for (const GrowthStep& step : analysis.steps) {
    fmt::format_to(line, "rise of {:.0f} KiB about call {}\n", kib(step.bytes), step.call);
  }
  fmt::format_to(line, "verdict: {}\n", to_string(analysis.verdict));
  return fmt::to_string(out);
}

}  // namespace assay::lab
