#include "music/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"

namespace assay::music {
namespace {

[[noreturn]] void bad_schedule(const char* where, std::string found, std::string expected) {
  throw Error(ErrorKind::invalid_argument,
              {.where = where, .found = std::move(found), .expected = std::move(expected)});
}

/// One pair of frames: x after its step, d what it denoises to. Haar's bands are (a + b)/√2 and (a − b)/√2.
struct PairCorrection {
  float low;   ///< t·low
  float high;  ///< (1 − t)·high

  void apply(float& a, float& b, float d_a, float d_b) const {
    constexpr float kHalfRoot = 0.70710678118654752440f;
    float band_low = (a + b) * kHalfRoot;
    float band_high = (a - b) * kHalfRoot;
    band_low += low * (band_low - (d_a + d_b) * kHalfRoot);
    band_high += high * (band_high - (d_a - d_b) * kHalfRoot);
    a = (band_low + band_high) * kHalfRoot;
    b = (band_low - band_high) * kHalfRoot;
  }
};

void corrected_step(std::span<float> x, std::span<const float> v, std::size_t channels, float t, float t_next,
                    const Dcw& dcw) {
  const float dt = t_next - t;
  const PairCorrection correction{t * dcw.low, (1.0f - t) * dcw.high};
  const std::size_t pair = 2 * channels;
  for (std::size_t first = 0; first < x.size(); first += pair) {
    const bool whole = first + pair <= x.size();
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t i = first + c;
      const std::size_t j = i + channels;
      float a = x[i] + dt * v[i];
      float b = whole ? x[j] + dt * v[j] : 0.0f;
      const float d_a = x[i] - v[i] * t;
      const float d_b = whole ? x[j] - v[j] * t : 0.0f;
      correction.apply(a, b, d_a, d_b);
      x[i] = a;
      if (whole) x[j] = b;
    }
  }
}

/// Updates one channel of `conditional` in place from the running difference.
void guide_channel(std::span<float> conditional, std::span<const float> running, std::size_t channels,
                   std::size_t channel, float weight) {
  constexpr double kNormThreshold = 2.5;
  constexpr double kSmallestNorm = 1e-12;  // of torch.nn.functional.normalize
  double difference_square = 0;
  double velocity_square = 0;
  double product = 0;
  for (std::size_t i = channel; i < running.size(); i += channels) {
    difference_square += static_cast<double>(running[i]) * running[i];
    velocity_square += static_cast<double>(conditional[i]) * conditional[i];
    product += static_cast<double>(running[i]) * conditional[i];
  }
  const double norm = std::sqrt(difference_square);
  const double bound = norm > kNormThreshold ? kNormThreshold / norm : 1.0;
  const double length = std::max(std::sqrt(velocity_square), kSmallestNorm);
  const double along = bound * product / (length * length);
  for (std::size_t i = channel; i < running.size(); i += channels) {
    const auto update = static_cast<float>(bound * running[i] - along * conditional[i]);
    conditional[i] += weight * update;
  }
}

/// The part of frame f that is made anew: 1 inside the window, falling to both sides.
float share_of_new(std::size_t frame, FrameWindow window, std::size_t fade) {
  const std::size_t distance = frame < window.first   ? window.first - frame
                               : frame >= window.last ? frame - window.last + 1
                                                      : 0;
  if (distance == 0) return 1.0f;
  if (distance > fade) return 0.0f;
  return 1.0f - static_cast<float>(distance) / static_cast<float>(fade + 1);
}

constexpr std::size_t kMostSteps = 1000;

}  // namespace

std::vector<float> schedule(std::size_t steps, float shift) {
  if (steps == 0 || steps > kMostSteps) bad_schedule("steps", std::to_string(steps), "1 to 1000");
  constexpr float kLeast = 0.01f;
  constexpr float kMost = 100;
  if (!(shift >= kLeast && shift <= kMost)) {
    bad_schedule("shift", fmt::format("{}", shift), fmt::format("{} to {}", kLeast, kMost));
  }
  // torch.linspace counts from both ends in its type; so each half is exact where the other end is.
  const float step = -1.0f / static_cast<float>(steps);
  std::vector<float> values(steps);
  for (std::size_t i = 0; i < steps; ++i) {
    const bool first_half = i < (steps + 1) / 2;
    const float t = first_half ? 1.0f + step * static_cast<float>(i) : -step * static_cast<float>(steps - i);
    values[i] = shift == 1.0f ? t : shift * t / (1.0f + (shift - 1.0f) * t);
  }
  return values;
}

