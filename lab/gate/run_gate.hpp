#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/gate/comparators.hpp"
#include "lab/gate/gate_file.hpp"
#include "lab/gate/subject.hpp"
#include "lab/receipt/receipt.hpp"

namespace assay::lab {

/// What became of a red arm: failed as it must (red), passed (green), or changed no case (inert).
enum class ArmOutcome { red, green, inert };

std::string_view to_string(ArmOutcome outcome);  ///< "RED", "GREEN", "INERT"

struct ArmReport {
  RedArm arm;
  Verdict verdict;  ///< over the cases that the arm changed; nothing where it is inert
  std::size_t changed = 0;
  std::size_t unchanged = 0;  ///< cases where the arm gave the same bits
  std::size_t left_out = 0;   ///< cases that have no such change
  ArmOutcome outcome = ArmOutcome::inert;
};

/// A gate's verdict on one subject. As a receipt of kind `gate`:
/// subject: what Subject::describe says, and "gate": {"name", "sha256" (null for the built-in one)}.
/// result: "comparator", "thresholds", "run" {"cases", the comparator's measures, "failures", "result"},
/// "red_arms" {name: {"arm", "factor" | "seconds", "cases_changed", "cases_unchanged", "cases_left_out",
/// measures, "outcome"}}, "result" ("PASS" | "FAIL").
struct GateReport {
  std::string name;
  std::string sha256;
  Bar bar;
  nlohmann::ordered_json subject;
  std::size_t cases = 0;
  Verdict verdict;
  std::vector<ArmReport> red_arms;

  /// The run passes, and every red arm is red.
  bool pass() const;
};

/// Runs every case and every red arm. `stop` is looked at before each case. Throws what the subject throws,
/// Error(limit_exceeded) for an arm that no case has room for, and Error(cancelled) where `stop` says so. No
/// cases is a failure, not an error.
GateReport run_gate(const GateFile& gate, Subject& subject, const std::function<bool()>& stop = nullptr);

nlohmann::ordered_json receipt_subject(const GateReport& report);
nlohmann::ordered_json receipt_result(const GateReport& report);

/// Both in one document, for --json.
nlohmann::ordered_json to_json(const GateReport& report);
std::string to_text(const GateReport& report);

}  // namespace assay::lab
