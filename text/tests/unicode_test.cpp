#include "text/unicode.hpp"

#include <gtest/gtest.h>

#include <string>

#include "text/tests/random_text.hpp"

namespace assay::text {
namespace {

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
