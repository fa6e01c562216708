#include "cli/table.hpp"

#include <gtest/gtest.h>

namespace assay::cli {
namespace {

TEST(Table, WidthsAreThoseOfATerminal) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("né"), 2u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
  EXPECT_EQ(display_width("日本"), 4u);
  EXPECT_EQ(display_width("\xff\xfe"), 2u);
}

TEST(Table, ColumnsLineUpWhateverTheScript) {
  EXPECT_EQ(format_table({{"id", "x"}, {"日本", "y"}, {"né", "z"}}),
            "id    x\n"
            "日本  y\n"
            "né    z\n");
}

TEST(Table, LongTextIsCutAtACharacter) {
  EXPECT_EQ(fit("abcdef", 6), "abcdef");
  EXPECT_EQ(fit("abcdefg", 6), "abcde…");
  EXPECT_EQ(fit("日本語", 5), "日本…");
  EXPECT_EQ(fit("日本語", 4), "日…");
}

TEST(Table, ControlCharactersReachNoTerminal) {
  EXPECT_EQ(fit("a\x1b[2J\nb\u202e", 20), "a [2J b ");
}

}  // namespace
}  // namespace assay::cli
