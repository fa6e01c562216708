#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "lab/gate/op_cases.hpp"

namespace assay::lab {

/// Kinds of values that a case is filled with.
enum class Fill { ordinary, zeros, spread };
inline constexpr Fill kFills[] = {Fill::ordinary, Fill::zeros, Fill::spread};

inline std::string_view to_string(Fill fill) {
  constexpr std::string_view kNames[] = {"ordinary", "zeros", "spread"};
  return kNames[static_cast<std::size_t>(fill)];
}

/// Draws that are the same with every standard library: its distributions are not, its engines are.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  std::size_t count(std::size_t low, std::size_t high) {
    return low + static_cast<std::size_t>(engine_() % (high - low + 1));
  }
  std::vector<float> uniform(std::size_t size, double low, double high) {
    std::vector<float> values(size);
    for (float& value : values) value = static_cast<float>(uniform(low, high));
    return values;
  }
  std::vector<float> values(std::size_t size, Fill fill) {
    std::vector<float> values = uniform(size, -2, 2);
    for (float& value : values) {
      if (fill == Fill::zeros) value = 0;
      if (fill == Fill::spread) value *= static_cast<float>(std::pow(10.0, uniform(-6, 6)));
    }
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

inline Answer one_array(std::vector<std::size_t> shape, Values values) {
  Answer answer;
  answer.arrays.push_back({.name = "y", .shape = std::move(shape), .values = std::move(values)});
  return answer;
}

inline double exact_sigmoid(double z) {
  return 1 / (1 + std::exp(-z));
}

std::vector<std::unique_ptr<OpCase>> matmul_cases(Draw draw);
std::vector<std::unique_ptr<OpCase>> gated_delta_rule_cases(Draw draw);
std::vector<std::unique_ptr<OpCase>> causal_conv1d_cases(Draw draw);
std::vector<std::unique_ptr<OpCase>> attention_cases(Draw draw);
std::vector<std::unique_ptr<OpCase>> rms_norm_cases(Draw draw);
std::vector<std::unique_ptr<OpCase>> rope_cases(Draw draw);
std::vector<std::unique_ptr<OpCase>> swiglu_cases(Draw draw);
std::vector<std::unique_ptr<OpCase>> embed_cases(Draw draw);
std::vector<std::unique_ptr<OpCase>> conv1d_cases(Draw draw);
std::vector<std::unique_ptr<OpCase>> conv_transpose1d_cases(Draw draw);
std::vector<std::unique_ptr<OpCase>> snake_cases(Draw draw);

}  // namespace assay::lab
