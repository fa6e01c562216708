#include "cli/top_level_names.hpp"

#include <gtest/gtest.h>

namespace assay::cli {
namespace {

using Names = std::set<std::string, std::less<>>;

TEST(TopLevelNames, AreThoseOfTheDocumentsOwnMembers) {
  EXPECT_EQ(top_level_names(R"({"a": {"b": 1}, "c": [{"d": 2}, []], "": 1.5, "a": null})"),
            (Names{"", "a", "c"}));
  EXPECT_EQ(top_level_names("{}"), Names{});
  EXPECT_EQ(top_level_names(R"([{"a": 1}])"), Names{});
}

TEST(TopLevelNames, WhatIsNoJsonHasNone) {
  for (const char* text : {"", "{", R"({"a": 1)", R"({"a": 1}x)", "{\"a\": \"\xff\"}"}) {
    EXPECT_EQ(top_level_names(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace assay::cli
