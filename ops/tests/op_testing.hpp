#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "device/arena.hpp"
#include "device/thread_pool.hpp"
#include "ops/form.hpp"
#include "ops/tests/targets.hpp"

namespace assay::ops {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr double kHalfUlp = 0x1p-24;  ///< relative error of one rounding

/// Threads and scratch of a run.
struct Machine {
  explicit Machine(std::size_t count) : threads(count) {}
  device::ThreadPool threads;
  device::Arena arena;
  Context context{threads, arena};
};

/// Floats between two zones of sentinels: what a form writes beside its output shows.
class Guarded {
 public:
  explicit Guarded(std::size_t size) : values_(size + 2 * kZone, kSentinel), size_(size) {}
  explicit Guarded(std::span<const float> values) : Guarded(values.size()) {
    std::ranges::copy(values, data());
  }

  float* data() { return values_.data() + kZone; }
  const float* data() const { return values_.data() + kZone; }
  std::span<float> span() { return {data(), size_}; }
  std::span<const float> span() const { return {data(), size_}; }
  bool intact() const {
    const auto is_sentinel = [](float value) { return value == kSentinel; };
    return std::all_of(values_.begin(), values_.begin() + kZone, is_sentinel) &&
           std::all_of(values_.end() - kZone, values_.end(), is_sentinel);
  }

  static constexpr float kSentinel = -1.2345e33f;

 private:
  static constexpr std::ptrdiff_t kZone = 64;
  std::vector<float> values_;
  std::size_t size_;
};

inline std::vector<float> random_floats(std::size_t count, unsigned seed, float low = -2, float high = 2) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(low, high);
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return value(random); });
  return values;
}

inline testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size())
    return testing::AssertionFailure() << a.size() << " and " << b.size() << " values";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    return testing::AssertionFailure() << "value " << i << ": " << a[i] << " and " << b[i];
  }
  return testing::AssertionSuccess();
}

/// Both NaN, both the same infinity, or apart by at most relative · |expected| + absolute.
inline testing::AssertionResult is_near(float actual, double expected, double relative, double absolute) {
  const bool near = std::isnan(expected)   ? std::isnan(actual)
                    : std::isinf(expected) ? static_cast<double>(actual) == expected
                                           : std::fabs(static_cast<double>(actual) - expected) <=
                                                 relative * std::fabs(expected) + absolute;
  if (near) return testing::AssertionSuccess();
  return testing::AssertionFailure() << actual << " for " << expected;
}

inline double exact_silu(double z) {
  return z == -HUGE_VAL ? 0 : z / (1 + std::exp(-z));
}

/// Calls body(form) for every form that runs here, on each of Highway's targets but for the reference.
template <class Form, class Body>
void for_each_form(std::span<const Form> forms, const Body& body) {
  for (const Form& form : forms) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, std::string(form.info.name));
    if (!device::cpu_supports(form.info.needs)) continue;
    if (form.info.name == "reference") {
      body(form);
    } else {
      for_each_target([&] { body(form); });
    }
  }
}

}  // namespace assay::ops
