#include "decision/response.hpp"

#include <string>

#include <gtest/gtest.h>

#include "decision/tests/python_cases.hpp"

namespace assay::decision {
namespace {

QuestionDecision question(const std::string& id, QuestionType type, std::vector<std::string> keys,
                          std::vector<std::string> options, std::vector<double> probabilities) {
  QuestionDecision result{id, type, std::move(keys), std::move(options), {}, std::move(probabilities), {}};
  result.logits.assign(result.probabilities.size(), 0.1f);
  result.answer = make_answer(type, result.probabilities);
  return result;
}

Decision example() {
  Decision decision;
  decision.model = "kev-latest";
  decision.questions = {
      question("angry", QuestionType::noul, {"false", "true"}, {"no", "yes"}, {0.125, 0.875}),
      question("team", QuestionType::choice, {"billing", "tech \"é\""}, {"billing: money", "tech \"é\""},
               {0.75, 0.25}),
      question("urgency", QuestionType::score, {"0", "1", "2"}, {"low", "mid", "high"}, {0.0, 0.5, 0.5})};
  decision.input_tokens = 20;
  decision.output_tokens = 30;
  decision.milliseconds = 12.345;
  return decision;
}

TEST(Response, AnswersHaveTheFieldsOfTheContractInItsOrder) {
  EXPECT_EQ(answers_json(example()),
            R"({"angry":{"type":"noul","noul":0.88},)"
            R"("team":{"type":"choice","choice":"billing","confidence":0.5,)"
            R"("probabilities":{"billing":0.75,"tech \"é\"":0.25}},)"
            R"("urgency":{"type":"score","score":1.5,"legend":{"0":"low","1":"mid","2":"high"},)"
            R"("probabilities":{"0":0.0,"1":0.5,"2":0.5},"confidence":0.75}})");
}

TEST(Response, PythonStyleIsThatOfJsonDumps) {
  EXPECT_EQ(answers_json(
                {.model = "",
                 .questions = {question("é", QuestionType::noul, {"false", "true"}, {"no", "yes"}, {0, 1})}},
                JsonStyle::python),
            R"({"\u00e9": {"type": "noul", "noul": 1.0}})");
  const auto cases = python_cases();
  for (const auto& c : cases["dumps"]) {
    JsonWriter json(JsonStyle::python);
    json.value(std::string_view(c[0].get_ref<const std::string&>()));
    EXPECT_EQ(json.take(), c[1].get<std::string>());
  }
}

TEST(Response, BodyHasModelAnswersUsageAndLatency) {
  const auto body = nlohmann::ordered_json::parse(response_json(example()));
  std::vector<std::string> fields;
  for (const auto& [name, value] : body.items()) fields.push_back(name);
  EXPECT_EQ(fields, (std::vector<std::string>{"model", "answers", "usage", "latency_ms"}));
  EXPECT_EQ(body["model"], "kev-latest");
  EXPECT_EQ(body["usage"].dump(), R"({"input_tokens":20,"output_tokens":30})");
  EXPECT_EQ(body["latency_ms"], 12.3);
}

TEST(Response, RawValuesGiveEveryBitBack) {
  Decision decision = example();
  decision.questions[0].logits = {0.1f, -1.0f / 3};
  decision.questions[0].probabilities = {0.1 + 0.2, 1.0 / 3};
  const auto raw = nlohmann::json::parse(response_json(decision, true))["raw"]["angry"];
  EXPECT_EQ(raw["logits"][1].get<float>(), -1.0f / 3);
  EXPECT_EQ(raw["probabilities"][0].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(raw["probabilities"][1].get<double>(), 1.0 / 3);
}

}  // namespace
}  // namespace assay::decision
