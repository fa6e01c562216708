#include "lab/ledger/imported.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "base/sha256.hpp"
#include "lab/ledger/folder.hpp"
#include "lab/ledger/schema.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLargest = std::size_t{64} << 20;
constexpr std::string_view kSchema = "assay.imported-ledger/1";

[[noreturn]] void refuse(const std::string& where, std::string found, std::string expected) {
  throw Error(ErrorKind::malformed, {where, std::move(found), std::move(expected)});
}

/// "OPT-" and 1 of "OPT-0001"; a prefix of nothing for what is no ID.
std::pair<std::string, std::size_t> id_parts(const std::string& id) {
  constexpr std::size_t kDigits = 4;
  const std::size_t hyphen = id.find('-');
  if (hyphen == std::string::npos || hyphen == 0 || id.size() != hyphen + 1 + kDigits) return {};
  std::size_t number = 0;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const bool fits =
        i < hyphen ? id[i] >= 'A' && id[i] <= 'Z' : i == hyphen || (id[i] >= '0' && id[i] <= '9');
    if (!fits) return {};
    if (i > hyphen) number = 10 * number + static_cast<std::size_t>(id[i] - '0');
  }
  return {id.substr(0, hyphen + 1), number};
}

void check_ids(const MarkdownTable& table, const std::string& file) {
  std::string prefix;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& id = table.rows[i].front();
    const auto [row_prefix, number] = id_parts(id);
    if (i == 0) prefix = row_prefix;
    if (row_prefix.empty() || row_prefix != prefix || number != i + 1) {
      refuse(fmt::format("{}, row {}", file, i + 1), "the ID '" + id + "'",
             fmt::format("{}{:04}: IDs from 0001 on, without gaps or duplicates",
                         prefix.empty() ? "OPT-" : prefix, i + 1));
    }
  }
}

Json to_json(const ImportedLedger& imported) {
  const MarkdownTable& table = imported.table;
  Json rows = Json::array();
  for (const auto& cells : table.rows) {
    Json row = Json::object();
    for (std::size_t i = 0; i < cells.size(); ++i) row[table.header[i]] = cells[i];
    rows.push_back(std::move(row));
  }
  return {{"schema", kSchema},
          {"source", {{"name", imported.source}, {"sha256", imported.source_sha256}}},
          {"before", table.before},
          {"columns", table.header},
          {"delimiter", table.delimiter},
          {"rows", std::move(rows)},
          {"after", table.after}};
}

std::string text_at(const Json& object, const std::string& name, const std::string& where) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_string()) {
    refuse(where, "no text '" + name + "'", "that field");
  }
  return object[name].get<std::string>();
}

const Json& list_at(const Json& object, const std::string& name, const std::string& where) {
  if (!object.contains(name) || !object[name].is_array())
    refuse(where, "no list '" + name + "'", "that field");
  return object[name];
}

void check_size(const Json& object, std::size_t fields, const std::string& where) {
  if (object.size() != fields) {
    refuse(where, fmt::format("{} fields", object.size()), fmt::format("{} and no others", fields));
  }
}

}  // namespace

ImportedLedger read_markdown_ledger(const std::filesystem::path& file) {
  const std::string text = read_text_file(file, kLargest);
  ImportedLedger imported{.source = file.filename().string(),
                          .source_sha256 = sha256_hex(std::as_bytes(std::span(text))),
                          .table = read_markdown_table(text, file.string())};
  check_ids(imported.table, file.string());
  return imported;
}

ImportedLedger parse_imported_ledger(std::string_view text, const std::string& file) {
  constexpr std::size_t kFields = 7;
  const Json json = parse_json_strictly(text, file);
  if (text_at(json, "schema", file) != kSchema)
    refuse(file + ", schema", json["schema"].dump(), std::string(kSchema));
  check_size(json, kFields, file);
  ImportedLedger imported;
  if (!json.contains("source")) refuse(file, "no field 'source'", "that field");
  imported.source = text_at(json["source"], "name", file + ", source");
  imported.source_sha256 = text_at(json["source"], "sha256", file + ", source");
  check_size(json["source"], 2, file + ", source");
  MarkdownTable& table = imported.table;
  table.before = text_at(json, "before", file);
  table.delimiter = text_at(json, "delimiter", file);
  table.after = text_at(json, "after", file);
  for (const Json& name : list_at(json, "columns", file)) {
    if (!name.is_string()) refuse(file + ", columns", name.dump(), "names");
    table.header.push_back(name.get<std::string>());
  }
  const std::set<std::string> names(table.header.begin(), table.header.end());
  if (names.empty() || names.size() != table.header.size())
    refuse(file + ", columns", "no columns or one twice", "names");
  for (const Json& row : list_at(json, "rows", file)) {
    const std::string where = fmt::format("{}, rows[{}]", file, table.rows.size());
    std::vector<std::string> cells;
    for (const std::string& name : table.header) cells.push_back(text_at(row, name, where));
    check_size(row, table.header.size(), where);
    table.rows.push_back(std::move(cells));
  }
  check_ids(table, file);
  return imported;
}

ImportedLedger read_imported_ledger(const std::filesystem::path& file) {
  return parse_imported_ledger(read_text_file(file, kLargest), file.string());
}

std::filesystem::path import_markdown(const Ledger& ledger, const std::filesystem::path& file,
                                      const std::string& name) {
  if (name.empty() || name.front() == '-' ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) {
    throw Error(ErrorKind::invalid_argument,
                {.where = "--name", .found = "'" + name + "'", .expected = "a-z, 0-9 and hyphens"});
  }
  const ImportedLedger imported = read_markdown_ledger(file);
  const std::filesystem::path target = ledger.imported() / (name + ".json");
  const std::string text = to_json_text(to_json(imported), file.string());
  make_folder(ledger.imported());
  const FolderLock lock(ledger.folder());
  if (!path_exists(target)) {
    create_file(target, text);
  } else if (read_imported_ledger(target) != imported) {
    throw Error(ErrorKind::mismatch, {.where = target.string(),
                                      .found = "another record of that name",
                                      .expected = "the same rows, or a name that is free",
                                      .advice = "imported rows stay as they are; --name gives another name"});
  }
  return target;
}

std::vector<std::filesystem::path> imported_files(const Ledger& ledger) {
  std::vector<std::filesystem::path> files;
  if (!is_directory_path(ledger.imported())) return files;
  for (const auto& file : list_directory(ledger.imported())) {
    if (file.extension() == ".json") files.push_back(file);
  }
  return files;
}

std::optional<std::size_t> find_column(const MarkdownTable& table, std::string_view name) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    if (std::equal(table.header[i].begin(), table.header[i].end(), name.begin(), name.end(), same)) return i;
  }
  return std::nullopt;
}

std::map<std::string, std::size_t> count_values(const MarkdownTable& table, std::string_view column) {
  std::map<std::string, std::size_t> counts;
  const auto place = find_column(table, column);
  if (!place) return counts;
  for (const auto& row : table.rows) ++counts[row[*place]];
  return counts;
}

}  // namespace assay::lab
