#pragma once

#include <filesystem>

namespace assay::cli {

/// The run directory of assay-mini-decide, the decision model that comes with the program: in `models` beside
/// the program, in `share/assay/models` beside its folder, or in the source tree that it was built from. Says
/// on standard error that it is used. Throws Error(missing) naming the places.
std::filesystem::path embedded_decision_model();

/// The same for assay-mini-compose, an ACE-Step checkpoint in the diffusers layout with a planner in it.
std::filesystem::path embedded_music_model();

}  // namespace assay::cli
