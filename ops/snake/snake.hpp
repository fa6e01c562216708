#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "ops/form.hpp"

/// Op `snake`: y[r, c] = x[r, c] + sin²(alpha[c] · x[r, c]) · inverse_beta[c], fp32. A checkpoint holds the
/// logarithms: alpha = exp(α), inverse_beta = 1 / (exp(β) + 1e-9), made once when it is loaded. y may be x.
///
/// Numbers. With z = alpha · x: |y − exact| ≤ 2⁻²³ · (|y| + (4 + |z|) · inverse_beta); the term in |z| is the
/// rounding of z itself. An infinity or NaN in x gives NaN, and nothing beside it changes. A value's bits
/// depend on itself and its channel's constants alone. Source: huggingface/diffusers,
/// src/diffusers/models/autoencoders/autoencoder_oobleck.py (Snake1d).
namespace assay::ops {

/// One op's constants, [channels] each; null for no snake where an op takes one as an option.
struct SnakeChannels {
  const float* alpha = nullptr;
  const float* inverse_beta = nullptr;

  explicit operator bool() const { return alpha != nullptr; }
  SnakeChannels from(std::size_t channel) const {
    return *this ? SnakeChannels{alpha + channel, inverse_beta + channel} : SnakeChannels{};
  }
};

struct SnakeArgs {
  std::size_t rows = 0;
  std::size_t channels = 0;
  Rows<const float> x = {};
  SnakeChannels snake = {};
  Rows<float> y = {};
};

struct SnakeForm {
  FormInfo info;
  void (*run)(const Context& context, const SnakeArgs& args);
};

std::span<const SnakeForm> snake_forms();

/// The reference form's arithmetic, which the reference convolutions share.
inline float snake(float x, float alpha, float inverse_beta) {
  const float sine = std::sin(alpha * x);
  return x + inverse_beta * (sine * sine);
}

}  // namespace assay::ops
