#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lab/ledger/imported.hpp"
#include "lab/ledger/ledger.hpp"

namespace assay::lab {

/// A ledger with what its pages show of it.
struct LedgerView {
  struct Entry {
    Experiment experiment;
    std::vector<PairFinding> pairs;  ///< of the attached windows that the rule selects
    std::string result;              ///< the findings in one line; empty before the decision
  };
  struct Record {
    std::string name;  ///< imported/<name>.json
    ImportedLedger ledger;
  };
  std::vector<Entry> entries;
  std::vector<Record> records;
};

/// Throws what reading experiments, receipts and imported records throws.
LedgerView view(const Ledger& ledger);

/// A Markdown table, a row an experiment; the same for the same ledger.
std::string to_markdown(const LedgerView& view);

/// One page without any other file or network: filters by evidence, disposition, subsystem and text, every
/// measured ratio with its interval on one axis, links to receipts; light and dark, desk and phone.
std::string to_html(const LedgerView& view);

/// Writes LEDGER.md, index.html and imported/<name>.md into the ledger's folder and says what it wrote.
std::vector<std::filesystem::path> render(const Ledger& ledger);

}  // namespace assay::lab
