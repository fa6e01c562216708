#include <cmath>
#include <string>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "ops/rope/rope.hpp"

namespace assay::ops {

void rope_table(std::span<const std::int32_t> positions, std::size_t rotary_dim, float theta,
                std::span<float> cos, std::span<float> sin, bool bf16_frequencies) {
  const std::size_t half = rotary_dim / 2;
  const std::size_t expected = positions.size() * half;
  if (rotary_dim % 2 != 0 || cos.size() != expected || sin.size() != expected) {
    throw Error(ErrorKind::internal,
                {.where = "rope_table",
                 .found = "rotary_dim " + std::to_string(rotary_dim) + ", tables of " +
                          std::to_string(cos.size()) + " and " + std::to_string(sin.size()),
                 .expected = "an even rotary_dim and tables of " + std::to_string(expected)});
  }
  for (std::size_t i = 0; i < half; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary_dim);
    const float exact = 1.0f / std::pow(theta, exponent);
    const float frequency = bf16_frequencies ? bf16_to_float(float_to_bf16(exact)) : exact;
    for (std::size_t row = 0; row < positions.size(); ++row) {
      const float angle = frequency * static_cast<float>(positions[row]);
      cos[row * half + i] = std::cos(angle);
      sin[row * half + i] = std::sin(angle);
    }
  }
}

}  // namespace assay::ops
