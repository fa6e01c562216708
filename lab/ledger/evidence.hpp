#pragma once

#include <string>
#include <vector>

#include "lab/ledger/rule.hpp"
#include "lab/receipt/receipt.hpp"

namespace assay::lab {

/// The one place where the ledger reads what other parts of the lab wrote. Each function throws
/// Error(malformed) naming the receipt and the field that it could not read.

/// A gate receipt (lab/gate): subject.gate {sha256, name}, and result.result, red arms included. The built-in
/// gate has no file and so no SHA-256: its receipts are no evidence here.
GateFinding read_gate_finding(const Receipt& receipt);

/// A window receipt (lab/window): subject.plan.sha256, result.clean, result.pairs, and from result.times
/// which of the pairs' times are too good to be true.
WindowFinding read_window_finding(const Receipt& receipt);

/// What a rule is judged by, out of all attached receipts.
Findings read_findings(const Rule& rule, const std::vector<Receipt>& receipts);

/// `made` and `device.id` of any receipt.
std::string made(const Receipt& receipt);
std::string device_id(const Receipt& receipt);

}  // namespace assay::lab
