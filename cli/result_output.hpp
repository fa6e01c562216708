#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace assay::cli {

/// Where the result of a laboratory command goes: a table or JSON to standard output and, with --receipts, a
/// receipt into a folder. In this order: the folder is tried before the work, the result is printed, then the
/// receipt is written. So a result that did not reach its reader leaves no receipt, and a receipt that cannot
/// be written takes no result away; either way the command ends with status 2.
struct ResultOutput {
  std::string receipts;  ///< the folder; empty: no receipt is written
  bool json = false;

  void add_to(CLI::App& command);

  /// To be called when the command's arguments and files are known to be good and before its work. Throws
  /// Error(io | missing) where the folder would take no receipt.
  void check_folder() const;

  /// Prints `text` (`document` with --json), then makes and writes the receipts, if any are wanted, and says
  /// where on standard error.
  void deliver(const nlohmann::ordered_json& document, std::string_view text,
               const std::function<std::vector<nlohmann::ordered_json>()>& make_receipts) const;

  /// Writes one receipt and says where. Gives its SHA-256, empty where no receipt is wanted.
  std::string write(const nlohmann::ordered_json& receipt) const;
};

}  // namespace assay::cli
