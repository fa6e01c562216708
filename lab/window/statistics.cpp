#include "lab/window/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"

namespace assay::lab {
namespace {

constexpr std::size_t kMaxPiecewisePoints = 2000;
constexpr std::size_t kMaxPieces = 16;
constexpr std::size_t kMinResamples = 100;
constexpr std::size_t kMaxResamples = 1'000'000;
constexpr double kMadToDeviation = 1.4826;  // 1 / Φ⁻¹(3/4)

[[noreturn]] void refuse_samples(std::string found, std::string expected) {
  throw Error(ErrorKind::invalid_argument,
              {.where = "statistics", .found = std::move(found), .expected = std::move(expected)});
}

void require_finite(std::span<const double> values, std::size_t at_least) {
  if (values.size() < at_least) {
    refuse_samples(fmt::format("{} values", values.size()), fmt::format("at least {}", at_least));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw Error(ErrorKind::non_finite, {.where = fmt::format("statistics, value {} of {}", i, values.size()),
                                        .found = fmt::format("{}", values[i]),
                                        .expected = "a finite number"});
  }
}

void require_same_length(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) {
    refuse_samples(fmt::format("lists of {} and {} values", a.size(), b.size()), "lists of equal length");
  }
}

void require_confidence(double confidence) {
  if (!(confidence > 0 && confidence < 1)) {
    refuse_samples(fmt::format("a confidence of {}", confidence), "a number between 0 and 1");
  }
}

double sorted_quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  return std::lerp(sorted[below], sorted[below + 1], position - static_cast<double>(below));
}

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

/// The median of values that may be reordered, for the bootstrap's inner loop.
double median_in_place(std::vector<double>& values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  if (values.size() % 2 == 1) return *half;
  return 0.5 * (*std::max_element(values.begin(), half) + *half);
}

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). The standard
/// library's distributions differ between implementations, an interval must not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::size_t below(std::size_t count) {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<std::size_t>(((z ^ (z >> 31)) >> 32) * count >> 32);
  }

 private:
  std::uint64_t state_;
};

void check(const Bootstrap& bootstrap) {
  require_confidence(bootstrap.confidence);
  if (bootstrap.resamples < kMinResamples || bootstrap.resamples > kMaxResamples) {
    refuse_samples(fmt::format("{} resamples", bootstrap.resamples),
                   fmt::format("{} to {}", kMinResamples, kMaxResamples));
  }
}

void require_positive(std::span<const double> values) {
  require_finite(values, 1);
  const auto least = std::min_element(values.begin(), values.end());
  if (!(*least > 0)) refuse_samples(fmt::format("{} in a ratio", *least), "positive values");
}

template <class DrawRatio>
Interval percentile_interval(const Bootstrap& bootstrap, const DrawRatio& draw) {
  Random random(bootstrap.seed);
  std::vector<double> ratios(bootstrap.resamples);
  for (double& ratio : ratios) ratio = draw(random);
  std::sort(ratios.begin(), ratios.end());
  const double tail = 0.5 * (1 - bootstrap.confidence);
  return {sorted_quantile(ratios, tail), sorted_quantile(ratios, 1 - tail)};
}

/// P(|T| ≤ t) for integer degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
double student_central_probability(double t, std::size_t freedom) {
  const double theta = std::atan(t / std::sqrt(static_cast<double>(freedom)));
  const double cosine = std::cos(theta);
  double term = freedom % 2 == 1 ? cosine : 1;
  double sum = freedom == 1 ? 0 : term;
  for (std::size_t i = freedom % 2 == 1 ? 3 : 2; i + 1 < freedom; i += 2) {
    term *= cosine * cosine * static_cast<double>(i - 1) / static_cast<double>(i);
    sum += term;
  }
  sum *= std::sin(theta);
  return freedom % 2 == 1 ? 2 / std::numbers::pi * (theta + sum) : sum;
}

struct Sums {
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  double yy = 0;
};

