#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/form.hpp"

/// Op `rope`: rotary position embedding in place on the first `rotary_dim` values of each head, in the
/// half-split pairing of Hugging Face's rotate_half: (x[i], x[i + rotary_dim/2]) turn by
/// position · theta^(−2i / rotary_dim). The other values of the head stay.
/// For text the three sections of Qwen3.5's interleaved m-rope have equal positions, so they are this.
namespace assay::ops {

/// cos and sin of every angle, [rows, rotary_dim / 2]. Angles are products of fp32 numbers, as the authors
/// compute them (transformers, Qwen3_5TextRotaryEmbedding): at positions in the thousands that rounding
/// shows. With `bf16_frequencies` the frequencies are rounded to bf16 first.
void rope_table(std::span<const std::int32_t> positions, std::size_t rotary_dim, float theta,
                std::span<float> cos, std::span<float> sin, bool bf16_frequencies = false);

struct RopeArgs {
  std::size_t rows = 0;
  std::size_t heads = 0;
  std::size_t rotary_dim = 0;  ///< even, at most the head's dimension
  Rows<float> x = {};          ///< heads `head_stride` elements apart
  std::size_t head_stride = 0;
  const float* cos = nullptr;  ///< [rows, rotary_dim / 2]
  const float* sin = nullptr;  ///< [rows, rotary_dim / 2]
};

struct RopeForm {
  FormInfo info;
  void (*run)(const Context& context, const RopeArgs& args);
};

std::span<const RopeForm> rope_forms();

}  // namespace assay::ops
