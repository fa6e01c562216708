#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <ostream>
#include <span>
#include <vector>

#include "base/dtype.hpp"
#include "ops/conv1d/amx_tiles.hpp"
#include "ops/conv1d/conv1d.hpp"
#include "ops/matmul/tests/emulated_tiles.hpp"
#include "ops/tests/op_testing.hpp"

/// What the tests of both convolutions share.
namespace assay::ops {

/// Which of a convolution's extras a case has.
struct Extras {
  bool bias = false;
  bool input = false;
  bool output = false;
  bool residual = false;
};

inline constexpr Extras kPlain{};
inline constexpr Extras kAll{true, true, true, true};

/// Values of a case; `rows` of y are known by the caller.
struct ConvInputs {
  ConvInputs(const ConvShape& shape, std::size_t length, std::size_t rows, unsigned seed)
      : x(random_floats(length * shape.in_channels, seed)),
        w(random_floats(shape.out_channels * shape.row_size(), seed + 1, -1, 1)),
        bias(random_floats(shape.out_channels, seed + 2)),
        residual(random_floats(rows * shape.out_channels, seed + 3)),
        in_alpha(random_floats(shape.in_channels, seed + 4, 0.2f, 2)),
        in_inverse_beta(random_floats(shape.in_channels, seed + 5, 0.2f, 1)),
        out_alpha(random_floats(shape.out_channels, seed + 6, 0.2f, 2)),
        out_inverse_beta(random_floats(shape.out_channels, seed + 7, 0.2f, 1)) {}

  ConvFusion fusion(const Extras& extras, std::size_t out_channels) const {
    ConvFusion fusion;
    if (extras.bias) fusion.bias = bias.data();
    if (extras.input) fusion.input = {in_alpha.data(), in_inverse_beta.data()};
    if (extras.output) fusion.output = {out_alpha.data(), out_inverse_beta.data()};
    if (extras.residual) fusion.residual = {residual.data(), out_channels};
    return fusion;
  }

  ConvRows rows_of_w(const ConvShape& shape) const {
    return [this, shape](std::size_t first, std::size_t count, std::span<float> rows) {
      std::memcpy(rows.data(), w.data() + first * shape.row_size(), count * shape.row_size() * sizeof(float));
    };
  }

  std::vector<float> x, w, bias, residual, in_alpha, in_inverse_beta, out_alpha, out_inverse_beta;
};

/// A sum in double and what bounds its error.
struct ExactSum {
  double value = 0;
  double magnitude = 0;
  std::size_t terms = 0;

  void add(double w, double x) {
    value += w * x;
    magnitude += std::fabs(w * x);
    ++terms;
  }
};

inline double exact_snake(double x, double alpha, double inverse_beta) {
  return x + std::pow(std::sin(alpha * x), 2) * inverse_beta;
}

/// y[o] of a row from its sum over the taps, and whether `actual` is within the contract's bound of it.
/// Snake's slope is at most 1 + alpha · inverse_beta.
inline testing::AssertionResult is_near_sum(float actual, const ExactSum& sum, const ConvFusion& fusion,
                                            std::size_t row, std::size_t o, Precision precision) {
  double value = sum.value;
  double bound = sum.magnitude * ((precision == Precision::bf16 ? 0x1p-7 : 0) +
                                  static_cast<double>(sum.terms + 1) * 0x1p-23) +
                 1e-36;
  if (fusion.bias != nullptr) {
    value += fusion.bias[o];
    bound += std::fabs(value) * kHalfUlp;
  }
  if (fusion.output) {
    const double alpha = fusion.output.alpha[o];
    const double inverse_beta = fusion.output.inverse_beta[o];
    bound = bound * (1 + alpha * inverse_beta) + 0x1p-23 * (4 + std::fabs(alpha * value)) * inverse_beta;
    value = exact_snake(value, alpha, inverse_beta);
    bound += std::fabs(value) * 0x1p-23;
  }
  if (fusion.residual.data != nullptr) {
    value += fusion.residual.row(row)[o];
    bound += std::fabs(value) * kHalfUlp;
  }
  return is_near(actual, value, 0, bound);
}

/// x' in double: rounding to bf16 is in the bound of the sum.
inline double exact_input(const ConvInputs& inputs, const ConvShape& shape, const ConvFusion& fusion,
                          std::size_t row, std::size_t c) {
  const double x = inputs.x[row * shape.in_channels + c];
  return fusion.input ? exact_snake(x, fusion.input.alpha[c], fusion.input.inverse_beta[c]) : x;
}

}  // namespace assay::ops
