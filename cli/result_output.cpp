#include "cli/result_output.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "cli/output.hpp"
#include "lab/receipt/receipt.hpp"

namespace assay::cli {

void ResultOutput::add_to(CLI::App& command) {
  command.add_option("--receipts", receipts, "Folder to write the receipt into; without it none is written");
  command.add_flag("--json", json, "Print the result as JSON instead of a table");
}

void ResultOutput::check_folder() const {
  if (!receipts.empty()) lab::check_receipt_folder(receipts);
}

void ResultOutput::deliver(const nlohmann::ordered_json& document, std::string_view text,
                           const std::function<std::vector<nlohmann::ordered_json>()>& make_receipts) const {
  if (json) {
    print(document.dump(2) + "\n");
  } else {
    print_lines(text);
  }
  if (receipts.empty()) return;
  for (const nlohmann::ordered_json& receipt : make_receipts()) write(receipt);
}

std::string ResultOutput::write(const nlohmann::ordered_json& receipt) const {
  if (receipts.empty()) return {};
  const lab::Receipt written = lab::write_receipt(receipts, receipt);
  fmt::print(stderr, "receipt {}\n", printable(written.file.string()));
  return written.sha256;
}

}  // namespace assay::cli
