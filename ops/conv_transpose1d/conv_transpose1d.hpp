#pragma once

#include <cstddef>
#include <span>

#include "ops/conv1d/conv1d.hpp"

/// Op `conv_transpose1d`: the transposed convolution along the rows of one sequence, channels last:
///   s[u, o] = bias[o] + Σ over (t, j) with t · stride + j − padding = u of Σ_c w[o, j, c] · x'[t, c]
///   y[u, o] = snake_out(s[u, o]) + residual[u, o],   u in [0, (length − 1) · stride + kernel − 2 · padding)
/// with x' = snake_in(x) inside [0, length) and zeros outside; bias, both snakes and the residual are
/// optional. Only the taps that exist are multiplied: an output row has kernel / stride of them, rounded up
/// or down.
///
/// Numbers and same bits as `conv1d`, with the taps that exist for K. Source: torch.nn.ConvTranspose1d (there
/// w is [in, out, kernel]), as huggingface/diffusers,
/// src/diffusers/models/autoencoders/autoencoder_oobleck.py, uses it.
namespace assay::ops {

struct ConvTranspose1dForm;

struct ConvTranspose1dWeight {
  const ConvTranspose1dForm* form = nullptr;
  ConvShape shape = {};
  std::size_t stride = 0;
  device::Buffer<std::byte> data = {};
};

struct ConvTranspose1dArgs {
  Rows<const float> x = {};  ///< [length, in_channels]
  std::size_t length = 0;
  const ConvTranspose1dWeight* w = nullptr;
  std::size_t padding = 0;  ///< rows cut off at either end
  ConvFusion fusion = {};
  Rows<float> y = {};  ///< [conv_transpose1d_length(…), out_channels]; may be the residual, may not overlap x
};

struct ConvTranspose1dForm {
  FormInfo info;
  std::size_t (*packed_bytes)(const ConvShape& shape, std::size_t stride);
  /// As Conv1dForm::pack; the layout is of one stride.
  ConvTranspose1dWeight (*pack)(const ConvShape& shape, std::size_t stride, const ConvRows& rows);
  void (*run)(const Context& context, const ConvTranspose1dArgs& args);
};

std::span<const ConvTranspose1dForm> conv_transpose1d_forms();

/// Rows of y; 0 for a length of 0 or where the padding takes all. Throws Error(invalid_argument) for a kernel
/// or stride of 0.
std::size_t conv_transpose1d_length(const ConvTranspose1dArgs& args);

inline void conv_transpose1d(const Context& context, const ConvTranspose1dArgs& args) {
  args.w->form->run(context, args);
}

}  // namespace assay::ops
