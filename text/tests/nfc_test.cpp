#include "text/nfc.hpp"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "text/tests/random_text.hpp"

namespace assay::text {
namespace {

std::string nfc(std::string_view text) {
  std::string buffer;
  return std::string(to_nfc(text, buffer));
}

std::string library_nfc(const std::string& text) {
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> result(
      utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())), std::free);
  return reinterpret_cast<const char*>(result.get());
}

TEST(Nfc, ComposesReordersAndKeeps) {
  EXPECT_EQ(nfc("e\u0301tude"), "étude");
  EXPECT_EQ(nfc("a\u0301\u0323"), "ạ\u0301") << "marks in canonical order";
  EXPECT_EQ(nfc("\u1112\u1161\u11ab"), "한");
  EXPECT_EQ(nfc("\u212b\u2126"), "ÅΩ") << "singletons";
  EXPECT_EQ(nfc("\u0958"), "क\u093c") << "composition exclusions";
  EXPECT_EQ(nfc("\u0301 e"), "\u0301 e");
  EXPECT_EQ(nfc("ﬁ½"), "ﬁ½") << "compatibility characters stay";
  EXPECT_EQ(nfc("\u00e9\u0323"), "ẹ\u0301") << "a composed letter opens again";
  EXPECT_EQ(nfc(std::string("a\0e\u0301", 5)), std::string("a\0é", 4));
}

TEST(Nfc, CodePointsSinceUnicode9AreInert) {
  EXPECT_EQ(nfc("a\u07fd\u0334"), "a\u07fd\u0334");
  EXPECT_EQ(nfc("a\u0345\u08ca"), "a\u0345\u08ca");
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");
  EXPECT_EQ(nfc("e\u0301\u07fde\u0301"), "é\u07fdé") << "what stands beside still composes";
}

TEST(Nfc, TextThatCannotChangeIsNotCopied) {
  std::string buffer;
  for (const std::string_view text : {"", "plain", "naïve Straße", "\u02ff"}) {
    EXPECT_EQ(to_nfc(text, buffer).data(), text.data());
  }
}

TEST(Nfc, AgreesWithTheLibraryOnCodePointsOfUnicode9) {
  RandomText random(2);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t k = random.below(30); k > 0; --k) {
      constexpr char32_t kStarts[] = {U'a',      U'é',      U'\u0300', U'\u0340', U'\u093c',
                                      U'\u1100', U'\u1161', U'\u11a8', U'\uac00', U'\u3099',
                                      U'\u304b', U'\u0f71', U'\u1e00', U'\u212b'};
      append_utf8(kStarts[random.below(std::size(kStarts))] + static_cast<char32_t>(random.below(16)), text);
    }
    EXPECT_EQ(nfc(text), library_nfc(text));
    EXPECT_EQ(nfc(nfc(text)), nfc(text));
  }
}

TEST(Nfc, AMillionMarksOutOfOrderTakeNoQuadraticTime) {
  std::string text = "a";
  std::string low;
  for (int i = 0; i < 500'000; ++i) text += "\u0301\u0323", low += "\u0323";
  const std::string composed = nfc(text);
  EXPECT_EQ(composed.size(), text.size() - 3 + std::string("ạ").size()) << "one mark joined the letter";
  EXPECT_TRUE(composed.starts_with("ạ" + low.substr(2)));
}

}  // namespace
}  // namespace assay::text
