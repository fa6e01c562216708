#include "lab/ledger/markdown_table.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"

namespace assay::lab {
namespace {

/// A line with its place, its break left out.
struct Line {
  std::string_view text;
  std::size_t begin = 0;  ///< byte in the file
  std::size_t end = 0;    ///< past its break
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, newline - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t end = std::min(newline + 1, text.size());
    lines.push_back({line, begin, end});
    begin = end;
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The end of the code span that opens at `begin`; `begin` where none closes it (section 6.1: as many
/// backticks as opened it).
std::size_t past_code_span(std::string_view text, std::size_t begin) {
  const std::size_t opened = std::min(text.find_first_not_of('`', begin), text.size()) - begin;
  std::size_t at = begin + opened;
  while ((at = text.find('`', at)) != std::string_view::npos) {
    const std::size_t run = std::min(text.find_first_not_of('`', at), text.size()) - at;
    at += run;
    if (run == opened) return at;
  }
  return begin;
}

struct Split {
  std::size_t pipes = 0;           ///< that separate cells
  bool closed = false;             ///< begins and ends with one
  std::vector<std::string> cells;  ///< between them
};

Split split(std::string_view row, bool spans) {
  Split split;
  std::string cell;
  const std::string_view text = trimmed(row);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '|') {
      cell.push_back(text[++i]);
    } else if (text[i] == '|') {
      if (split.pipes++ > 0) split.cells.emplace_back(trimmed(cell));
      split.closed = i + 1 == text.size() && text.front() == '|';
      cell.clear();
    } else if (const std::size_t end = spans && text[i] == '`' ? past_code_span(text, i) : i; end > i) {
      for (; i < end; ++i) {
        if (text[i] == '\\' && i + 1 < end && text[i + 1] == '|') ++i;
        cell.push_back(text[i]);
      }
      --i;
    } else {
      cell.push_back(text[i]);
      // The rest of a run of backticks that opens nothing opens nothing either.
      while (spans && text[i] == '`' && i + 1 < text.size() && text[i + 1] == '`') cell.push_back(text[i++]);
    }
  }
  return split;
}

bool is_delimiter_cell(std::string_view cell) {
  if (cell.starts_with(':')) cell.remove_prefix(1);
  if (cell.ends_with(':')) cell.remove_suffix(1);
  return !cell.empty() && cell.find_first_not_of('-') == std::string_view::npos;
}

bool is_delimiter(std::string_view line, std::size_t columns) {
  const Split cells = split(line, false);
  return cells.closed && cells.cells.size() == columns &&
         std::all_of(cells.cells.begin(), cells.cells.end(), is_delimiter_cell);
}

bool begins_row(const Line& line) {
  return trimmed(line.text).starts_with('|');
}

/// A row as it begins at some line: its cells, and how many lines it took.
struct Reading {
  std::vector<std::string> cells;
  std::size_t lines = 0;
};

class RowReader {
 public:
  RowReader(const std::vector<Line>& lines, std::size_t columns, const std::string& file)
      : lines_(lines), columns_(columns), file_(file) {}

  Reading read(std::size_t first) const {
    const auto plain = reading(first, false, false);
    const auto spans = reading(first, true, plain.has_value());
    if (!plain && !spans) refuse(first);
    if (plain && spans && plain->cells != spans->cells) {
      throw Error(ErrorKind::malformed, {.where = where(first),
                                         .found = "a row that can be read in two ways",
                                         .expected = fmt::format("{} cells", columns_),
                                         .advice = "write a pipe inside `code` as \\|"});
    }
    return plain ? *plain : *spans;
  }

 private:
  /// `own_lines` stops at a line that may begin the next row: it is looked past only where nothing else
  /// makes a row.
  std::optional<Reading> reading(std::size_t first, bool spans, bool own_lines) const {
    std::string joined;
    for (std::size_t i = first; i < lines_.size() && !trimmed(lines_[i].text).empty(); ++i) {
      // A row that ends in a pipe and a line that begins with one are two rows, whatever their cells add up
      // to.
      if (i > first && begins_row(lines_[i]) && (own_lines || joined.ends_with('|'))) return std::nullopt;
      if (i > first) joined.push_back(' ');
      joined.append(trimmed(lines_[i].text));
      Split row = split(joined, spans);
      if (row.pipes > columns_ + 1) return std::nullopt;
      if (row.pipes == columns_ + 1) {
        if (!row.closed) return std::nullopt;
        return Reading{std::move(row.cells), i - first + 1};
      }
    }
    return std::nullopt;
  }

