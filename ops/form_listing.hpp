#pragma once

#include <vector>

#include "device/cpu_features.hpp"
#include "ops/selection.hpp"

namespace assay::ops {

/// `list_forms` as a machine with these instruction sets would give it, which need not be this one: for what
/// was measured elsewhere.
std::vector<FormListing> list_forms_of(device::CpuFeatureSet machine);

}  // namespace assay::ops
