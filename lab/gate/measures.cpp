#include "lab/gate/measures.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

namespace assay::lab {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr std::size_t kFrame = 1024;
constexpr std::size_t kHop = 512;
constexpr double kPowerFloor = 1e-10;

struct Sums {
  std::size_t finite = 0;
  double x = 0, y = 0, xx = 0, error = 0;
};

bool both_finite(double x, double y) {
  return std::isfinite(x) && std::isfinite(y);
}

bool agrees_beyond_numbers(double x, double y) {
  return std::isnan(x) ? std::isnan(y) : x == y;
}

double correlation(const Values& x, const Values& y, std::size_t first, std::size_t count, const Sums& sums) {
  const double mean_x = sums.x / static_cast<double>(sums.finite);
  const double mean_y = sums.y / static_cast<double>(sums.finite);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    const double a = value_at(x, i), b = value_at(y, i);
    if (!both_finite(a, b)) continue;
    xy += (a - mean_x) * (b - mean_y);
    xx += (a - mean_x) * (a - mean_x);
    yy += (b - mean_y) * (b - mean_y);
  }
  return xy / (std::sqrt(xx) * std::sqrt(yy));
}

bool is_constant(const Values& values, std::size_t first, std::size_t count) {
  for (std::size_t i = first + 1; i < first + count; ++i) {
    if (value_at(values, i) != value_at(values, first)) return false;
  }
  return true;
}

void count_collapses(const Values& x, const Values& y, std::size_t first, std::size_t count,
                     NumericMeasures& measures) {
  double largest = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    if (std::isfinite(value_at(x, i))) largest = std::max(largest, std::fabs(value_at(x, i)));
  }
  for (std::size_t i = first; i < first + count; ++i) {
    const double a = std::fabs(value_at(x, i));
    if (std::isfinite(a) && a > 0x1p-24 * largest && value_at(y, i) == 0) ++measures.collapsed;
  }
}

/// In-place radix-2 transform of kFrame values (J. W. Cooley, J. W. Tukey, 1965).
void transform(std::vector<std::complex<double>>& values) {
  const std::size_t n = values.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(values[i], values[j]);
  }
  for (std::size_t length = 2; length <= n; length *= 2) {
    const double angle = -2 * std::numbers::pi / static_cast<double>(length);
    for (std::size_t k = 0; k < length / 2; ++k) {
      const std::complex<double> turn = std::polar(1.0, angle * static_cast<double>(k));
      for (std::size_t start = k; start < n; start += length) {
        const std::complex<double> odd = turn * values[start + length / 2];
        values[start + length / 2] = values[start] - odd;
        values[start] += odd;
      }
    }
  }
}

/// Power in dB of each bin of a frame, relative to a full-scale sine's bin and floored.
std::vector<double> log_power(const std::vector<double>& signal, std::size_t first) {
  std::vector<std::complex<double>> frame(kFrame);
  for (std::size_t i = 0; i < kFrame && first + i < signal.size(); ++i) {
    const double phase = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(kFrame);
    frame[i] = (0.5 - 0.5 * std::cos(phase)) * (std::isfinite(signal[first + i]) ? signal[first + i] : 0.0);
  }
  transform(frame);
  constexpr double kFullScale =
      static_cast<double>(kFrame) / 4;  // a sine of 1 under the window's mean of 1/2
  std::vector<double> decibels(kFrame / 2 + 1);
  for (std::size_t i = 0; i < decibels.size(); ++i) {
    decibels[i] = 10 * std::log10(std::max(std::norm(frame[i]) / (kFullScale * kFullScale), kPowerFloor));
  }
  return decibels;
}

struct Level {
  double peak = 0;
  double rms = 0;
};

Level level(const Values& values) {
  Level level;
  double squares = 0;
  for (std::size_t i = 0; i < value_count(values); ++i) {
    const double value = value_at(values, i);
    if (!std::isfinite(value)) continue;
    level.peak = std::max(level.peak, std::fabs(value));
    squares += value * value;
  }
  if (value_count(values) > 0) level.rms = std::sqrt(squares / static_cast<double>(value_count(values)));
  return level;
}

std::vector<double> channel(const Values& values, std::size_t index, std::size_t samples) {
  std::vector<double> result(samples);
  for (std::size_t i = 0; i < samples; ++i) result[i] = value_at(values, index * samples + i);
  return result;
}

/// [first, first + count) of every channel as one run of values.
Values slice(const Values& values, std::size_t channels, std::size_t samples, std::size_t first,
             std::size_t count) {
  std::vector<double> result;
  result.reserve(channels * count);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < count; ++i) result.push_back(value_at(values, c * samples + first + i));
  }
  return result;
}

}  // namespace