/// Least squares over ranges of points in constant time each, from running sums about the overall means.
class RangeFits {
 public:
  RangeFits(const std::vector<double>& x, const std::vector<double>& y) : sums_(x.size() + 1) {
    const auto n = static_cast<double>(x.size());
    const double mean_x = std::reduce(x.begin(), x.end()) / n;
    const double mean_y = std::reduce(y.begin(), y.end()) / n;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double u = x[i] - mean_x;
      const double v = y[i] - mean_y;
      const Sums& s = sums_[i];
      sums_[i + 1] = {s.x + u, s.y + v, s.xx + u * u, s.xy + u * v, s.yy + v * v};
    }
  }

  /// Σ residual² of the line over points [first, last); infinite where they have one x.
  double squares(std::size_t first, std::size_t last) const {
    const Sums& a = sums_[first];
    const Sums& b = sums_[last];
    const auto n = static_cast<double>(last - first);
    const double sx = b.x - a.x;
    const double sy = b.y - a.y;
    const double sxx = b.xx - a.xx - sx * sx / n;
    const double sxy = b.xy - a.xy - sx * sy / n;
    const double syy = b.yy - a.yy - sy * sy / n;
    if (!(sxx > 0)) return std::numeric_limits<double>::infinity();
    return std::max(0.0, syy - sxy * sxy / sxx);
  }

  double total() const { return sums_.back().yy; }

 private:
  std::vector<Sums> sums_;
};

struct Points {
  std::vector<double> x;
  std::vector<double> y;
};

Points sorted_by_x(std::span<const double> x, std::span<const double> y) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
  Points points;
  for (const std::size_t i : order) {
    points.x.push_back(x[i]);
    points.y.push_back(y[i]);
  }
  return points;
}

/// The best cut of the first `last` points into pieces, by dynamic programming over where the last one
/// begins.
class PieceSearch {
 public:
  PieceSearch(const Points& points, std::size_t max_pieces, std::size_t min_points)
      : points_(points), fits_(points.x, points.y), min_points_(min_points) {
    const std::size_t n = points.x.size();
    squares_.assign(max_pieces + 1, std::vector<double>(n + 1, std::numeric_limits<double>::infinity()));
    begins_.assign(max_pieces + 1, std::vector<std::size_t>(n + 1, 0));
    squares_[0][0] = 0;
    for (std::size_t p = 1; p <= max_pieces; ++p) {
      for (std::size_t last = min_points; last <= n; ++last) extend(p, last);
    }
  }

  /// Ends of the pieces of the best fit, the number of points last.
  std::vector<std::size_t> ends() const {
    const std::size_t n = points_.x.size();
    std::size_t best = 1;
    for (std::size_t p = 2; p < squares_.size(); ++p) {
      if (criterion(p) < criterion(best)) best = p;
    }
    std::vector<std::size_t> ends;
    for (std::size_t p = best, last = n; p > 0; last = begins_[p][last], --p) ends.push_back(last);
    std::reverse(ends.begin(), ends.end());
    return ends;
  }

 private:
  bool may_begin(std::size_t first) const { return first == 0 || points_.x[first - 1] < points_.x[first]; }

  void extend(std::size_t pieces, std::size_t last) {
    for (std::size_t first = 0; first + min_points_ <= last; ++first) {
      if (!std::isfinite(squares_[pieces - 1][first]) || !may_begin(first)) continue;
      const double squares = squares_[pieces - 1][first] + fits_.squares(first, last);
      if (squares < squares_[pieces][last]) {
        squares_[pieces][last] = squares;
        begins_[pieces][last] = first;
      }
    }
  }

  double criterion(std::size_t pieces) const {
    const auto n = static_cast<double>(points_.x.size());
    // Residuals under the rounding of the running sums are all alike: a line through exact points is one.
    const double squares = std::max(squares_[pieces][points_.x.size()], 1e-13 * fits_.total() + 1e-300);
    return n * std::log(squares / n) + 3 * static_cast<double>(pieces) * std::log(n);
  }

  const Points& points_;
  RangeFits fits_;
  std::size_t min_points_;
  std::vector<std::vector<double>> squares_;
  std::vector<std::vector<std::size_t>> begins_;
};

}  // namespace

double quantile(std::span<const double> values, double q) {
  require_finite(values, 1);
  if (!(q >= 0 && q <= 1)) refuse_samples(fmt::format("a quantile of {}", q), "a number from 0 to 1");
  return sorted_quantile(sorted(values), q);
}

double median(std::span<const double> values) {
  return quantile(values, 0.5);
}

double robust_spread(std::span<const double> values) {
  const double middle = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return kMadToDeviation * median(distances);
}

Summary summarize(std::span<const double> values) {
  require_finite(values, 1);
  const std::vector<double> order = sorted(values);
  return {.count = order.size(),
          .median = sorted_quantile(order, 0.5),
          .p10 = sorted_quantile(order, 0.1),
          .p90 = sorted_quantile(order, 0.9),
          .min = order.front(),
          .max = order.back(),
          .spread = robust_spread(order)};
}

