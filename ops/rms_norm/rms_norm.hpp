#pragma once

#include <cstddef>
#include <span>

#include "ops/form.hpp"

/// Op `rms_norm`: y[r, g, i] = x[r, g, i] / √(mean_i x² + eps) · w[i], fp32, over each of `groups` vectors
/// of `dim` in a row (1 for a layer's norm, the heads for a q/k norm). With `gate`, · silu(gate[r, g, i])
/// (the gated norm of Gated DeltaNet). The (1 + w) of Qwen3.5 is folded into w when it is loaded.
/// y may be x.
///
/// Numbers. |y − exact| ≤ (dim/2 + 16) · 2⁻²⁴ · |y|. Squares whose sum passes fp32 make the vector 0, as in
/// the authors' fp32; a NaN or infinity stays in its vector. A vector's bits depend on itself, w and gate
/// alone. Source: transformers, models/qwen3_5/modeling_qwen3_5.py (Qwen3_5RMSNorm, …RMSNormGated).
namespace assay::ops {

struct RmsNormArgs {
  std::size_t rows = 0;
  std::size_t groups = 1;
  std::size_t dim = 0;
  Rows<const float> x = {};        ///< groups of dim, `x_group_stride` apart
  std::size_t x_group_stride = 0;  ///< elements; 0 means dim
  const float* w = nullptr;        ///< [dim]
  float eps = 0;
  Rows<const float> gate = {};  ///< [rows, groups · dim], or null data for none
  Rows<float> y = {};
  std::size_t y_group_stride = 0;  ///< elements; 0 means dim
};

struct RmsNormForm {
  FormInfo info;
  void (*run)(const Context& context, const RmsNormArgs& args);
};

std::span<const RmsNormForm> rms_norm_forms();

}  // namespace assay::ops
