#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "backbone/part_forms.hpp"
#include "lab/gate/gate_file.hpp"
#include "lab/gate/run_gate.hpp"
#include "ops/selection.hpp"

namespace assay::lab {

/// What a gate is run on, beyond what its file says.
struct GateTarget {
  std::filesystem::path model = {};  ///< of decision and taps gates; empty: none
  std::optional<std::filesystem::path> base = {};
  std::vector<std::filesystem::path> fixtures = {};  ///< where the gate has none of its own
  std::optional<ops::Precision> precision = {};      ///< nothing: the gate's, else the default of its subject
  ops::FormOverrides forms = {};
  std::size_t threads = 0;
  backbone::PartForms parts = nullptr;
  std::function<void(std::size_t, std::size_t)> progress = nullptr;  ///< of loading
  std::function<bool()> stop = nullptr;                              ///< looked at before each case
};

/// The precision that the gate would run at. Throws Error(mismatch) where gate and target name different
/// ones.
ops::Precision run_precision(const GateFile& gate, const GateTarget& target);

/// Runs the gate: a report a fixture, or one for an op gate. Throws Error(invalid_argument) where a model or
/// fixture is needed and not given, or given and not wanted; what reading, loading and running throw,
/// Error(cancelled) where `stop` says so.
std::vector<GateReport> execute_gate(const GateFile& gate, const GateTarget& target);

}  // namespace assay::lab
