#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/nfc.hpp"
#include "text/tests/test_tokenizers.hpp"

namespace assay::text {
namespace {

using Ids = std::vector<std::int32_t>;

nlohmann::json fixture_file(const std::string& name, const std::string& ending) {
  return nlohmann::json::parse(
      read_text_file(std::string(ASSAY_TEST_DATA) + "/kev-tiny-" + name + ".fixture" + ending));
}

class Fixture : public testing::TestWithParam<const char*> {};

TEST_P(Fixture, TextsHaveTheOraclesIds) {
  const Tokenizer tokenizer = fixture_tokenizer(GetParam());
  const auto cases = fixture_file(GetParam(), ".tokens.json");
  ASSERT_FALSE(cases.empty());
  for (const auto& entry : cases) {
    const auto text = entry.at("text").get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), entry.at("ids").get<Ids>()) << text;
  }
}

TEST_P(Fixture, DecodingIsTheInverseUpToNfc) {
  const Tokenizer tokenizer = fixture_tokenizer(GetParam());
  for (const auto& entry : fixture_file(GetParam(), ".tokens.json")) {
    const auto text = entry.at("text").get<std::string>();
    std::string buffer;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), to_nfc(text, buffer));
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Fixture, testing::Values("hybrid", "dense"));

}  // namespace
}  // namespace assay::text
