#include "decision/flat_text.hpp"

#include <string>

#include <gtest/gtest.h>

#include "decision/tests/python_cases.hpp"

namespace assay::decision {
namespace {

std::string flat(const std::string& json) {
  return flat_text(parse_json(json, "request").root);
}

TEST(FlatText, EqualsPythonOnRecordedDocuments) {
  const auto cases = python_cases();
  ASSERT_GT(cases["flat"].size(), 400u);
  for (const auto& c : cases["flat"]) {
    EXPECT_EQ(flat(c["json"]), c["text"].get<std::string>()) << c["json"];
  }
}

TEST(FlatText, NestedValuesGoBelowTheirNameTwoSpacesALevel) {
  EXPECT_EQ(flat(R"({"subject":"a","tags":["x","y"],"count":3,"vip":true,"note":null,"of":{"k":1.5}})"),
            "subject: a\ntags:\n  - x\n  - y\ncount: 3\nvip: True\nnote: \nof:\n  k: 1.5");
  EXPECT_EQ(flat(R"([{"from":"user","text":"hi"},[1,[2,3]],"",null])"),
            "- from: user\n  text: hi\n- - 1\n  - - 2\n    - 3\n- \n- ");
}

TEST(FlatText, EmptyContainersAreNothing) {
  EXPECT_EQ(flat("{}"), "");
  EXPECT_EQ(flat("[]"), "");
  EXPECT_EQ(flat(R"({"a":{},"b":[]})"), "a:\n\nb:\n");
  EXPECT_EQ(flat(R"([[],{}])"), "- \n- ");
}

TEST(FlatText, LeadingWhiteSpaceOfItemsGoesAndNoOther) {
  EXPECT_EQ(flat(R"([" \n\u00a0\u3000a b ","\u200bz"])"), "- a b \n- \u200bz");
  EXPECT_EQ(flat(R"([{" a":" b"}])"), "- a:  b");
  EXPECT_EQ(flat(R"({"a":" b"})"), "a:  b");
  EXPECT_EQ(flat(R"(" a")"), " a");
  EXPECT_EQ(flat(R"([" ","x"])"), "- \n- x");
}

TEST(FlatText, LinesInsideStringsAreNotIndented) {
  EXPECT_EQ(flat(R"({"a":{"b":"x\ny"}})"), "a:\n  b: x\ny");
}

TEST(FlatText, LabelsLeaveOutOnlyNullAndEmptyDescriptions) {
  const auto label = [](const char* json) {
    const JsonValue value = parse_json(json, "request").root;
    return labelled("name", &value);
  };
  EXPECT_EQ(labelled("name", nullptr), "name");
  EXPECT_EQ(label("null"), "name");
  EXPECT_EQ(label("\"\""), "name");
  EXPECT_EQ(label("\"text\""), "name: text");
  EXPECT_EQ(label("false"), "name: False");
  EXPECT_EQ(label("0"), "name: 0");
  EXPECT_EQ(label("{}"), "name: ");
  EXPECT_EQ(label("[1]"), "name: - 1");
}

}  // namespace
}  // namespace assay::decision
