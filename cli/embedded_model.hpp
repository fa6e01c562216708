#pragma once

#include <filesystem>

namespace assay::cli {

inline constexpr const char* kEmbeddedModelName = "assay-mini-decide";

/// The run directory of the decision model that comes with the program, assay-mini-decide: in `models` beside
/// the program, in `share/assay/models` beside its folder, or in the source tree that it was built from.
/// Throws Error(missing) naming the places.
std::filesystem::path embedded_decision_model();

}  // namespace assay::cli