  [[noreturn]] void refuse(std::size_t first) const {
    const std::size_t cells = split(lines_[first].text, false).cells.size();
    throw Error(ErrorKind::malformed,
                {.where = where(first),
                 .found = fmt::format("a row with {} cells on its first line", cells),
                 .expected = fmt::format("{} cells, the last closed by a pipe", columns_)});
  }

  std::string where(std::size_t line) const { return fmt::format("{}, line {}", file_, line + 1); }

  const std::vector<Line>& lines_;
  std::size_t columns_;
  std::string file_;
};

/// The line of the header, or how many lines there are.
std::size_t find_header(const std::vector<Line>& lines) {
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    if (!begins_row(lines[i])) continue;
    const Split header = split(lines[i].text, false);
    if (header.closed && is_delimiter(lines[i + 1].text, header.cells.size())) return i;
  }
  return lines.size();
}

void check_header(const std::vector<std::string>& header, const std::string& where) {
  std::set<std::string> names;
  for (const std::string& name : header) {
    if (name.empty() || !names.insert(name).second) {
      throw Error(ErrorKind::malformed,
                  {.where = where,
                   .found = name.empty() ? "a column without a name" : "two columns '" + name + "'",
                   .expected = "a name of its own for every column"});
    }
  }
}

}  // namespace

MarkdownTable read_markdown_table(std::string_view text, const std::string& file) {
  if (text.find('\0') != std::string_view::npos) {
    throw Error(ErrorKind::unsupported, {.where = file, .found = "a NUL byte", .expected = "a text file"});
  }
  const std::vector<Line> lines = lines_of(text);
  const std::size_t header = find_header(lines);
  if (header == lines.size()) {
    throw Error(
        ErrorKind::malformed,
        {.where = file, .found = "no table", .expected = "a line '| … | … |' and below it '|---|---|'"});
  }
  MarkdownTable table{.before = std::string(text.substr(0, lines[header].begin)),
                      .header = split(lines[header].text, false).cells,
                      .delimiter = std::string(lines[header + 1].text),
                      .rows = {},
                      .after = {}};
  check_header(table.header, fmt::format("{}, line {}", file, header + 1));
  const RowReader reader(lines, table.header.size(), file);
  std::size_t next = header + 2;
  while (next < lines.size() && begins_row(lines[next])) {
    Reading row = reader.read(next);
    table.rows.push_back(std::move(row.cells));
    next += row.lines;
  }
  for (std::size_t i = next; i < lines.size(); ++i) {
    if (!begins_row(lines[i])) continue;
    throw Error(ErrorKind::malformed, {.where = fmt::format("{}, line {}", file, i + 1),
                                       .found = "a row or a second table below the table's end",
                                       .expected = "one table",
                                       .advice = "join its rows to the table, or import it by itself"});
  }
  if (next < lines.size()) table.after = text.substr(lines[next].begin);
  return table;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) {
    if (cell.find_first_of("\r\n") != std::string::npos || trimmed(cell) != cell) {
      throw Error(ErrorKind::invalid_argument, {.where = "table",
                                                .found = "a cell with a line break or spaces at its ends",
                                                .expected = "a cell of one trimmed line"});
    }
    line.push_back(' ');
    for (const char letter : cell) {
      if (letter == '|') line.push_back('\\');
      line.push_back(letter);
    }
    if (!cell.empty()) line.push_back(' ');
    line.push_back('|');
  }
  return line + "\n";
}

std::string to_markdown(const MarkdownTable& table) {
  std::string text = table.before + markdown_row(table.header) + table.delimiter + "\n";
  for (const auto& row : table.rows) text += markdown_row(row);
  return text + table.after;
}

}  // namespace assay::lab
