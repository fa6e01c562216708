#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "base/dtype.hpp"
#include "ops/conv1d/conv1d.hpp"

/// What the reference forms of `conv1d` and `conv_transpose1d` share: weights as fp32 rows [out, kernel, in]
/// (rounded to bf16 and back in the bf16 form), and the steps of the contract, one value at a time.
namespace assay::ops::plain {

inline float rounded(float value) {
  return bf16_to_float(float_to_bf16(value));
}

template <bool bf16>
device::Buffer<std::byte> pack(const ConvShape& shape, const ConvRows& rows) {
  device::Buffer<std::byte> data(shape.out_channels * shape.row_size() * sizeof(float));
  if (shape.row_size() == 0) return data;
  auto* values = reinterpret_cast<float*>(data.data());
  for (std::size_t o = 0; o < shape.out_channels; ++o) {
    const std::span<float> row(values + o * shape.row_size(), shape.row_size());
    rows(o, 1, row);
    if constexpr (bf16) std::ranges::transform(row, row.begin(), rounded);
  }
  return data;
}

/// x' of one row: through the input's snake and, for bf16, rounded.
template <bool bf16>
void prepare_row(const float* x, std::size_t channels, const SnakeChannels& input, float* out) {
  for (std::size_t c = 0; c < channels; ++c) {
    const float value = input ? snake(x[c], input.alpha[c], input.inverse_beta[c]) : x[c];
    out[c] = bf16 ? rounded(value) : value;
  }
}

/// x' of all rows, [length, channels], in scratch.
template <bool bf16>
std::span<const float> prepare(const Context& context, Rows<const float> x, std::size_t length,
                               std::size_t channels, const SnakeChannels& input) {
  const std::span<float> prepared = context.arena.allocate<float>(length * channels);
  context.threads.parallel_for(length, [&](std::size_t row, std::size_t /*worker*/) {
    prepare_row<bf16>(x.row(row), channels, input, prepared.data() + row * channels);
  });
  return prepared;
}

/// sum + Σ_c w[c] · x[c], in ascending c.
inline float add_products(float sum, const float* w, const float* x, std::size_t channels) {
  for (std::size_t c = 0; c < channels; ++c) sum += w[c] * x[c];
  return sum;
}

/// y[row, o] from its sum over the taps.
inline void finish(const ConvFusion& fusion, std::size_t row, std::size_t o, float sum, Rows<float> y) {
  float value = fusion.bias != nullptr ? sum + fusion.bias[o] : sum;
  if (fusion.output) value = snake(value, fusion.output.alpha[o], fusion.output.inverse_beta[o]);
  if (fusion.residual.data != nullptr) value += fusion.residual.row(row)[o];
  y.row(row)[o] = value;
}

}  // namespace assay::ops::plain
