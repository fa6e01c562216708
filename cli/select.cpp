#include <filesystem>
#include <memory>
#include <string>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "lab/receipt/machine.hpp"
#include "lab/selection/select.hpp"

namespace assay::cli {
namespace {

struct SelectOptions {
  std::string receipts = "ledger/receipts";
  std::string gates = "lab/gates";
  std::string out;
};

void select(const SelectOptions& options) {
  const lab::SelectionReport report = lab::select_by_receipts(
      lab::read_receipts(options.receipts), lab::read_known_gates(options.gates), lab::this_machine().id);
  print_lines(lab::to_text(report));
  if (!options.out.empty()) write_file_atomically(options.out, lab::to_json(report).dump(2) + "\n");
}

}  // namespace

void add_select(CLI::App& lab) {
  const auto options = std::make_shared<SelectOptions>();
  CLI::App* command =
      lab.add_subcommand("select", "Choose the forms of this device from receipts of gates and windows");
  command->add_option("--receipts", options->receipts, "Folder of receipts")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  command->add_option("--gates", options->gates, "Folder of the gates that count")->capture_default_str();
  command->add_option("--out", options->out, "Write the selection to this JSON file");
  command->callback([options] { select(*options); });
}

}  // namespace assay::cli
