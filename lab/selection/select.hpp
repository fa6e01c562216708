#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/receipt/receipt.hpp"
#include "lab/selection/findings.hpp"
#include "ops/selection.hpp"

namespace assay::lab {

/// What receipts say of a form of an op at a precision.
struct FormJudgement {
  std::string op;
  ops::Precision precision = ops::Precision::fp32;
  std::string form;
  bool chosen = false;
  std::string why;                      ///< one sentence
  std::vector<std::string> receipts{};  ///< SHA-256 of those that decided it
};

/// What becomes of receipts.
struct SelectionReport {
  std::string device;
  std::vector<FormJudgement> judgements;  ///< every form of every op at every precision it can serve
  std::vector<std::string> unused;        ///< "SHA-256: why", receipts that were not used
};

/// Chooses for every op and precision. A form is eligible where its op's gate passed on this device, by a
/// gate file that still stands and at a precision that counts (`op_gate_counts`), and no gate of a whole run
/// with it failed. The first eligible form of the default order is the one to beat; an eligible form replaces
/// it that a clean window calls faster on some item and none calls slower, the one with the largest ratio
/// where there are several. A comparison is two forms of a plan that differ in this op alone. A ratio that
/// the window flags as suspicious does not count.
///
/// Where no form of an op is eligible for want of a passed gate the op has no choice here, and a run uses the
/// reference form.
///
/// `forms` are those of the device, with its default order; this machine's where it is the device.
SelectionReport select_by_receipts(const std::vector<Receipt>& receipts, const KnownGates& gates,
                                   const std::string& device,
                                   const std::vector<ops::FormListing>& forms = ops::list_forms());

/// The file of ops/device_selection.hpp.
nlohmann::ordered_json to_json(const SelectionReport& report);
std::string to_text(const SelectionReport& report);

/// The gates of a folder. Throws what reading a gate file throws.
KnownGates read_known_gates(const std::filesystem::path& folder);

}  // namespace assay::lab
