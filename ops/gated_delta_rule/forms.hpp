#pragma once

#include <cstddef>

#include "ops/gated_delta_rule/gated_delta_rule.hpp"

namespace assay::ops::gdn {

/// Largest chunk of a chunked form.
inline constexpr std::size_t kMaxChunk = 128;

void run_reference(const Context& context, const GatedDeltaRuleArgs& args);
void run_vector(const Context& context, const GatedDeltaRuleArgs& args);
/// `chunk` is a multiple of 16, at most kMaxChunk.
void run_chunked(const Context& context, const GatedDeltaRuleArgs& args, std::size_t chunk);

/// Throws Error(mismatch) unless value_heads is a multiple of key_heads and no dimension is 0.
void check_shape(const GatedDeltaRuleArgs& args);

}  // namespace assay::ops::gdn