NumericMeasures measure(const Values& x, const Values& y, std::size_t first, std::size_t count) {
  NumericMeasures measures{.values = count, .worst = first};
  Sums sums;
  for (std::size_t i = first; i < first + count; ++i) {
    const double a = value_at(x, i), b = value_at(y, i);
    if (!both_finite(a, b)) {
      if (!agrees_beyond_numbers(a, b)) ++measures.non_finite;
      continue;
    }
    ++sums.finite;
    sums.x += a;
    sums.y += b;
    sums.xx += a * a;
    sums.error += (b - a) * (b - a);
    if (std::fabs(b - a) > measures.max_abs) {
      measures.max_abs = std::fabs(b - a);
      measures.worst = i;
    }
  }
  count_collapses(x, y, first, count, measures);
  const bool equal = measures.max_abs == 0;
  measures.nrmse = equal ? 0 : sums.xx > 0 ? std::sqrt(sums.error / sums.xx) : kUnbounded;
  measures.snr_db = equal ? kUnbounded : sums.xx > 0 ? -20 * std::log10(measures.nrmse) : -kUnbounded;
  if (equal) {
    measures.pearson = 1;
  } else if (!is_constant(x, first, count) && !is_constant(y, first, count)) {
    const double r = correlation(x, y, first, count, sums);
    if (std::isfinite(r)) measures.pearson = std::clamp(r, -1.0, 1.0);
  }
  return measures;
}

NumericMeasures measure(const Values& x, const Values& y) {
  return measure(x, y, 0, value_count(x));
}

double log_spectral_distance(const std::vector<double>& x, const std::vector<double>& y) {
  double total = 0;
  std::size_t frames = 0;
  for (std::size_t first = 0; first < x.size(); first += kHop) {
    const std::vector<double> a = log_power(x, first);
    const std::vector<double> b = log_power(y, first);
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
    total += std::sqrt(squares / static_cast<double>(a.size()));
    ++frames;
    if (first + kFrame >= x.size()) break;
  }
  return frames == 0 ? 0 : total / static_cast<double>(frames);
}

AudioMeasures measure_audio(const Array& x, const Array& y) {
  AudioMeasures measures;
  measures.samples = x.shape.back();
  measures.channels = measures.samples == 0 ? 0 : value_count(x.values) / measures.samples;
  measures.whole = measure(x.values, y.values);
  const auto second = std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(x.sample_rate)));
  for (std::size_t first = 0; first < measures.samples; first += second) {
    const std::size_t count = std::min(second, measures.samples - first);
    measures.nrmse_per_second.push_back(
        measure(slice(x.values, measures.channels, measures.samples, first, count),
                slice(y.values, measures.channels, measures.samples, first, count))
            .nrmse);
  }
  const Level a = level(x.values);
  const Level b = level(y.values);
  measures.peak = a.peak;
  measures.peak_difference = std::fabs(b.peak - a.peak);
  measures.rms = a.rms;
  measures.rms_difference = std::fabs(b.rms - a.rms);
  for (std::size_t c = 0; c < measures.channels; ++c) {
    measures.log_spectral_db += log_spectral_distance(channel(x.values, c, measures.samples),
                                                      channel(y.values, c, measures.samples)) /
                                static_cast<double>(measures.channels);
  }
  return measures;
}

nlohmann::ordered_json json_number(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "infinity" : "-infinity";
  return value;
}

nlohmann::ordered_json to_json(const NumericMeasures& measures) {
  return {{"values", measures.values},
          {"nrmse", json_number(measures.nrmse)},
          {"snr_db", json_number(measures.snr_db)},
          {"pearson", json_number(measures.pearson.value_or(std::nan("")))},
          {"max_abs", json_number(measures.max_abs)},
          {"collapsed", measures.collapsed},
          {"non_finite", measures.non_finite}};
}

nlohmann::ordered_json to_json(const AudioMeasures& measures) {
  nlohmann::ordered_json json = to_json(measures.whole);
  auto& seconds = json["nrmse_per_second"] = nlohmann::ordered_json::array();
  for (const double value : measures.nrmse_per_second) seconds.push_back(json_number(value));
  json["peak"] = json_number(measures.peak);
  json["peak_difference"] = json_number(measures.peak_difference);
  json["rms"] = json_number(measures.rms);
  json["rms_difference"] = json_number(measures.rms_difference);
  json["log_spectral_db"] = json_number(measures.log_spectral_db);
  return json;
}

}  // namespace assay::lab
