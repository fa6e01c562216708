#include "text/split_pattern.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/tests/expect_error.hpp"
#include "text/tests/random_text.hpp"

namespace assay::text {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(SplitCursor& cursor, std::string_view text) {
  Pieces pieces;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = cursor.end_of_piece(text, begin);
    EXPECT_GT(end, begin);
    EXPECT_LE(end, text.size());
    if (end <= begin || end > text.size()) break;
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

Pieces split(std::string_view pattern, std::string_view text) {
  const auto made = make_split_pattern(pattern, "test");
  return split(*made->cursor(), text);
}

using PatternPointer = std::unique_ptr<const SplitPattern>;

std::pair<PatternPointer, PatternPointer> both_forms(std::string_view pattern) {
  return {make_split_pattern(pattern, "test"), make_regex_split_pattern(pattern, "test")};
}

class QwenPatterns : public testing::TestWithParam<std::string_view> {};

TEST_P(QwenPatterns, TheScannerAgreesWithPcre2OnRandomText) {
  const auto [scanner_pattern, regex_pattern] = both_forms(GetParam());
  const auto scanner = scanner_pattern->cursor(), regex = regex_pattern->cursor();
  RandomText random(3);
  for (int i = 0; i < 6000; ++i) {
    const std::string text = random.text(30);
    ASSERT_EQ(split(*scanner, text), split(*regex, text)) << text;
  }
}

TEST_P(QwenPatterns, TheScannerAgreesWithPcre2OnEveryCodePointBesideEveryKind) {
  const auto [scanner_pattern, regex_pattern] = both_forms(GetParam());
  const auto scanner = scanner_pattern->cursor(), regex = regex_pattern->cursor();
  std::string text;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    for (const std::string_view beside : {"a", " ", "'", "\n", "1", "!", "\u0301"}) {
      append_utf8(c, text);
      text += beside;
    }
    // Far above, where nothing is assigned, one code point of many will do.
    if (c >= 0x32000 && c < 0xe0000) c += 0xff;
    if (text.size() < (1u << 16)) continue;
    ASSERT_EQ(split(*scanner, text), split(*regex, text)) << std::hex << std::uint32_t{c};
    text.clear();
  }
}

TEST_P(QwenPatterns, TheScannerAgreesWithPcre2OnEveryShortMixOfKinds) {
  const auto [scanner_pattern, regex_pattern] = both_forms(GetParam());
  const auto scanner = scanner_pattern->cursor(), regex = regex_pattern->cursor();
  const std::vector<std::string> kinds = {"a",  "S",  "e", "l", "'",      " ",      "\t",
                                          "\n", "\r", "1", "!", "\u0301", "\u017f", "\u3000"};
  const std::size_t count = kinds.size();
  for (std::size_t mix = 0; mix < count * count * count * count; ++mix) {
    std::string text;
    for (std::size_t rest = mix, i = 0; i < 4; ++i, rest /= count) text += kinds[rest % count];
    ASSERT_EQ(split(*scanner, text), split(*regex, text)) << text;
  }
}

TEST_P(QwenPatterns, LongRunsAreOnePieceForBoth) {
  const auto [scanner_pattern, regex_pattern] = both_forms(GetParam());
  const auto scanner = scanner_pattern->cursor(), regex = regex_pattern->cursor();
  for (const char* const unit : {"a", " ", "\n", "!", "\u0301", "世"}) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += unit;
    EXPECT_EQ(split(*scanner, text), Pieces{text});
    EXPECT_EQ(split(*regex, text), Pieces{text});
  }
}

TEST_P(QwenPatterns, GoingBackOverTenMegabytesOfSpacesIsNoBacktrackingWithoutEnd) {
  std::string text;
  text.resize(11'000'000, ' ');
  const auto regex = make_regex_split_pattern(GetParam(), "test");
  EXPECT_EQ(regex->cursor()->end_of_piece(text, 0), text.size());
}

INSTANTIATE_TEST_SUITE_P(Both, QwenPatterns, testing::Values(kQwen2SplitPattern, kQwen35SplitPattern));

TEST(SplitPattern, CutsAsTheQwenFilesMean) {
  EXPECT_EQ(split(kQwen2SplitPattern, "I'LL say  \"hi\"\n\n 42x"),
            (Pieces{"I", "'LL", " say", " ", " \"", "hi", "\"\n\n", " ", "4", "2", "x"}));
  EXPECT_EQ(split(kQwen2SplitPattern, "e\u0301a"), (Pieces{"e", "\u0301a"}));
  EXPECT_EQ(split(kQwen35SplitPattern, "e\u0301a"), Pieces{"e\u0301a"});
  EXPECT_EQ(split(kQwen2SplitPattern, "it'\u017f"), (Pieces{"it", "'\u017f"}));
}

TEST(SplitPattern, WhatLiesBetweenMatchesIsAPiece) {
  EXPECT_EQ(split(R"(\p{N}{1,3})", "ab1234c"), (Pieces{"ab", "123", "4", "c"}));
  EXPECT_EQ(split(R"([a-c]+|\.)", "xabc.."), (Pieces{"x", "abc", ".", "."}));
}

TEST(SplitPattern, APatternThatNeverStopsBacktrackingIsAnError) {
  const auto pattern = make_split_pattern(R"((?:(?:a|a)+b)+c)", "file: pattern");
  expect_error(ErrorKind::limit_exceeded, "file: pattern",
               [&] { split(*pattern->cursor(), std::string(100, 'a') + "b, c"); });
}

class ForeignConstructs : public testing::TestWithParam<const char*> {};

TEST_P(ForeignConstructs, AreRefusedByName) {
  expect_error(ErrorKind::unsupported, "file: pattern",
               [] { make_split_pattern(GetParam(), "file: pattern"); });
}

INSTANTIATE_TEST_SUITE_P(Kinds, ForeignConstructs,
                         testing::Values("", "a*", "(a)", "(?<=a)b", "(?<!a)b", "(?>a)b", "(?<n>a)", "(?i)a",
                                         "(?i:st)", "(?i:SS)", "(?i:[a-z])", "(?i:ä)", "(?i:a(?:b))", "^a",
                                         "a$", ".", "\\d", "\\w", "\\h", "\\R", "\\X", "\\Aa", "\\bx",
                                         "\\p{Lu}", "\\P{L}", "\\p{^L}", "\\x41", "[[:alpha:]]", "[a&&b]",
                                         "[a[b]]", "[]a]", "[a", "[a-\\s]", "[\\s-a]", "[\\S]", "a{,3}",
                                         "a{2}+", "a{2}{3}", "a+*?", "a{x}", "a{", "(?:a", "a)", "*a", "\\",
                                         "a{99999999}", "\xff"));

TEST(SplitPattern, APatternOfAbsurdLengthIsRefused) {
  expect_error(ErrorKind::unsupported, "5000 bytes", [] { make_split_pattern(std::string(5000, 'a'), "p"); });
}

}  // namespace
}  // namespace assay::text
