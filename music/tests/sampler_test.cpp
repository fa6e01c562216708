#include "music/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "music/noise.hpp"

namespace assay::music {
namespace {

std::vector<float> normals(std::uint64_t seed, std::size_t count) {
  std::vector<float> values(count);
  fill_normal(seed, NoiseStream::latents, 0, values);
  return values;
}

TEST(Schedule, IsTheTurboTablesOfTheAuthors) {
  // ACE-Step's fixed tables for 8 steps (ace-step/ACE-Step-1.5, the turbo model's SHIFT_TIMESTEPS).
  const std::vector<float> three = {1.0f,  0.9545454545f, 0.9f, 0.8333333333f,
                                    0.75f, 0.6428571429f, 0.5f, 0.3f};
  const std::vector<float> values = schedule(8, 3.0f);
  ASSERT_EQ(values.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(values[i], three[i], 1e-6f);
  EXPECT_EQ(schedule(4, 1.0f), (std::vector<float>{1.0f, 0.75f, 0.5f, 0.25f}));
  EXPECT_EQ(schedule(1, 5.0f), std::vector<float>{1.0f});
}

TEST(Schedule, RefusesWhatFallsNowhere) {
  EXPECT_THROW(schedule(0, 3.0f), Error);
  EXPECT_THROW(schedule(8, 0.0f), Error);
  EXPECT_THROW(schedule(8, NAN), Error);
  for (const std::vector<float>& bad :
       {std::vector<float>{}, {0.0f}, {1.5f, 0.5f}, {0.5f, 0.5f}, {0.5f, 0.7f}, {1.0f, -0.1f}, {NAN}}) {
    EXPECT_THROW(checked_schedule(bad), Error);
  }
  EXPECT_EQ(checked_schedule(std::vector<float>{0.9f, 0.4f, 0.0f}), (std::vector<float>{0.9f, 0.4f}));
}

TEST(EulerStep, LandsOnTheMusicAtTheLastStep) {
  std::vector<float> x = {1.0f, 2.0f};
  euler_step(x, std::vector<float>{4.0f, -8.0f}, 2, 0.25f, 0.0f, std::nullopt);
  EXPECT_EQ(x, (std::vector<float>{0.0f, 4.0f}));
}

/// The correction as the paper writes it: whole transforms, in double.
std::vector<double> corrected(std::vector<float> before, const std::vector<float>& v, std::size_t channels,
                              double t, double t_next, const Dcw& dcw) {
  const std::size_t frames = before.size() / channels;
  const std::size_t even = frames + frames % 2;
  std::vector<double> x(even * channels);
  std::vector<double> d(even * channels);
  for (std::size_t i = 0; i < before.size(); ++i) {
    x[i] = before[i] + (t_next - t) * v[i];
    d[i] = before[i] - t * v[i];
  }
  const double root = std::sqrt(0.5);
  for (std::size_t frame = 0; frame < even; frame += 2) {
    for (std::size_t c = 0; c < channels; ++c) {
      double& a = x[frame * channels + c];
      double& b = x[(frame + 1) * channels + c];
      const double d_a = d[frame * channels + c];
      const double d_b = d[(frame + 1) * channels + c];
      double low = (a + b) * root;
      double high = (a - b) * root;
      low += t * dcw.low * (low - (d_a + d_b) * root);
      high += (1 - t) * dcw.high * (high - (d_a - d_b) * root);
      a = (low + high) * root;
      b = (low - high) * root;
    }
  }
  x.resize(before.size());
  return x;
}

TEST(EulerStep, CorrectsBothHaarBandsForEvenAndOddLengths) {
  for (const std::size_t frames : {1u, 2u, 5u, 8u}) {
    const std::size_t channels = 3;
    std::vector<float> x = normals(frames, frames * channels);
    const std::vector<float> v = normals(frames + 100, frames * channels);
    const Dcw dcw{0.4f, 0.3f};
    const std::vector<double> expected = corrected(x, v, channels, 0.7, 0.5, dcw);
    euler_step(x, v, channels, 0.7f, 0.5f, dcw);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], expected[i], 2e-6) << frames << ", " << i;
  }
}

TEST(EulerStep, EitherBandMatters) {
  const std::vector<float> start = normals(1, 12);
  const std::vector<float> v = normals(2, 12);
  const auto after = [&](std::optional<Dcw> dcw) {
    std::vector<float> x = start;
    euler_step(x, v, 2, 0.6f, 0.4f, dcw);
    return x;
  };
  EXPECT_NE(after(Dcw{}), after(std::nullopt));
  EXPECT_NE(after(Dcw{0.05f, 0.0f}), after(Dcw{}));
  EXPECT_NE(after(Dcw{0.0f, 0.02f}), after(Dcw{}));
}

TEST(Guidance, IsOrthogonalBoundedAndHasMomentum) {
  const std::size_t frames = 50;
  const std::size_t channels = 2;
  const std::vector<float> conditional = normals(3, frames * channels);
  const std::vector<float> unconditional = normals(4, frames * channels);
  Guidance guidance(channels, 8.0f);
  std::vector<float> guided = conditional;
  guidance.apply(guided, unconditional);
  for (std::size_t c = 0; c < channels; ++c) {
    double along = 0;
    double square = 0;
    for (std::size_t i = c; i < guided.size(); i += channels) {
      const double update = (guided[i] - conditional[i]) / 7.0;
      along += update * conditional[i];
      square += update * update;
    }
    EXPECT_NEAR(along, 0, 1e-4);
    // The difference's norm, about 10, is cut to 2.5; its orthogonal part is smaller still.
    EXPECT_LT(square, 2.5 * 2.5 + 1e-4);
    EXPECT_GT(square, 1.0);
  }
  std::vector<float> again = conditional;
  guidance.apply(again, unconditional);
  EXPECT_NE(again, guided) << "the second step remembers the first";
}

/// normalized_guidance of diffusers' adaptive_projected_guidance.py as it is written there, over whole
/// tensors, in double; `average` is its momentum buffer.
std::vector<double> authors_guidance(const std::vector<float>& conditional,
                                     const std::vector<float>& unconditional, std::size_t channels,
                                     double scale, std::vector<double>& average) {
  std::vector<double> guided(conditional.size());
  for (std::size_t i = 0; i < average.size(); ++i) {
    average[i] = (static_cast<double>(conditional[i]) - unconditional[i]) - 0.75 * average[i];
  }
  for (std::size_t c = 0; c < channels; ++c) {
    double norm = 0;
    double length = 0;
    for (std::size_t i = c; i < average.size(); i += channels) {
      norm += average[i] * average[i];
      length += static_cast<double>(conditional[i]) * conditional[i];
    }
    const double factor = std::min(1.0, 2.5 / std::sqrt(norm));
    double parallel = 0;
    for (std::size_t i = c; i < average.size(); i += channels) {
      parallel += factor * average[i] * conditional[i] / std::sqrt(length);
    }
    for (std::size_t i = c; i < average.size(); i += channels) {
      const double orthogonal = factor * average[i] - parallel * conditional[i] / std::sqrt(length);
      guided[i] = conditional[i] + (scale - 1) * orthogonal;
    }
  }
  return guided;
}

TEST(Guidance, IsTheAuthorsOverSeveralSteps) {
  const std::size_t channels = 3;
  Guidance guidance(channels, 7.0f);
  std::vector<double> average(60);
  for (std::uint64_t step = 0; step < 4; ++step) {
    std::vector<float> guided = normals(10 + step, 60);
    std::vector<float> unconditional = guided;
    // The last step's difference is small: its norm stays below the bound.
    const std::vector<float> difference = normals(20 + step, 60);
    for (std::size_t i = 0; i < 60; ++i) unconditional[i] -= (step == 3 ? 0.01f : 1.0f) * difference[i];
    const std::vector<double> expected = authors_guidance(guided, unconditional, channels, 7.0, average);
    guidance.apply(guided, unconditional);
    for (std::size_t i = 0; i < 60; ++i) EXPECT_NEAR(guided[i], expected[i], 2e-5) << step << ' ' << i;
  }
}

TEST(Guidance, AWeightOfOneChangesNothing) {
  std::vector<float> guided = normals(5, 20);
  const std::vector<float> before = guided;
  Guidance(4, 1.0f).apply(guided, normals(6, 20));
  EXPECT_EQ(guided, before);
}

TEST(Repaint, WindowIsRoundedDownAndKeptInside) {
  const auto window = [](double from, double to) { return repaint_window(from, to, 50, 25.0); };
  EXPECT_EQ(window(0.5, 1.2).first, 12u);
  EXPECT_EQ(window(0.5, 1.2).last, 30u);
  EXPECT_EQ(window(0.0, -1.0).last, 50u);
  EXPECT_EQ(window(1.0, 99.0).last, 50u);
  EXPECT_EQ(window(99.0, -1.0).first, 49u);
  EXPECT_EQ(window(1.0, 1.001).last, 26u) << "at least one frame";
}

TEST(Repaint, SourceIsInjectedOutsideAndFadesInAtTheEdges) {
  const std::vector<float> noise(10, 4.0f);
  const std::vector<float> source(10, 2.0f);
  std::vector<float> x(10, 1.0f);
  inject_source(x, noise, source, 1, {4, 6}, 0.5f);
  EXPECT_EQ(x, (std::vector<float>{3, 3, 3, 3, 1, 1, 3, 3, 3, 3}));
  x.assign(10, 1.0f);
  blend_into_source(x, source, 1, {4, 6}, 3);
  EXPECT_EQ(x, (std::vector<float>{2, 1.75f, 1.5f, 1.25f, 1, 1, 1.25f, 1.5f, 1.75f, 2}));
  x.assign(10, 1.0f);
  blend_into_source(x, source, 1, {4, 6}, 0);
  EXPECT_EQ(x, (std::vector<float>{2, 2, 2, 2, 1, 1, 2, 2, 2, 2}));
}

TEST(Cover, StartsAtTheStepNearestToItsNoise) {
  const std::vector<float> timesteps = {1.0f, 0.75f, 0.5f, 0.25f};
  const std::vector<float> source(4, 8.0f);
  std::vector<float> x(4, 4.0f);
  EXPECT_EQ(start_from_source(x, source, timesteps, 0.0f), 0u);
  EXPECT_EQ(x, std::vector<float>(4, 4.0f));
  EXPECT_EQ(start_from_source(x, source, timesteps, 0.45f), 2u);
  EXPECT_EQ(x, std::vector<float>(4, 6.0f));
  std::vector<float> velocity(4, 1.0f);
  blend_velocity(velocity, std::vector<float>(4, 3.0f), 0.25f);
  EXPECT_EQ(velocity, std::vector<float>(4, 2.5f));
}

}  // namespace
}  // namespace assay::music
