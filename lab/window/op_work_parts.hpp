#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "device/arena.hpp"
#include "lab/window/op_work.hpp"

/// What the ops that are timed alone share.
namespace assay::lab {

inline constexpr double kFloat = sizeof(float);

inline double product(std::initializer_list<std::size_t> sizes) {
  double result = 1;
  for (const std::size_t size : sizes) result *= static_cast<double>(size);
  return result;
}

/// Values in [low, high) that are the same everywhere: a linear congruential generator's upper bits.
inline std::vector<float> random_values(std::size_t count, float low, float high) {
  std::uint64_t state = 0x853c49e6748fea9bu + count;
  std::vector<float> values(count);
  for (float& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = low + (high - low) * static_cast<float>(state >> 40) * 0x1p-24f;
  }
  return values;
}

class OpWork : public Work {
 public:
  explicit OpWork(device::ThreadPool& threads) : context_{threads, arena_} {}

 protected:
  device::Arena arena_;
  ops::Context context_;
};

}  // namespace assay::lab
