#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "device/memory.hpp"
#include "ops/form.hpp"

/// Op `matmul`: y[m, n] = Σ_k x[m, k] · w[n, k], the product of a linear layer without bias.
///
/// x and y are fp32 rows; w is prepared once by the form that will read it. With `accumulate` the product
/// is added to what y holds (the residual connection), after the whole sum over k.
///
/// Numbers. fp32 forms: products and sums in fp32. bf16 forms: x and w rounded to bf16 (nearest, ties to
/// even), products exact, sums in fp32; |y − exact| ≤ (2⁻⁸ + K·2⁻²⁴)·Σ|x·w| roughly, tested as such.
///
/// Same bits. y[m, ·] depends on x[m, ·] and w alone: the order of the sum over k is a property of the
/// form and (n, k), never of the number of rows, their position, or the number of threads.
namespace assay::ops {

struct MatmulForm;

/// w, laid out for one form. Movable, immutable once packed, shared by concurrent runs.
struct MatmulWeight {
  const MatmulForm* form = nullptr;
  std::size_t n = 0;  ///< output features
  std::size_t k = 0;  ///< input features
  device::Buffer<std::byte> data;
};

/// Gives rows [first, first + count) of w as fp32 [count, k], row-major. Called from one thread at a time,
/// in ascending order, each row once.
using WeightRows = std::function<void(std::size_t first, std::size_t count, std::span<float> rows)>;

struct MatmulArgs {
  Rows<const float> x = {};  ///< [m, k]
  std::size_t m = 0;
  const MatmulWeight* w = nullptr;
  Rows<float> y = {};  ///< [m, n]; may not overlap x
  bool accumulate = false;
};

struct MatmulForm {
  FormInfo info;
  /// Bytes that a packed [n, k] takes.
  std::size_t (*packed_bytes)(std::size_t n, std::size_t k);
  /// Packs, reading at most a few hundred rows at a time, so that w is never whole in fp32.
  MatmulWeight (*pack)(std::size_t n, std::size_t k, const WeightRows& rows);
  void (*run)(const Context& context, const MatmulArgs& args);
};

/// All forms in this build, the reference first.
std::span<const MatmulForm> matmul_forms();

/// y = x · wᵀ by the form that packed w. m, n or k of 0 is allowed (k = 0 gives zeros).
inline void matmul(const Context& context, const MatmulArgs& args) {
  args.w->form->run(context, args);
}

}  // namespace assay::ops
