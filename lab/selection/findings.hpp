#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/receipt/receipt.hpp"
#include "ops/form.hpp"

namespace assay::lab {

/// Gates that count, by the SHA-256 of their files: a receipt of a gate that was changed since speaks for
/// nothing.
using KnownGates = std::map<std::string, std::string>;  ///< SHA-256 to name

using FormsByOp = std::map<std::string, std::string>;

/// "op=name op=name", as receipts say it, to a map.
FormsByOp forms_by_op(const std::string& text);

/// A gate's verdict on a form, or on the forms of a whole run.
struct FormVerdict {
  std::string sha256;    ///< of the receipt
  bool op_gate = false;  ///< of one op; else of a whole run
  std::string op;        ///< of an op gate
  ops::Precision precision = ops::Precision::fp32;
  FormsByOp forms;
  std::string gate;  ///< its name
  bool pass = false;
};

/// Two forms of one op in one clean window.
struct FormComparison {
  std::string sha256;  ///< of the receipt
  std::string op;
  ops::Precision precision = ops::Precision::fp32;
  std::string baseline;
  std::string candidate;
  std::string item;
  std::string verdict;  ///< of the candidate: "faster", "slower", "inconclusive"
  double ratio = 0;     ///< baseline's time over candidate's
  double low = 0;
  double high = 0;
  bool suspicious = false;
};

/// Whether an op's gate at one precision says something of a run at another: what a form computes depends on
/// the run's precision for products of matrices alone, the rest is fp32 in both (ops::Precision).
bool op_gate_counts(const std::string& op, ops::Precision gate, ops::Precision run);

/// What receipts of gates and windows say of forms, and of which nothing is taken.
struct SelectionFindings {
  std::vector<FormVerdict> verdicts;
  std::vector<FormComparison> comparisons;
  std::vector<std::string> unused;  ///< "SHA-256: why"
};

/// Throws Error(malformed) naming a receipt that has not the fields of its kind.
SelectionFindings read_selection_findings(const std::vector<Receipt>& receipts, const KnownGates& known,
                                          const std::string& device);

}  // namespace assay::lab
