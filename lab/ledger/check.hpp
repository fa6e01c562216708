#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lab/ledger/ledger.hpp"

namespace assay::lab {

/// What an audit of a ledger found.
struct LedgerAudit {
  std::size_t experiments = 0;
  std::size_t receipts = 0;
  std::size_t imported = 0;           ///< rows
  std::size_t commits = 0;            ///< of the ledger's history that were compared
  std::vector<std::string> problems;  ///< each "where: what"; a sound ledger has none
  std::vector<std::string> notes;     ///< what could not be checked, and why

  bool sound() const { return problems.empty(); }
};

/// Checks everything that the ledger promises and goes on after a problem:
///
/// - every experiment meets the schema; IDs run from 1 without gaps or duplicates;
/// - the frozen part has the hash that it was given, gates and plans lie unedited in frozen/, and where a
///   frozen gate or plan still stands in the repository it is the same (a changed one needs another name);
/// - attached receipts are present, unedited, admissible (Experiment::refusal_of) and as listed; so are those
///   in receipts/ that no experiment attached, as far as their names go;
/// - recomputing the evidence from receipts and frozen rule gives the recorded one; integrated needs
///   positive, superseded a successor;
/// - supersede links go both ways and in no circle;
/// - against every earlier commit of the ledger's folder: no experiment, receipt, frozen file or imported row
///   is gone; a proposal once frozen, a frozen part, attached receipts, evidence and past dispositions are as
///   they were.
///
/// Outside a repository, or in a shallow clone, a note says what of the history was not checked.
LedgerAudit check(const Ledger& ledger);

std::string to_text(const LedgerAudit& audit);
nlohmann::ordered_json to_json(const LedgerAudit& audit);

}  // namespace assay::lab
