#include "text/unicode.hpp"

#include <gtest/gtest.h>

#include <string>

#include "text/tests/random_text.hpp"

namespace assay::text {
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

TEST(Utf8, RandomTextIsValidAndACutCodePointIsNot) {
  RandomText random(1);
  for (int i = 0; i < 500; ++i) {
    std::string text = random.text(40);
    EXPECT_FALSE(find_invalid_utf8(text));
    if (text.empty() || static_cast<unsigned char>(text.back()) < 0x80) continue;
    const std::size_t last = previous_code_point(text, text.size());
    text.pop_back();
    EXPECT_EQ(find_invalid_utf8(text), last);
  }
}

TEST(CodePointClasses, AreThoseOfUnicode16) {
  const std::uint8_t* classes = code_point_classes();
  const auto count = [&](int bits) {
    std::size_t found = 0;
    for (char32_t c = 0; c < 0x110000; ++c) found += (classes[c] & bits) != 0 ? 1 : 0;
    return found;
  };
  // DerivedGeneralCategory.txt states these totals.
  EXPECT_EQ(count(class_letter), 141028u);
  EXPECT_EQ(count(class_mark), 2501u);
  EXPECT_EQ(count(class_number), 1911u);
  EXPECT_EQ(count(class_space), 25u);
  EXPECT_EQ(classes[0x180e] & class_space, 0) << "a format control since Unicode 6.3";
  EXPECT_EQ(classes[0x200b] & class_space, 0);
  EXPECT_NE(classes[0x85] & class_space, 0);
  EXPECT_NE(classes[U'_'] & class_word, 0);
  EXPECT_NE(classes[U'Ⓐ'] & class_word, 0);
  EXPECT_EQ(classes[U'½'] & class_word, 0);
}

TEST(CodePointClasses, RangesCoverTheClassAndNothingElse) {
  for (const auto one_class : {class_letter, class_mark, class_number, class_space}) {
    std::vector<bool> in(0x110000);
    for (const auto [first, last] : ranges_of(one_class)) {
      for (char32_t c = first; c <= last; ++c) in[c] = true;
    }
    for (char32_t c = 0; c < 0x110000; ++c) ASSERT_EQ(in[c], (code_point_classes()[c] & one_class) != 0);
  }
}

}  // namespace
}  // namespace assay::text
