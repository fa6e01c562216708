// Per-target include guard, as Highway's documentation has it.
#if defined(ASSAY_OPS_GATED_DELTA_RULE_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_OPS_GATED_DELTA_RULE_PANELS_INL_H_
#undef ASSAY_OPS_GATED_DELTA_RULE_PANELS_INL_H_
#else
#define ASSAY_OPS_GATED_DELTA_RULE_PANELS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ops/gated_delta_rule/gates.hpp"
#include "ops/gated_delta_rule/layout.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::ops::gdn {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Tag>;
constexpr std::size_t kLanes = hn::MaxLanes(Tag());

// Four vectors of accumulators for each of two sums (or of four rows) fill what 32 registers hold; with 16
// registers two do.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr std::size_t kPanelVectors = 4;
#else
constexpr std::size_t kPanelVectors = 2;
#endif
constexpr std::size_t kPanelWidth = kPanelVectors * kLanes;
static_assert(Layout::kAlignment % kPanelWidth == 0);

constexpr std::size_t panel_count(std::size_t value_dim) {
  return (value_dim + kPanelWidth - 1) / kPanelWidth;
}

/// y = x · scale / √(Σx² + ε), padded with zeros to `stride`.
HWY_INLINE void normalise(const float* HWY_RESTRICT x, std::size_t count, float scale, float* HWY_RESTRICT y,
                          std::size_t stride) {
  const Tag d;
  std::copy_n(x, count, y);
  std::fill(y + count, y + stride, 0.0f);
  Vector squares = hn::Zero(d);
  for (std::size_t i = 0; i < stride; i += kLanes) {
    const Vector value = hn::Load(d, y + i);
    squares = hn::MulAdd(value, value, squares);
  }
  const float sum = hn::GetLane(hn::SumOfLanes(d, squares));
  const Vector factor = hn::Set(d, scale / std::sqrt(sum + kNormEpsilon));
  for (std::size_t i = 0; i < stride; i += kLanes) hn::Store(hn::Mul(hn::Load(d, y + i), factor), d, y + i);
}

/// Copies a panel's part of a row; a whole one, as most are, without a call.
HWY_INLINE void copy_columns(const float* HWY_RESTRICT from, std::size_t columns, float* HWY_RESTRICT to) {
  if (columns != kPanelWidth) {
    std::copy_n(from, columns, to);
    return;
  }
  for (std::size_t c = 0; c < kPanelWidth; c += kLanes) hn::StoreU(hn::LoadU(Tag(), from + c), Tag(), to + c);
}

/// Rows of `width` floats into panels of `panel_rows` rows, columns padded with zeros.
HWY_INLINE void to_panels(const float* rows, std::size_t row_stride, std::size_t count, std::size_t width,
                          float* panels, std::size_t panel_rows) {
  for (std::size_t column = 0; column < width; column += kPanelWidth) {
    const std::size_t columns = std::min(kPanelWidth, width - column);
    float* panel = panels + column * panel_rows;
    for (std::size_t row = 0; row < count; ++row) {
      copy_columns(rows + row * row_stride + column, columns, panel + row * kPanelWidth);
      std::fill(panel + row * kPanelWidth + columns, panel + (row + 1) * kPanelWidth, 0.0f);
    }
  }
}

HWY_INLINE void from_panels(const float* panels, std::size_t panel_rows, float* rows, std::size_t row_stride,
                            std::size_t count, std::size_t width) {
  for (std::size_t column = 0; column < width; column += kPanelWidth) {
    const std::size_t columns = std::min(kPanelWidth, width - column);
    const float* panel = panels + column * panel_rows;
    for (std::size_t row = 0; row < count; ++row) {
      copy_columns(panel + row * kPanelWidth, columns, rows + row * row_stride + column);
    }
  }
}

/// The initial states of the value heads of one key head, as panels.
HWY_INLINE void load_states(const GatedDeltaRuleArgs& args, const Layout& layout, const float* initial,
                            std::size_t key_head, float* states) {
  const std::size_t group = args.value_heads / args.key_heads;
  std::fill_n(states, group * layout.state_floats, 0.0f);
  if (initial == nullptr) return;
  for (std::size_t member = 0; member < group; ++member) {
    const float* from = initial + (key_head * group + member) * args.key_dim * args.value_dim;
    to_panels(from, args.value_dim, args.key_dim, args.value_dim, states + member * layout.state_floats,
              layout.key_stride);
  }
}

HWY_INLINE void store_states(const GatedDeltaRuleArgs& args, const Layout& layout, const float* states,
                             std::size_t key_head, float* final) {
  if (final == nullptr) return;
  const std::size_t group = args.value_heads / args.key_heads;
  for (std::size_t member = 0; member < group; ++member) {
    float* to = final + (key_head * group + member) * args.key_dim * args.value_dim;
    from_panels(states + member * layout.state_floats, layout.key_stride, to, args.value_dim, args.key_dim,
                args.value_dim);
  }
}

/// q̂ and k̂ of `count` tokens.
HWY_INLINE void load_keys(const GatedDeltaRuleArgs& args, const Layout& layout, std::size_t first,
                          std::size_t count, std::size_t key_head, float* scratch) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(args.key_dim));
  for (std::size_t t = 0; t < count; ++t) {
    const std::size_t offset = key_head * args.key_dim;
    const std::size_t row = t * layout.key_stride;
    normalise(args.q.row(first + t) + offset, args.key_dim, scale, scratch + layout.q + row,
              layout.key_stride);
    normalise(args.k.row(first + t) + offset, args.key_dim, 1.0f, scratch + layout.k + row,
              layout.key_stride);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace assay::ops::gdn
HWY_AFTER_NAMESPACE();

#endif  // ASSAY_OPS_GATED_DELTA_RULE_PANELS_INL_H_
