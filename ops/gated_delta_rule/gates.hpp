#pragma once

#include <cmath>
#include <cstddef>

#include "ops/gated_delta_rule/gated_delta_rule.hpp"

namespace assay::ops::gdn {

/// What a token does to one head's state: S is multiplied by `keep`, in [0, 1], and the new value is written
/// with strength `write`, in [0, 1].
struct Gates {
  float keep;
  float write;
};

/// Every form takes its gates from here, so that two forms differ in the recurrence alone. There are two per
/// token and head against key_dim · value_dim products: the library's exp is not what takes the time.
inline Gates gates(const GatedDeltaRuleArgs& args, std::size_t token, std::size_t head) {
  const float a = args.a.row(token)[head] + args.dt_bias[head];
  const float b = args.b.row(token)[head];
  // torch.nn.functional.softplus is the identity over its threshold of 20; below, log1p(exp) cannot overflow.
  const float softplus = a > 20.0f ? a : std::log1p(std::exp(a));
  return {.keep = std::exp(args.decay[head] * softplus), .write = 1.0f / (1.0f + std::exp(-b))};
}

/// The L2 norm's epsilon (transformers, models/qwen3_5/modeling_qwen3_5.py, l2norm).
inline constexpr float kNormEpsilon = 1e-6f;

}  // namespace assay::ops::gdn