std::vector<float> checked_schedule(std::span<const float> timesteps) {
  std::vector<float> values(timesteps.begin(), timesteps.end());
  if (!values.empty() && values.back() == 0.0f) values.pop_back();
  if (values.empty()) bad_schedule("timesteps", "none", "at least one above 0");
  if (values.size() > kMostSteps) {
    bad_schedule("timesteps", fmt::format("{} of them", values.size()),
                 fmt::format("at most {}", kMostSteps));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > 0 && values[i] <= 1)) {
      bad_schedule("timesteps", fmt::format("{}", values[i]), "values above 0, at most 1");
    }
    if (i > 0 && !(values[i] < values[i - 1])) {
      bad_schedule("timesteps", fmt::format("{} after {}", values[i], values[i - 1]),
                   "falling values, as 32-bit floats have them");
    }
  }
  return values;
}

void euler_step(std::span<float> x, std::span<const float> v, std::size_t channels, float t, float t_next,
                const std::optional<Dcw>& dcw) {
  if (dcw) return corrected_step(x, v, channels, t, t_next, *dcw);
  const float dt = t_next - t;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += dt * v[i];
}

void Guidance::apply(std::span<float> conditional, std::span<const float> unconditional) {
  constexpr float kMomentum = -0.75f;
  running_.resize(conditional.size());
  for (std::size_t i = 0; i < running_.size(); ++i) {
    running_[i] = (conditional[i] - unconditional[i]) + kMomentum * running_[i];
  }
  for (std::size_t channel = 0; channel < channels_; ++channel) {
    guide_channel(conditional, running_, channels_, channel, scale_ - 1.0f);
  }
}

void blend_velocity(std::span<float> out, std::span<const float> other, float strength) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = strength * out[i] + (1.0f - strength) * other[i];
}

FrameWindow repaint_window(double from, double to, std::size_t frames, double frames_per_second) {
  const auto frame_at = [&](double seconds) {
    const double frame = std::floor(std::max(seconds, 0.0) * frames_per_second);
    return static_cast<std::size_t>(std::min(frame, static_cast<double>(frames)));
  };
  FrameWindow window;
  window.first = std::min(frame_at(from), frames - 1);
  window.last = std::max(window.first + 1, to > 0 ? frame_at(to) : frames);
  return window;
}

void inject_source(std::span<float> x, std::span<const float> noise, std::span<const float> source,
                   std::size_t channels, FrameWindow window, float t) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t frame = i / channels;
    if (frame >= window.first && frame < window.last) continue;
    x[i] = t * noise[i] + (1.0f - t) * source[i];
  }
}

void blend_into_source(std::span<float> x, std::span<const float> source, std::size_t channels,
                       FrameWindow window, std::size_t fade) {
  for (std::size_t frame = 0; frame * channels < x.size(); ++frame) {
    const float share = share_of_new(frame, window, fade);
    if (share == 1.0f) continue;
    for (std::size_t i = frame * channels; i < (frame + 1) * channels; ++i) {
      x[i] = share * x[i] + (1.0f - share) * source[i];
    }
  }
}

std::size_t start_from_source(std::span<float> noise, std::span<const float> source,
                              std::span<const float> timesteps, float strength) {
  if (strength <= 0.0f) return 0;
  const float level = 1.0f - strength;
  const auto nearer = [&](float a, float b) { return std::abs(a - level) < std::abs(b - level); };
  const auto nearest = std::ranges::min_element(timesteps, nearer);
  const float t = *nearest;
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = t * noise[i] + (1.0f - t) * source[i];
  return static_cast<std::size_t>(nearest - timesteps.begin());
}

}  // namespace assay::music
