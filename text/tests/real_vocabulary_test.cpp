#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "text/tokenizer.hpp"

namespace assay::text {
namespace {

// tests/peers/tokenizer/run.sh fetches the vocabulary and the reference, and sets these.
constexpr const char* kTokenizerVariable = "ASSAY_REAL_TOKENIZER";
constexpr const char* kCasesVariable = "ASSAY_REAL_CASES";

TEST(RealVocabulary, IdsAreTheReferences) {
  const char* file = std::getenv(kTokenizerVariable);
  const char* cases_file = std::getenv(kCasesVariable);
  if (file == nullptr || cases_file == nullptr) {
    GTEST_SKIP() << "NOT COMPARED with the real vocabulary: run tests/peers/tokenizer/run.sh BUILD_DIR";
  }
  const Tokenizer tokenizer = Tokenizer::from_json(read_text_file(file), file);
  const auto cases = nlohmann::json::parse(read_text_file(cases_file));
  ASSERT_GE(cases.size(), 5000u);
  std::size_t equal = 0;
  std::size_t shown = 0;
  for (const auto& entry : cases) {
    const auto text = entry.at("text").get<std::string>();
    const auto expected = entry.at("ids").get<std::vector<std::int32_t>>();
    const auto ids = tokenizer.encode(text);
    equal += ids == expected ? 1 : 0;
    if (ids != expected && shown++ < 10) {
      ADD_FAILURE() << nlohmann::json(text).dump(-1, ' ', true) << "\n  ours " << nlohmann::json(ids)
                    << "\n  reference " << nlohmann::json(expected);
    }
  }
  EXPECT_EQ(equal, cases.size());
  std::printf("real vocabulary: %zu of %zu strings equal\n", equal, cases.size());
}

}  // namespace
}  // namespace assay::text
