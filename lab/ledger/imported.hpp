#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/ledger/ledger.hpp"
#include "lab/ledger/markdown_table.hpp"

namespace assay::lab {

/// A record of experiments that was kept as a Markdown table before, whole and unchanged, under its own IDs:
///
///     {"schema": "assay.imported-ledger/1", "source": {"name", "sha256"}, "before": "…",
///      "columns": ["ID", …], "delimiter": "|---|…|", "rows": [{"ID": "OPT-0001", …}], "after": "…"}
///
/// The first column holds the IDs: one prefix of capital letters, a hyphen, four digits; one after the other
/// without gaps. What it claims was judged elsewhere: the ledger keeps it and asserts nothing of it.
struct ImportedLedger {
  std::string source;         ///< the file's name
  std::string source_sha256;  ///< of its bytes
  MarkdownTable table;

  bool operator==(const ImportedLedger&) const = default;
};

/// Reads a Markdown file. Throws what `read_markdown_table` throws, Error(malformed) for rows whose IDs are
/// not as said above and for text that is no UTF-8.
ImportedLedger read_markdown_ledger(const std::filesystem::path& file);

/// Reads what an import wrote, from its file or its text. Throws Error(missing | io), Error(malformed) naming
/// file and field.
ImportedLedger read_imported_ledger(const std::filesystem::path& file);
ImportedLedger parse_imported_ledger(std::string_view text, const std::string& file);

/// Imports a Markdown file into imported/<name>.json, and says where. The same file again changes nothing;
/// throws Error(mismatch) where another record has the name, Error(invalid_argument) for a name that is not
/// of a-z, 0-9 and hyphens.
std::filesystem::path import_markdown(const Ledger& ledger, const std::filesystem::path& file,
                                      const std::string& name);

/// The records' files, by name.
std::vector<std::filesystem::path> imported_files(const Ledger& ledger);

/// The place of a column by its name, letter case aside.
std::optional<std::size_t> find_column(const MarkdownTable& table, std::string_view name);

/// How often each value occurs in a column; nothing where there is no such column.
std::map<std::string, std::size_t> count_values(const MarkdownTable& table, std::string_view column);

}  // namespace assay::lab
