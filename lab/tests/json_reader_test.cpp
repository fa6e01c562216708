#include "lab/json_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::lab {
namespace {

using testing::ElementsAre;

JsonReader read(std::string_view text) {
  return parse_json_text(text, "plan.json").root;
}

void expect_malformed(const std::string& part, const std::function<void()>& body) {
  expect_error(ErrorKind::malformed, part, body);
}

TEST(JsonReader, GivesEachTypeItsValue) {
  JsonReader reader = read(R"({"yes": true, "text": "é", "real": -2.5e3, "count": 18446744073709551615,
                               "whole": -7, "list": [1, 2], "table": {"b": 2.5, "a": 1}, "raw": [null]})");
  EXPECT_TRUE(reader.required<bool>("yes"));
  EXPECT_EQ(reader.required<std::string>("text"), "é");
  EXPECT_EQ(reader.required<double>("real"), -2500.0);
  EXPECT_EQ(reader.required<std::uint64_t>("count"), 18446744073709551615u);
  EXPECT_EQ(reader.required<std::int64_t>("whole"), -7);
  EXPECT_THAT(reader.required<std::vector<double>>("list"), ElementsAre(1.0, 2.0));
  const auto table = reader.required<std::map<std::string, double>>("table");
  EXPECT_THAT(table, ElementsAre(testing::Pair("a", 1.0), testing::Pair("b", 2.5)));
  EXPECT_EQ(reader.required<nlohmann::json>("raw").dump(), "[null]");
  reader.finish();
}

TEST(JsonReader, OutlivesTheTextAndTheParent) {
  std::vector<JsonReader> items;
  {
    JsonReader parent = read(R"({"items": [{"name": "one"}, {"name": "two"}]})");
    items = parent.required<std::vector<JsonReader>>("items");
  }
  EXPECT_EQ(items[1].required<std::string>("name"), "two");
  items[1].finish();
}

TEST(JsonReader, AbsentRequiredFieldNamesFileAndField) {
  expect_malformed("plan.json: no field 'name'", [] { read("{}").required<std::string>("name"); });
}

TEST(JsonReader, AbsentOptionalFieldIsNothingAndNullIsAnError) {
  JsonReader reader = read(R"({"here": null})");
  EXPECT_FALSE(reader.optional<double>("absent").has_value());
  expect_malformed("plan.json: here: null", [&] { reader.optional<double>("here"); });
}

TEST(JsonReader, FinishRefusesAFieldThatNobodyAskedFor) {
  JsonReader reader = read(R"({"seed": 1, "treshold": 2})");
  reader.required<double>("seed");
  reader.optional<double>("threshold");
  expect_malformed("an unknown field 'treshold'; expected seed, threshold", [&] { reader.finish(); });
}

TEST(JsonReader, ErrorsInsideNameThePath) {
  JsonReader reader = read(R"({"items": [{"at": {"x": 1}}, {"at": {"x": "1"}}]})");
  auto items = reader.required<std::vector<JsonReader>>("items");
  JsonReader inner = items[1].required<JsonReader>("at");
  expect_malformed("plan.json: items[1].at.x: \"1\"; expected a finite number",
                   [&] { inner.required<double>("x"); });
  EXPECT_EQ(inner.where("x"), "plan.json: items[1].at.x");
  expect_malformed("plan.json: items[1].at: an unknown field 'x'", [] {
    JsonReader again = read(R"({"items": [{"at": {"x": 1}}, {"at": {"x": "1"}}]})");
    again.required<std::vector<JsonReader>>("items")[1].required<JsonReader>("at").finish();
  });
}

TEST(JsonReader, WrongTypesAreRefused) {
  JsonReader reader = read(R"({"value": 1.5, "negative": -1, "large": 18446744073709551615})");
  expect_malformed("value", [&] { reader.required<bool>("value"); });
  expect_malformed("value", [&] { reader.required<std::string>("value"); });
  expect_malformed("value", [&] { reader.required<std::uint64_t>("value"); });
  expect_malformed("value", [&] { reader.required<std::int64_t>("value"); });
  expect_malformed("value", [&] { reader.required<std::vector<double>>("value"); });
  expect_malformed("value", [&] { reader.required<JsonReader>("value"); });
  expect_malformed("value", [&] { reader.required<std::map<std::string, double>>("value"); });
  expect_malformed("negative", [&] { reader.required<std::uint64_t>("negative"); });
  expect_malformed("large", [&] { reader.required<std::int64_t>("large"); });
}

TEST(JsonReader, RefusesWhatIsNoObjectOrNoJson) {
  expect_malformed("plan.json: [1]; expected an object", [] { read("[1]"); });
  expect_malformed("not JSON at byte", [] { read("{\"a\": NaN}"); });
  expect_malformed("not JSON at byte", [] { read("{\"a\": 1"); });
  expect_malformed("outside the range", [] { read("{\"a\": 1e999}"); });
  expect_malformed("occurs twice", [] { read(R"({"a": 1, "a": 2})"); });
}

TEST(JsonReader, AFileComesWithItsHash) {
  const TemporaryDirectory folder;
  const JsonFile file = read_json_file(folder.write("a.json", "{}"));
  EXPECT_EQ(file.sha256, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
  expect_error(ErrorKind::missing, "none.json", [&] { read_json_file(folder / "none.json"); });
  expect_error(ErrorKind::limit_exceeded, "a.json", [&] { read_json_file(folder / "a.json", 1); });
}

}  // namespace
}  // namespace assay::lab
