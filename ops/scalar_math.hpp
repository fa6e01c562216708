#pragma once

#include <cmath>

namespace assay::ops {

/// z / (1 + e^−z) within 4 ulp down to −88.7; below, where e^−z is infinite in fp32, −0 (exact: above
/// −3e-37). The clamp makes that hold at −∞ too. NaN stays.
inline float silu(float z) {
  const float clamped = z < -104.0f ? -104.0f : z;
  return clamped / (1.0f + std::exp(-clamped));
}

}  // namespace assay::ops
