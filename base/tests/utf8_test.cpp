#include "base/utf8.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/error.hpp"

namespace assay {
namespace {

using namespace std::string_literals;

TEST(Utf8, EveryCodePointSurvivesARoundTrip) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    std::string bytes;
    append_utf8(c, bytes);
    const bool surrogate = c >= 0xd800 && c < 0xe000;
    ASSERT_EQ(find_invalid_utf8(bytes).has_value(), surrogate) << std::hex << std::uint32_t{c};
    if (surrogate) continue;
    const auto [decoded, length] = decode_utf8(bytes, 0);
    ASSERT_EQ(decoded, c);
    ASSERT_EQ(length, bytes.size());
    ASSERT_EQ(previous_code_point(bytes, bytes.size()), 0u);
  }
}

struct BadSequence {
  const char* kind;
  std::string bytes;
};

class InvalidUtf8 : public testing::TestWithParam<BadSequence> {};

TEST_P(InvalidUtf8, IsFoundWhereverItStands) {
  for (const std::string& before :
       {""s, "a"s, "1234567"s, "12345678"s, "é"s, "世界😀"s, std::string(100, ' ')}) {
    for (const std::string& after : {""s, "b"s, "12345678"s, "é"s}) {
      EXPECT_EQ(find_invalid_utf8(before + GetParam().bytes + after), before.size())
          << before << '|' << after;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, InvalidUtf8,
    testing::Values(BadSequence{"continuation", "\x80"}, BadSequence{"overlong_2", "\xc0\xaf"},
                    BadSequence{"overlong_2_end", "\xc1\xbf"}, BadSequence{"overlong_3", "\xe0\x9f\xbf"},
                    BadSequence{"overlong_4", "\xf0\x8f\xbf\xbf"},
                    BadSequence{"first_surrogate", "\xed\xa0\x80"},
                    BadSequence{"last_surrogate", "\xed\xbf\xbf"}, BadSequence{"beyond", "\xf4\x90\x80\x80"},
                    BadSequence{"far_beyond", "\xf5\x80\x80\x80"},
                    BadSequence{"five_bytes", "\xf8\x88\x80\x80\x80"}, BadSequence{"cut_2", "\xc3"},
                    BadSequence{"cut_3", "\xe4\xb8"}, BadSequence{"cut_4", "\xf0\x9f\x98"},
                    BadSequence{"no_byte", "\xff"}),
    [](const auto& info) { return info.param.kind; });

TEST(InQuotes, PrintableTextStaysAsItIs) {
  EXPECT_EQ(in_quotes(""), "\"\"");
  EXPECT_EQ(in_quotes("model.layers.0 世界😀"), "\"model.layers.0 世界😀\"");
  EXPECT_EQ(in_quotes("a\"b\\c\n\x7f"), "\"a\\x22b\\x5cc\\x0a\\x7f\"");
}

TEST(InQuotes, LongTextIsCut) {
  EXPECT_EQ(in_quotes(std::string(1000, 'a')), "\"" + std::string(48, 'a') + "…\"");
  EXPECT_FALSE(find_invalid_utf8(in_quotes(std::string(47, 'a') + "世")));
}

TEST(InQuotes, AnyBytesBecomeOneLineOfUtf8) {
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 4 == 0 ? 0xe0 + random() % 32 : random());
    const std::string shown = in_quotes(bytes);
    EXPECT_FALSE(find_invalid_utf8(shown));
    for (const char c : shown) EXPECT_GE(static_cast<unsigned char>(c), 0x20u);
  }
}

TEST(Printable, KeepsTextAndEscapesTheRest) {
  EXPECT_EQ(printable("Größe 世界😀 \"\\"), "Größe 世界😀 \"\\");
  EXPECT_EQ(printable("a\x1b[2Jb\r\n"), "a\\x1b[2Jb\\x0d\\x0a");
  EXPECT_EQ(printable("qwe\xee"), "qwe\\xee");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Printable, WhatSteersATerminalIsEscapedByteByByte) {
  EXPECT_EQ(printable("\u0080\u009b\u009f"), "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f");
  EXPECT_EQ(printable("a\u2028b\u2029"), "a\\xe2\\x80\\xa8b\\xe2\\x80\\xa9");
  for (const char* mark : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069"}) {
    EXPECT_EQ(printable(mark).substr(0, 2), "\\x") << mark;
  }
  // Their neighbours are text: no-break space, the joiner inside emoji, dashes and the narrow space.
  for (const char* text : {"\u00a0", "\u200d", "\u2010", "\u2027", "\u202f", "\u2065", "\u206a", "é"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, AnErrorsMessageIsOneLineWhateverItQuotes) {
  const Error error(ErrorKind::malformed,
                    {.where = "f: tensor a\xee", .found = "x\ny", .expected = "\x1b[m"});
  EXPECT_STREQ(error.what(), "f: tensor a\\xee: x\\x0ay; expected \\x1b[m");
}

}  // namespace
}  // namespace assay
