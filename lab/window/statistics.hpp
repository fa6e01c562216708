#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Statistics of measured times and sizes. Everything here is deterministic: what is drawn at random is drawn
/// from a generator that the caller seeds, by arithmetic that is the same on every machine.
///
/// Every function throws Error(invalid_argument) for fewer values than it needs or lists of unequal length,
/// and Error(non_finite) for a value that is NaN or infinite.
namespace assay::lab {

/// The value below which a share `q` in [0, 1] of the values lies, linear between order statistics: at
/// position q·(n − 1) of the sorted list (Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996,
/// definition 7).
double quantile(std::span<const double> values, double q);

double median(std::span<const double> values);

/// 1.4826 · the median distance from the median: the standard deviation where the values are normal, and not
/// moved by a minority of outliers. In the values' unit; 0 for a single value.
double robust_spread(std::span<const double> values);

struct Summary {
  std::size_t count = 0;
  double median = 0;
  double p10 = 0;
  double p90 = 0;
  double min = 0;
  double max = 0;
  double spread = 0;  ///< robust_spread
};
Summary summarize(std::span<const double> values);

struct Interval {
  double low = 0;
  double high = 0;
  bool contains(double value) const { return low <= value && value <= high; }
};

/// y ≈ intercept + slope · x by least squares.
struct LineFit {
  std::size_t count = 0;
  double intercept = 0;
  double slope = 0;
  double residual_rms = 0;     ///< √(Σ residual² / count)
  double slope_error = 0;      ///< standard error, with count − 2 degrees of freedom; 0 for two points
  double intercept_error = 0;  ///< likewise
  Interval slope_interval;     ///< Student's t at the confidence asked for; the point itself for two points
  double at(double x) const { return intercept + slope * x; }
};

/// At least two points with two different x. `confidence` is in (0, 1).
LineFit fit_line(std::span<const double> x, std::span<const double> y, double confidence = 0.95);

/// A line over the points with first_x ≤ x ≤ last_x.
struct Piece {
  double first_x = 0;
  double last_x = 0;
  LineFit line;
};

/// Lines over consecutive runs of the points, x ascending.
struct PiecewiseFit {
  std::vector<Piece> pieces;
  double residual_rms = 0;  ///< over all points
};

/// The number of pieces, at most `max_pieces`, and their ends that make n·ln(Σ residual² / n) + 3·p·ln(n)
/// least over p pieces (Yao, "Estimating the number of change-points via Schwarz' criterion", 1988: slope,
/// intercept and end are each a parameter). A piece has at least `min_points` points (three or more) and two
/// different x; points of one x are never parted. One piece is what `fit_line` gives.
/// At most 2,000 points and 16 pieces: the search takes time quadratic in the points.
PiecewiseFit fit_piecewise(std::span<const double> x, std::span<const double> y, std::size_t max_pieces = 4,
                           std::size_t min_points = 4);

/// How an interval is drawn.
struct Bootstrap {
  double confidence = 0.95;
  std::size_t resamples = 2000;  ///< 100 to 1,000,000
  std::uint64_t seed = 1;
};

/// Percentile interval of median(numerator) / median(denominator), each list resampled on its own (Efron and
/// Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13). All values are positive.
Interval ratio_interval(std::span<const double> numerator, std::span<const double> denominator,
                        const Bootstrap& bootstrap = {});

/// The same for matched pairs, of which element i of both lists is one: pairs are drawn whole, so what both
/// halves of a pair share (a slow minute of the machine) cancels. Lists are equally long.
Interval paired_ratio_interval(std::span<const double> numerator, std::span<const double> denominator,
                               const Bootstrap& bootstrap = {});

/// The probability that fair coins fall at least as unevenly as `wins` to `losses`, either way round; 1 for
/// none.
double sign_test(std::size_t wins, std::size_t losses);

/// The t that Student's distribution exceeds in absolute value with probability 1 − confidence.
double student_t(double confidence, std::size_t degrees_of_freedom);

}  // namespace assay::lab
