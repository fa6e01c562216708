#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "device/memory.hpp"
#include "ops/form.hpp"
#include "ops/snake/snake.hpp"

/// Op `conv1d`: a convolution along the rows of one sequence, channels last:
///   s[t, o] = bias[o] + Σ_j Σ_c w[o, j, c] · x'[t · stride + j · dilation − padding, c]
///   y[t, o] = snake_out(s[t, o]) + residual[t, o]
/// with x' = snake_in(x) inside [0, length) and zeros outside; bias, both snakes and the residual are
/// optional.
///
/// x, y and the residual are fp32 rows; w is finite and prepared once by the form that will read it.
///
/// Numbers. As in `matmul`: fp32 forms multiply and add in fp32; bf16 forms round x' and w to bf16 (nearest,
/// ties to even), products exact, sums in fp32: |s − exact| ≤ (2⁻⁷ + K · 2⁻²³) · Σ|w · x'| with K = kernel ·
/// channels, without the 2⁻⁷ at fp32. Bias, snake and residual are fp32 always; a fused snake is the op
/// `snake` of the same kind of form.
///
/// Same bits. y[t, ·] depends on the rows of x under its taps, on row t of the residual and on the weights
/// alone: not on t, the length, the rows beside it or the number of threads. So a sequence cut anywhere with
/// what its taps reach on either side gives the same. Source: torch.nn.Conv1d, as huggingface/diffusers,
/// src/diffusers/models/autoencoders/autoencoder_oobleck.py, uses it.
namespace assay::ops {

struct Conv1dForm;

struct ConvShape {
  std::size_t out_channels = 0;
  std::size_t in_channels = 0;
  std::size_t kernel = 0;

  std::size_t row_size() const { return kernel * in_channels; }  ///< of w[o]
};

/// w, laid out for one form. Movable, immutable once packed, shared by concurrent runs.
struct Conv1dWeight {
  const Conv1dForm* form = nullptr;
  ConvShape shape = {};
  device::Buffer<std::byte> data = {};
};

/// Gives w[first, first + count) as fp32 [count, kernel, in_channels]. Called from one thread, in ascending
/// order, each output channel once.
using ConvRows = std::function<void(std::size_t first, std::size_t count, std::span<float> rows)>;

/// What a convolution does besides its sums; each may be missing.
struct ConvFusion {
  const float* bias = nullptr;      ///< [out_channels]
  SnakeChannels input = {};         ///< [in_channels]
  SnakeChannels output = {};        ///< [out_channels]
  Rows<const float> residual = {};  ///< [rows of y, out_channels]
};

struct Conv1dArgs {
  Rows<const float> x = {};  ///< [length, in_channels]
  std::size_t length = 0;
  const Conv1dWeight* w = nullptr;
  std::size_t stride = 1;
  std::size_t dilation = 1;
  std::size_t padding = 0;  ///< zeros before the first row and after the last
  ConvFusion fusion = {};
  Rows<float> y = {};  ///< [conv1d_length(…), out_channels]; may be the residual, may not overlap x
};

struct Conv1dForm {
  FormInfo info;
  std::size_t (*packed_bytes)(const ConvShape& shape);
  /// Reads at most a few dozen output channels at a time, so that w is never whole in fp32.
  Conv1dWeight (*pack)(const ConvShape& shape, const ConvRows& rows);
  void (*run)(const Context& context, const Conv1dArgs& args);
};

/// All forms in this build, the reference first.
std::span<const Conv1dForm> conv1d_forms();

/// Rows of y; 0 where the kernel does not fit between the padding. Throws Error(invalid_argument) for a
/// kernel, stride or dilation of 0.
std::size_t conv1d_length(const Conv1dArgs& args);

/// y by the form that packed w.
inline void conv1d(const Context& context, const Conv1dArgs& args) {
  args.w->form->run(context, args);
}

}  // namespace assay::ops
