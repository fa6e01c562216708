#pragma once

#include <cstddef>

#include "ops/gated_delta_rule/gated_delta_rule.hpp"

namespace assay::ops::gdn {

void run_reference(const Context& context, const GatedDeltaRuleArgs& args);
void run_vector(const Context& context, const GatedDeltaRuleArgs& args);

/// Throws Error(mismatch) unless value_heads is a multiple of key_heads and no dimension is 0.
void check_shape(const GatedDeltaRuleArgs& args);

}  // namespace assay::ops::gdn
