#include "lab/decision_fixture.hpp"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/tests/expect_error.hpp"

namespace assay::lab {
namespace {

nlohmann::ordered_json valid() {
  return nlohmann::ordered_json::parse(R"({"model":"m","temperature":1.5,
      "checkpoint":{"family":"qwen3","layers":3,"hidden_size":256,"vocabulary":1536,"head_sha256":"ab"},"records":[{"id":"r0",
      "request":{"state":"s","questions":{"q":{"type":"noul","instructions":"?"},
                                          "p":{"type":"noul","instructions":"?"}}},
      "rows":[{"question":"q","type":"noul","state_ids":[1,2],"branch_ids":[3,4,5,6,7],"option_ends":[1,3],
               "logits":[0.0,0.0],"probabilities":[0.5,0.5]},
              {"question":"p","type":"noul","state_ids":null,"branch_ids":[3,4,5,6,7],"option_ends":[1,3],
               "logits":[0.0,0.0],"probabilities":[0.5,0.5]}]}]})");
}

DecisionFixture parse(const nlohmann::ordered_json& json) {
  return parse_decision_fixture(json.dump(), "f.json");
}

TEST(DecisionFixture, ReadsWhatTheOracleWrote) {
  const DecisionFixture fixture = parse(valid());
  EXPECT_EQ(fixture.model, "m");
  EXPECT_EQ(fixture.temperature, 1.5);
  EXPECT_EQ(fixture.checkpoint, (CheckpointFacts{"qwen3", 3, 256, 1536, "ab"}));
  EXPECT_EQ(fixture.rows(), 2u);
  EXPECT_EQ(fixture.records[0].state_ids, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(fixture.records[0].rows[1].option_ends, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(fixture.sha256.size(), 64u);
  for (const char* name : {"kev-tiny-hybrid", "kev-tiny-dense"}) {
    const auto recorded = read_decision_fixture(std::string(ASSAY_TEST_DATA "/") + name + ".fixture.json");
    EXPECT_EQ(recorded.model, name);
    EXPECT_EQ(recorded.rows(), 145u);
  }
}

TEST(DecisionFixture, EveryContradictionIsNamed) {
  using Change = std::function<void(nlohmann::ordered_json&)>;
  const auto row = [](nlohmann::ordered_json& json) -> nlohmann::ordered_json& {
    return json["records"][0]["rows"][0];
  };
  const std::vector<std::pair<std::string, Change>> cases = {
      {"f.json.temperature", [](auto& j) { j.erase("temperature"); }},
      {"f.json.temperature", [](auto& j) { j["temperature"] = "hot"; }},
      {"f.json.extra", [](auto& j) { j["extra"] = 1; }},
      {"f.json.records", [](auto& j) { j["records"] = nlohmann::ordered_json::array(); }},
      {"f.json.records[0].note", [](auto& j) { j["records"][0]["note"] = ""; }},
      {"f.json.records[0].rows", [](auto& j) { j["records"][0]["rows"].erase(1); }},
      {"f.json.records[0].request.questions.q.type",
       [](auto& j) { j["records"][0]["request"]["questions"]["q"]["type"] = "x"; }},
      {"f.json.records[0].rows[0].question", [&](auto& j) { row(j)["question"] = "p"; }},
      {"f.json.records[0].rows[0].type", [&](auto& j) { row(j)["type"] = "score"; }},
      {"f.json.records[0].rows[0].state_ids", [&](auto& j) { row(j)["state_ids"] = nullptr; }},
      {"f.json.records[0].rows[1].state_ids", [](auto& j) { j["records"][0]["rows"][1]["state_ids"] = {1}; }},
      {"f.json.records[0].rows[0].branch_ids[0]", [&](auto& j) { row(j)["branch_ids"][0] = 1.5; }},
      {"f.json.records[0].rows[0].branch_ids[0]", [&](auto& j) { row(j)["branch_ids"][0] = 4000000000u; }},
      {"f.json.records[0].rows[0].option_ends",
       [&](auto& j) {
         row(j)["option_ends"] = {3, 1};
       }},
      {"f.json.records[0].rows[0].option_ends",
       [&](auto& j) {
         row(j)["option_ends"] = {1, 4};
       }},
      {"f.json.records[0].rows[0]: 2 option ends, 2 logits, 3 probabilities",
       [&](auto& j) { row(j)["probabilities"].push_back(0.1); }},
      {"f.json.records[0].rows[0].probabilities: a sum of 1.1",
       [&](auto& j) { row(j)["probabilities"][1] = 0.6; }},
      {"f.json.records[0].rows[0].probabilities[0]: 0.400000; expected 0.5",
       [&](auto& j) {
         row(j)["probabilities"] = {0.4, 0.6};
       }},
      {"f.json.records[0].rows[1].probabilities[0]",
       [](auto& j) {
         j["records"][0]["rows"][1]["logits"] = {0.0, 1.0};
       }},
      {"f.json.records[1].id: \"r0\" a second time",
       [](auto& j) { j["records"].push_back(j["records"][0]); }},
      {"f.json.records[0].request.mood", [](auto& j) { j["records"][0]["request"]["mood"] = 1; }},
      {"f.json.checkpoint.layers", [](auto& j) { j["checkpoint"].erase("layers"); }},
      {"f.json.checkpoint.hidden_size", [](auto& j) { j["checkpoint"]["hidden_size"] = -1; }},
      {"f.json.checkpoint.name", [](auto& j) { j["checkpoint"]["name"] = "m"; }},
      {"f.json.records[0].rows[0].mean", [&](auto& j) { row(j)["mean"] = 1; }},
  };
  for (const auto& [place, change] : cases) {
    nlohmann::ordered_json json = valid();
    change(json);
    try {
      parse(json);
      ADD_FAILURE() << "accepted: " << place;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(place));
    }
  }
}

TEST(DecisionFixture, TheCheckpointMayBeLeftOut) {
  nlohmann::ordered_json json = valid();
  json.erase("checkpoint");
  EXPECT_EQ(parse(json).checkpoint, std::nullopt);
}

TEST(DecisionFixture, AFieldThatComesTwiceIsNamed) {
  const std::string text = valid().dump();
  for (const std::string& twice : {std::string(R"("records":[])"), std::string(R"("temperature":1.5)")}) {
    const std::string field = twice.substr(1, twice.find('"', 1) - 1);
    expect_error(ErrorKind::malformed, "f.json." + field + ": given more than once",
                 [&] { parse_decision_fixture("{" + twice + "," + text.substr(1), "f.json"); });
  }
}

}  // namespace
}  // namespace assay::lab
