#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::lab {

/// A Markdown file with one table, as GitHub's dialect has them (github.github.com/gfm, section 4.10), with
/// what stands before and after it.
///
/// A cell's text is what stands between two pipes, without the spaces at its ends and with `\|` as `|`.
/// Rows may be wrapped over several lines, which GitHub's tables may not: a row ends with the pipe that
/// closes its last cell, and a line break inside a cell is a space. A pipe inside a code span belongs to the
/// cell where the row has the right number of cells only so.
struct MarkdownTable {
  std::string before;  ///< every byte up to the header
  std::vector<std::string> header;
  std::string delimiter;  ///< the line "|---|:-:|", as it was
  std::vector<std::vector<std::string>> rows;
  std::string after;  ///< every byte past the last row

  bool operator==(const MarkdownTable&) const = default;
};

/// Throws Error(malformed) naming `file` and the line: no table, a second one, a header cell that is empty or
/// occurs twice, a row with too few or too many cells, one that can be read in two ways; Error(unsupported)
/// for a NUL byte.
MarkdownTable read_markdown_table(std::string_view text, const std::string& file);

/// The file again, a row a line, pipes escaped: `read_markdown_table` gives the same table. Throws
/// Error(invalid_argument) for a cell with a line break or with spaces at its ends.
std::string to_markdown(const MarkdownTable& table);

/// One row as a line with its line break, as `to_markdown` writes it.
std::string markdown_row(const std::vector<std::string>& cells);

}  // namespace assay::lab
