#pragma once

#include <cstddef>
#include <span>

#include "ops/form.hpp"

/// Op `swiglu`: y = silu(gate) · up elementwise, fp32; silu(z) = z / (1 + e^−z), 0 at −∞. y may be gate or
/// up.
///
/// Numbers. |y − exact| ≤ 5 · 2⁻²³ · |y|, or 3e-37 · |up| where gate < −88.7. Each value depends on its own
/// gate and up alone.
namespace assay::ops {

struct SwigluArgs {
  std::size_t rows = 0;
  std::size_t dim = 0;
  Rows<const float> gate = {};
  Rows<const float> up = {};
  Rows<float> y = {};
};

struct SwigluForm {
  FormInfo info;
  void (*run)(const Context& context, const SwigluArgs& args);
};

std::span<const SwigluForm> swiglu_forms();

}  // namespace assay::ops