LineFit fit_line(std::span<const double> x, std::span<const double> y, double confidence) {
  require_same_length(x, y);
  require_finite(x, 2);
  require_finite(y, 2);
  require_confidence(confidence);
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::reduce(x.begin(), x.end()) / n;
  const double mean_y = std::reduce(y.begin(), y.end()) / n;
  double xx = 0;
  double xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (!(xx > 0)) refuse_samples("points of a single x", "two different x");
  LineFit fit;
  fit.count = x.size();
  fit.slope = xy / xx;
  fit.intercept = mean_y - fit.slope * mean_x;
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += (y[i] - fit.at(x[i])) * (y[i] - fit.at(x[i]));
  fit.residual_rms = std::sqrt(squares / n);
  fit.slope_interval = {fit.slope, fit.slope};
  if (x.size() == 2) return fit;
  const double variance = squares / (n - 2);
  fit.slope_error = std::sqrt(variance / xx);
  fit.intercept_error = std::sqrt(variance * (1 / n + mean_x * mean_x / xx));
  const double reach = student_t(confidence, x.size() - 2) * fit.slope_error;
  fit.slope_interval = {fit.slope - reach, fit.slope + reach};
  return fit;
}

PiecewiseFit fit_piecewise(std::span<const double> x, std::span<const double> y, std::size_t max_pieces,
                           std::size_t min_points) {
  fit_line(x, y);
  if (x.size() > kMaxPiecewisePoints) {
    refuse_samples(fmt::format("{} points", x.size()), fmt::format("at most {}", kMaxPiecewisePoints));
  }
  if (max_pieces < 1 || max_pieces > kMaxPieces || min_points < 3) {
    refuse_samples(fmt::format("{} pieces of {} points", max_pieces, min_points),
                   fmt::format("1 to {} pieces of three points or more", kMaxPieces));
  }
  const Points points = sorted_by_x(x, y);
  const PieceSearch search(points, max_pieces, std::min(min_points, x.size()));
  PiecewiseFit fit;
  double squares = 0;
  std::size_t first = 0;
  for (const std::size_t end : search.ends()) {
    const LineFit line = fit_line(std::span(points.x).subspan(first, end - first),
                                  std::span(points.y).subspan(first, end - first));
    squares += line.residual_rms * line.residual_rms * static_cast<double>(line.count);
    fit.pieces.push_back({points.x[first], points.x[end - 1], line});
    first = end;
  }
  fit.residual_rms = std::sqrt(squares / static_cast<double>(x.size()));
  return fit;
}

Interval ratio_interval(std::span<const double> numerator, std::span<const double> denominator,
                        const Bootstrap& bootstrap) {
  check(bootstrap);
  require_positive(numerator);
  require_positive(denominator);
  std::vector<double> above(numerator.size());
  std::vector<double> below(denominator.size());
  return percentile_interval(bootstrap, [&](Random& random) {
    for (double& value : above) value = numerator[random.below(numerator.size())];
    for (double& value : below) value = denominator[random.below(denominator.size())];
    return median_in_place(above) / median_in_place(below);
  });
}

Interval paired_ratio_interval(std::span<const double> numerator, std::span<const double> denominator,
                               const Bootstrap& bootstrap) {
  check(bootstrap);
  require_same_length(numerator, denominator);
  require_positive(numerator);
  require_positive(denominator);
  std::vector<double> above(numerator.size());
  std::vector<double> below(denominator.size());
  return percentile_interval(bootstrap, [&](Random& random) {
    for (std::size_t i = 0; i < above.size(); ++i) {
      const std::size_t pair = random.below(above.size());
      above[i] = numerator[pair];
      below[i] = denominator[pair];
    }
    return median_in_place(above) / median_in_place(below);
  });
}

double sign_test(std::size_t wins, std::size_t losses) {
  const auto n = static_cast<double>(wins + losses);
  double tail = 0;
  for (std::size_t k = std::max(wins, losses); k <= wins + losses; ++k) {
    const auto heads = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(heads + 1) - std::lgamma(n - heads + 1) -
                     n * std::numbers::ln2);
  }
  return std::min(1.0, 2 * tail);
}

double student_t(double confidence, std::size_t degrees_of_freedom) {
  require_confidence(confidence);
  if (degrees_of_freedom < 1) refuse_samples("no degree of freedom", "at least one");
  double low = 0;
  double high = 1;
  while (student_central_probability(high, degrees_of_freedom) < confidence && high < 1e12) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-12 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (student_central_probability(middle, degrees_of_freedom) < confidence ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace assay::lab
