#pragma once

#include <cmath>

namespace assay::ops {

/// z / (1 + e^−z). Below −104 e^−z is infinite in fp32 and the quotient −0; the clamp makes that hold at −∞
/// too. NaN stays.
inline float silu(float z) {
  const float clamped = z < -104.0f ? -104.0f : z;
  return clamped / (1.0f + std::exp(-clamped));
}

}  // namespace assay::ops
