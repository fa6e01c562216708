#include "lab/ledger/markdown_table.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/tests/expect_error.hpp"

namespace assay::lab {
namespace {

using Cells = std::vector<std::string>;

MarkdownTable read(const std::string& rows) {
  return read_markdown_table("| A | B | C |\n|---|:-:|--:|\n" + rows, "t.md");
}

TEST(MarkdownTable, KeepsProseAndCells) {
  const MarkdownTable table = read_markdown_table(
      "# Title\n\nBefore.\n| A | B |\n|---|---|\n| 1 | two words |\n|3||\nAfter.\n\nMore", "t.md");
  EXPECT_EQ(table.before, "# Title\n\nBefore.\n");
  EXPECT_EQ(table.header, (Cells{"A", "B"}));
  EXPECT_EQ(table.rows, (std::vector<Cells>{{"1", "two words"}, {"3", ""}}));
  EXPECT_EQ(table.after, "After.\n\nMore");
}

struct Row {
  const char* name;
  std::string text;
  std::vector<Cells> cells;
};

class Rows : public testing::TestWithParam<Row> {};

TEST_P(Rows, AreRead) {
  EXPECT_EQ(read(GetParam().text).rows, GetParam().cells);
}

TEST_P(Rows, AreTheSameAfterWritingThem) {
  const MarkdownTable table = read(GetParam().text);
  EXPECT_EQ(read_markdown_table(to_markdown(table), "again.md"), table);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Rows,
    testing::Values(
        Row{"plain", "| 1 | 2 | 3 |\n", {{"1", "2", "3"}}},
        Row{"last_line_without_break", "| 1 | 2 | 3 |", {{"1", "2", "3"}}},
        Row{"carriage_returns", "| 1 | 2 | 3 |\r\n| 4 | 5 | 6 |\r\n", {{"1", "2", "3"}, {"4", "5", "6"}}},
        Row{"wrapped_between_cells", "| 1 | 2 |\n3 |\n| 4 | 5 | 6 |\n", {{"1", "2", "3"}, {"4", "5", "6"}}},
        Row{"wrapped_inside_a_cell", "| 1 | two\nwords | 3 |\n", {{"1", "two words", "3"}}},
        Row{"wrapped_thrice", "| 1\n| 2\n| 3\n|\n", {{"1", "2", "3"}}},
        Row{"escaped_pipe", "| 1 | a \\| b | 3 |\n", {{"1", "a | b", "3"}}},
        Row{"escaped_pipe_in_code", "| 1 | `a \\| b` | 3 |\n", {{"1", "`a | b`", "3"}}},
        Row{"bare_pipe_in_code", "| 1 | `a | b` | 3 |\n", {{"1", "`a | b`", "3"}}},
        Row{"bare_pipe_in_double_backticks", "| 1 | ``a ` | b`` | 3 |\n", {{"1", "``a ` | b``", "3"}}},
        Row{"single_backticks", "| a ` b | c | d ` e |\n", {{"a ` b", "c", "d ` e"}}},
        Row{"backslashes", "| C:\\dir\\ | \\\\| | 3 |\n", {{"C:\\dir\\", "\\|", "3"}}},
        Row{"empty_cells", "||||\n", {{"", "", ""}}}, Row{"none", "", {}},
        Row{"other_scripts", "| 世界 | é | 12.06× |\n", {{"世界", "é", "12.06×"}}}),
    [](const auto& info) { return info.param.name; });

struct BadTable {
  const char* name;
  std::string rows;
  const char* message;
};

class BadTables : public testing::TestWithParam<BadTable> {};

TEST_P(BadTables, AreRefusedWithTheirLine) {
  expect_error(ErrorKind::malformed, GetParam().message, [] { read(GetParam().rows); });
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BadTables,
    testing::Values(BadTable{"too_few_cells", "| 1 | 2 |\n| 4 | 5 | 6 |\n", "line 3"},
                    BadTable{"too_many_cells", "| 1 | 2 | 3 | 4 |\n", "line 3"},
                    BadTable{"two_short_rows_are_no_long_one", "| 1 |\n| 2 |\n", "line 3"},
                    BadTable{"never_closed", "| 1 | 2 | 3\n\n", "line 3"},
                    BadTable{"text_past_the_end", "| 1 | 2 | 3 | more\n", "line 3"},
                    BadTable{"two_readings", "| 1 | `x|y` |\nz |\n", "two ways"},
                    BadTable{"second_table", "| 1 | 2 | 3 |\n\ntext\n| 4 | 5 | 6 |\n", "line 6"}),
    [](const auto& info) { return info.param.name; });

TEST(MarkdownTable, WithoutATableOrNamesIsRefused) {
  expect_error(ErrorKind::malformed, "no table", [] { read_markdown_table("text\n", "t.md"); });
  expect_error(ErrorKind::malformed, "no table", [] { read_markdown_table("", "t.md"); });
  expect_error(ErrorKind::malformed, "no table", [] { read_markdown_table("| A | B |\n|---|\n", "t.md"); });
  expect_error(ErrorKind::malformed, "two columns",
               [] { read_markdown_table("| A | A |\n|---|---|\n", "t.md"); });
  expect_error(ErrorKind::malformed, "without a name",
               [] { read_markdown_table("| A | |\n|---|---|\n", "t.md"); });
}

TEST(MarkdownTable, CellsThatNoLineCanHoldAreNotWritten) {
  expect_error(ErrorKind::invalid_argument, "line break", [] { markdown_row({"a\nb"}); });
  expect_error(ErrorKind::invalid_argument, "spaces", [] { markdown_row({" a"}); });
}

TEST(MarkdownTable, AnyCellsSurviveWritingAndReading) {
  std::mt19937 random(7);
  const std::string letters = "ab |\\`-:. ";
  for (int round = 0; round < 300; ++round) {
    MarkdownTable table{
        .before = "", .header = {"A", "B", "C"}, .delimiter = "|---|---|---|", .rows = {}, .after = ""};
    for (std::size_t row = 0; row < 3; ++row) {
      Cells cells(3);
      for (std::string& cell : cells) {
        for (std::size_t i = random() % 8; i > 0; --i) cell.push_back(letters[random() % letters.size()]);
        while (cell.starts_with(' ')) cell.erase(0, 1);
        while (cell.ends_with(' ')) cell.pop_back();
      }
      table.rows.push_back(cells);
    }
    const std::string text = to_markdown(table);
    ASSERT_EQ(read_markdown_table(text, "t.md"), table) << text;
  }
}

}  // namespace
}  // namespace assay::lab
