#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/report/admission.hpp"

/// What the laboratory knows of a model on a device, in one document.
namespace assay::lab {

struct ReportOptions {
  std::vector<std::filesystem::path> receipts;  ///< folders
  std::filesystem::path gates;                  ///< folder of the gates that stand
  std::filesystem::path ledger;     ///< folder; where it is not there, the report has no experiments
  std::filesystem::path selection;  ///< file; likewise
  ReportScope scope;
};

/// The report as JSON, from what `admit` admits (entries: lab/report/entries.hpp), the ledger and the
/// device's selection:
///
///     {"schema": "assay.report/1", "what", "made", "program",
///      "about": {"device": {…}, "models": [{"key", "name"}], "build"},
///      "summary": {"gates": {"passed", "failed", "not_run"}, "windows": {"clean", "contended"}, "receipts":
///                  {"used", "refused"}, "experiments": {evidence: count}, "fastest": [FASTEST],
///                  "attention": [{"tone": "bad" | "open", "section", "text"}]},
///      "bars": [{"gate", "sha256", "type", "comparator", "thresholds"}],
///      "default_forms": {precision: {op: form}}, those of the default order on the device,
///      "forms": [{"op", "precision", "form", "device", "summary", "layout", "needs", "state": "selected" |
///                 "admitted" | "refused", "why", "receipts", "gates": {"op": {"result",
///                 "receipt"} or null, "runs_passed", "runs_failed", "max_abs_dp",
///                 "mean_of_row_mean_abs_dp"}, "against": [{"baseline", "item", "ratio", "interval",
///                 "verdict", "suspicious", "receipt"}]}],
///      "gates": [entry with "label" (the forms that are not the default ones) and "latest"],
///      "not_run": [{"gate", "fixture", "precision", "form", "reason"}],
///      "label" (in words of the same kind), in call costs' curves "differs", also stands in all that
///      follows: "bisections", "windows": [entry with forms[].gates and "fastest": [FASTEST]], "call_cost",
///      "footprint", "growth", "profile", "ceilings", "bench": [entry],
///      "ledger": {"experiments": [{"id", "subject", "hypothesis", "mechanism", "risk", "evidence",
///                 "disposition", "result", "pairs", "receipts": [{"sha256", "kind", "used"}]}],
///                 "imported": [{"name", "rows", "evidence": {…}}], "problems", "notes"} or null,
///      "selection": {"file", "made", "choices", "refused", "differences"} or null,
///      "refused": [{"file", "sha256", "cause": "bytes" | "contents" | "device" | "model" | "gate" |
///                  "build" | "missing" | "record", "reason"}], "sources": [{"file", "bytes", "sha256",
///                  "kind"}],
///      "left_out": [text]}
///
/// FASTEST, of a window's item: {"window", "receipt", "clean", "item", "form" or null, "gates", "next": PAIR
/// or null, "baseline": PAIR or null, "unadmitted": [{"form", "gates"}]}. The form is the one with the least
/// median among those whose gates passed; "next" is the next of them, "baseline" the plan's first form where
/// it is neither; "unadmitted" are forms whose gates did not pass and whose medians are less. PAIR: {"form",
/// "ratio", "interval", "verdict", "wins", "pairs", "suspicious"}, the ratio that form's time over the
/// fastest one's. It was shown to be faster only where the verdict says so and the window was clean.
///
/// A selection or ledger that cannot be read, or is of another device, stands under "refused". Throws what
/// `admit` and `read_known_gates` throw.
nlohmann::ordered_json make_report(const ReportOptions& options);

/// The same as one HTML page without network: see lab/html/html.hpp. Its plots need scripts, its tables none.
std::string report_page(const nlohmann::ordered_json& report);

}  // namespace assay::lab
