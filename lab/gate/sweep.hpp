#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/gate/execute.hpp"
#include "lab/gate/gate_file.hpp"
#include "lab/gate/run_gate.hpp"

namespace assay::lab {

/// A model with a fixture of its oracle: a .safetensors file goes to taps gates, one of songs to music gates,
/// any other to decision gates.
struct SweepPair {
  std::filesystem::path model;
  std::filesystem::path fixture;
};

struct SweepPlan {
  std::vector<GateFile> gates = {};
  std::vector<SweepPair> pairs = {};
  std::vector<std::string> vary = {};  ///< ops whose forms are all run, one op at a time
  std::vector<ops::Precision> precisions = {};
  std::optional<std::filesystem::path> base = {};  ///< of decision models
  std::size_t threads = 0;
  std::function<bool()> stop = nullptr;  ///< looked at before each case of each row
};

/// One line of the table: a gate on a form, or why it was not run.
struct SweepRow {
  std::string gate;
  std::string comparator;
  std::string fixture;    ///< empty for an op gate
  std::string precision;  ///< "fp32"
  std::string form;       ///< "gated_delta_rule=chunk_16"; "default" where nothing is varied
  std::optional<GateReport> report;
  std::string not_run;         ///< the reason, where there is no report
  std::string receipt_sha256;  ///< empty where no receipts are written
};

/// As a receipt of kind `sweep`: subject: "gates" [{"name", "sha256"}], "vary", "precisions", "fixtures"
/// [{"fixture", "fixture_sha256", "model_identity"}] of what was run; result: "rows" [{"gate", "fixture",
/// "precision", "form", "result" ("PASS" | "FAIL" | "not run"), "reason" or "measures" and "red_arms" {name:
/// outcome}, "receipt"}], "passed", "failed", "not_run".
struct SweepReport {
  std::vector<GateFile> gates;
  std::vector<std::string> vary;
  std::vector<ops::Precision> precisions;
  std::vector<SweepRow> rows;
  std::size_t planned = 0;  ///< rows that a whole sweep has

  bool whole() const { return rows.size() == planned; }
  /// The sweep is whole, and every gate that ran passed.
  bool pass() const;
};

/// "3 of 12 rows done".
std::string rows_done(const SweepReport& report);

/// Sees a row when it is done and may write its receipt: the row, which one it is (from 1), of how many.
using SweepObserver = std::function<void(SweepRow&, std::size_t, std::size_t)>;

/// Runs every gate × precision × pair × form. A form that this machine lacks the instructions for, and an op
/// that a model has no layers for, are rows with the reason; a gate runs at its own precision, a matmul form
/// at its own. Where `stop` says so, the sweep ends early: the row that runs is dropped, those before it are
/// the report. Throws Error(invalid_argument) for an op that there is none of, or a plan in which no gate
/// runs at all.
SweepReport sweep(const SweepPlan& plan, const SweepObserver& on_row);

nlohmann::ordered_json receipt_subject(const SweepReport& report);
nlohmann::ordered_json receipt_result(const SweepReport& report);

/// A table for each comparator, whose measures are its columns. The first row has the column names, the fifth
/// column the result.
struct SweepTable {
  std::string comparator;
  std::vector<std::vector<std::string>> cells;
};
std::vector<SweepTable> tables(const SweepReport& report);

/// One page, whole in itself: no script, no network, light and dark.
std::string to_html(const SweepReport& report);

}  // namespace assay::lab
