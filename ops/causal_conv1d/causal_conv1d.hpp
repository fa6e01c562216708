#pragma once

#include <cstddef>
#include <span>

#include "ops/form.hpp"

/// Op `causal_conv1d`: depthwise causal convolution along the tokens of each segment, then SiLU:
///   y[t, c] = silu( Σ_j w[j, c] · x[t − (width − 1) + j, c] ),  j = 0 … width − 1,
/// where x before the segment's first token comes from its initial state, zeros if null. fp32 throughout,
/// the sum in ascending j.
///
/// State: fp32 [width − 1, channels], the last width − 1 inputs, oldest first; a segment shorter than that
/// shifts its parent's inputs through.
///
/// Numbers. |y − exact| ≤ 2⁻²¹ · |y| + 2.2 · width · 2⁻²⁴ · Σ_j |w·x|. Same bits: y[t, c] depends on its
/// width inputs alone, so a segment cut anywhere, its state carried, gives the same. Source: transformers,
/// models/qwen3_5/modeling_qwen3_5.py (conv1d of Qwen3_5GatedDeltaNet).
namespace assay::ops {

struct CausalConv1dArgs {
  std::size_t channels = 0;
  std::size_t width = 0;     ///< kernel length, 2 to 8; else Error(invalid_argument)
  const float* w = nullptr;  ///< [width, channels] (the checkpoint's [channels, 1, width] transposed)
  Rows<const float> x = {};  ///< [tokens, channels]
  Rows<float> y = {};        ///< [tokens, channels]; may not overlap x
  std::span<const SequenceSegment> segments = {};
};

struct CausalConv1dForm {
  FormInfo info;
  void (*run)(const Context& context, const CausalConv1dArgs& args);
};

std::span<const CausalConv1dForm> causal_conv1d_forms();

}  // namespace assay::ops
