#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// One token drawn from logits, in the order of ace-step/ACE-Step-1.5, acestep/llm_inference.py
/// (_generate_with_cfg_custom): repetition penalty, top-k, top-p, temperature.
namespace assay::music {

struct TokenSampling {
  float temperature = 0.85f;        ///< 0: the largest logit, the lowest index of equals
  std::size_t top_k = 0;            ///< 0: no limit
  float top_p = 0.9f;               ///< 1: no limit
  float repetition_penalty = 1.0f;  ///< above 1: tokens that occurred become less likely
};

/// Throws Error(invalid_argument) naming the field: a temperature below 0, top_p outside (0, 1], a penalty
/// of 0 or less, anything not finite.
void check_token_sampling(const TokenSampling& sampling);

/// guided = unguided + scale · (guided − unguided), in place. −∞ stays: the difference of two has no value.
void guide(std::span<float> guided, std::span<const float> unguided, float scale);

/// Positive logits of `seen` indices are divided by the penalty, others multiplied (Keskar et al., CTRL,
/// 2019, section 4.1; transformers, RepetitionPenaltyLogitsProcessor), each index once.
void penalize(std::span<float> logits, std::span<const std::size_t> seen, float penalty);

/// The index drawn by the uniform number `u` in [0, 1) from logits where −∞ means forbidden. The same logits
/// and u give the same index on every machine but for the last bits of exp. Top-p keeps the most likely
/// logits until their sum passes top_p, before temperature; of equal logits the lower index is first.
/// Throws Error(non_finite) for a NaN or +∞, or where everything is forbidden.
std::size_t draw_token(std::span<const float> logits, const TokenSampling& sampling, double u);

}  // namespace assay::music
