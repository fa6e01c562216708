#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/window/statistics.hpp"

/// Does a process whose call lengths keep changing keep growing?
///
/// What is measured: after every call, the bytes that the process holds of its own (HeldBytes: anonymous
/// pages, resident or swapped). malloc_trim is not called between calls: what an allocator keeps back is
/// memory that the user's machine does not have. It is called once after the last call, and what that gave
/// back is reported beside the verdict.
namespace assay::lab {

struct GrowthOptions {
  std::size_t shortest = 16;                  ///< tokens of the shortest call, 1 or more
  std::size_t longest = 256;                  ///< tokens of the longest call, at most 65,536
  std::size_t calls = 200;                    ///< measured calls, kMinCalls to kMaxCalls
  std::uint64_t seed = 1;                     ///< of the order of the lengths
  double threshold = 1024;                    ///< bytes a call; a process that gains more is growing. Over 0.
  double confidence = 0.95;                   ///< of the slope's interval, over 0.5 and under 1
  static constexpr std::size_t kWarmUp = 4;   ///< calls before the first sample: longest, shortest, twice
  static constexpr std::size_t kBlocks = 20;  ///< of consecutive calls, whose medians are compared
  static constexpr std::size_t kMinCalls = 40;  ///< two a block
  static constexpr std::size_t kMaxCalls = 100'000;
};

enum class GrowthVerdict { not_growing, growing, inconclusive };
std::string_view to_string(GrowthVerdict verdict);

/// A rise between the medians of two neighbouring blocks, larger than the threshold allows.
struct GrowthStep {
  std::size_t call = 0;  ///< the later block's first call, from 0
  double bytes = 0;
};

struct GrowthAnalysis {
  GrowthVerdict verdict = GrowthVerdict::inconclusive;
  double slope = 0;       ///< bytes a call: the median rise from block to block, divided by a block's calls
  Interval interval;      ///< of the slope
  double confidence = 0;  ///< that the interval really has, at least that asked for
  std::size_t block_calls = 0;
  std::vector<double> block_medians;  ///< bytes
  std::vector<GrowthStep> steps;      ///< every rise over threshold · block_calls
  double total = 0;                   ///< last block's median − first block's, bytes
};

/// The verdict on bytes held after each call, in order.
///
/// The samples are cut into kBlocks blocks; the slope is the median of the rises between neighbouring blocks'
/// medians, its interval the distribution-free one between order statistics (the sign test's: David and
/// Nagaraja, "Order Statistics", 2003, section 7.1). Growing: the whole interval is over the threshold. Not
/// growing: all of it is at or under. Else inconclusive: more calls would tell. Of the 19 rises up to four
/// may be of any size without moving the interval (at confidence 0.95), so a late one-off allocation is no
/// growth, while a leak, which shows in most blocks, is.
///
/// Throws Error(invalid_argument) for fewer than kMinCalls samples or options out of range.
GrowthAnalysis analyze_growth(const std::vector<double>& bytes, const GrowthOptions& options);

/// The lengths of the measured calls: every length from shortest to longest once, in an order drawn from the
/// seed, then all again in another order, until there are enough. Lengths of a round are all different, so
/// what is kept per length keeps coming.
std::vector<std::size_t> growth_lengths(const GrowthOptions& options);

struct GrowthReport {
  GrowthOptions options;
  std::vector<std::size_t> lengths;  ///< of the measured calls
  std::size_t distinct_lengths = 0;
  double before = 0;          ///< bytes held before the warm-up
  std::vector<double> bytes;  ///< held after each measured call
  double trimmed = 0;         ///< bytes that malloc_trim gave back after the last call
  GrowthAnalysis analysis;
};

/// Warms up, then makes the calls and samples after each. `call` runs one call of so many tokens; `held` says
/// how many bytes the process holds. Throws Error(invalid_argument) naming an option out of range, and what
/// `call` throws.
GrowthReport measure_growth(const GrowthOptions& options, const std::function<void(std::size_t)>& call,
                            const std::function<std::size_t()>& held);

/// A growth receipt's result:
///   {"verdict", "slope_bytes_per_call", "interval": {"low", "high", "confidence"},
///   "threshold_bytes_per_call",
///    "total_bytes", "steps": [{"call", "bytes"}], "block_calls", "block_medians_bytes", "warm_up_calls",
///    "calls", "distinct_lengths", "shortest", "longest", "seed", "before_bytes", "trimmed_bytes",
///    "measures", "lengths": [tokens], "held_bytes": [after each call]}
nlohmann::ordered_json to_json(const GrowthReport& report);
std::string to_table(const GrowthReport& report);

}  // namespace assay::lab
