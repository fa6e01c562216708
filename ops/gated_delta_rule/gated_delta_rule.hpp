#pragma once

#include <cstddef>
#include <span>

#include "ops/form.hpp"

/// Op `gated_delta_rule`: the recurrence of Gated DeltaNet (Yang, Kautz, Hatamizadeh, "Gated Delta
/// Networks", 2024) as Qwen3.5 uses it (transformers, models/qwen3_5/modeling_qwen3_5.py,
/// torch_recurrent_gated_delta_rule), all in fp32.
///
/// Per value head h with key head h / (value_heads / key_heads), token t:
///   k̂ = k / √(Σk² + 1e-6),  q̂ = q / √(Σq² + 1e-6) / √key_dim
///   β = sigmoid(b[t, h]),    g = decay[h] · softplus(a[t, h] + dt_bias[h])      (decay = −exp(A_log))
///   S ← e^g · S;  S ← S + k̂ ⊗ β (v − Sᵀ k̂);  o = Sᵀ q̂
/// State S is fp32 [value_heads, key_dim, value_dim].
///
/// Numbers. o and S are within 64 · 2⁻²⁴ of the largest norm that a column of the state had, against double
/// precision, at any length; tested as such. Two forms are therefore within twice that of each other.
///
/// Same bits. o of a segment depends on its own tokens and initial state alone. A chunked form cuts a
/// segment at multiples of its chunk counted from the segment's first token: cutting a segment in two
/// calls at such a multiple changes nothing.
namespace assay::ops {

struct GatedDeltaRuleArgs {
  std::size_t key_heads = 0;
  std::size_t value_heads = 0;  ///< a multiple of key_heads
  std::size_t key_dim = 0;
  std::size_t value_dim = 0;
  Rows<const float> q = {};        ///< [tokens, key_heads · key_dim], not normalised
  Rows<const float> k = {};        ///< [tokens, key_heads · key_dim], not normalised
  Rows<const float> v = {};        ///< [tokens, value_heads · value_dim]
  Rows<const float> a = {};        ///< [tokens, value_heads]
  Rows<const float> b = {};        ///< [tokens, value_heads]
  const float* decay = nullptr;    ///< [value_heads], −exp(A_log), at most 0
  const float* dt_bias = nullptr;  ///< [value_heads]
  Rows<float> o = {};              ///< [tokens, value_heads · value_dim]; may not overlap the inputs
  std::span<const SequenceSegment> segments = {};
};

struct GatedDeltaRuleForm {
  FormInfo info;
  std::size_t chunk;  ///< tokens handled at once; 1 for a recurrent form. A call's cut is a multiple of it.
  void (*run)(const Context& context, const GatedDeltaRuleArgs& args);
};

std::span<const GatedDeltaRuleForm> gated_delta_rule_forms();

}  // namespace assay::ops
