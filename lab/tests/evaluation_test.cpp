#include "lab/evaluation.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace assay::lab {
namespace {

using testing::HasSubstr;

const std::string kThreeTypes =
    R"({"id": "a", "family": "one", "request": {"state": "It rains.", "questions": {)"
    R"("wet": {"type": "noul", "instructions": "Is it wet?"},)"
    R"("sky": {"type": "choice", "instructions": "Sky?", "criteria": {"grey": null, "blue": "no cloud"}},)"
    R"("how": {"type": "score", "instructions": "How wet?", "criteria": ["dry", "damp", "wet"]}}},)"
    R"( "expected": {"wet": true, "sky": "blue", "how": 1.5}})"
    "\n\n"
    R"({"id": "b", "request": {"state": "", "questions": {"wet": {"type": "noul", "instructions": "?"}}},)"
    R"( "expected": {"wet": null}})"
    "\n";

decision::QuestionDecision answered(const decision::Question& question, std::vector<double> probabilities) {
  return {.id = question.id,
          .type = question.type,
          .keys = question.keys,
          .options = question.options,
          .logits = {},
          .probabilities = probabilities,
          .answer = decision::make_answer(question.type, probabilities)};
}

std::string refusal(const std::string& text) {
  try {
    parse_suite(text, "suite");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Suite, AnswersAreReadByTheQuestionsType) {
  const auto records = parse_suite(kThreeTypes, "suite");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].family, "one");
  EXPECT_EQ(records[0].expected[0].option, 1u);
  EXPECT_EQ(records[0].expected[1].option, 1u);
  EXPECT_EQ(records[0].expected[2].level, 1.5);
  EXPECT_TRUE(records[0].expected[0].answerable);
  EXPECT_FALSE(records[1].expected[0].answerable);
}

TEST(Suite, WhatIsWrongIsSaidWithItsPlace) {
  const std::string noul = R"({"id": "a", "request": {"state": 1, "questions": {"q": {"type": "noul",)"
                           R"( "instructions": "?"}}}, "expected": )";
  EXPECT_THAT(refusal(noul + R"({"q": "yes"}})"), HasSubstr("suite: line 1.expected.q: a string"));
  EXPECT_THAT(refusal("\n" + noul + R"({"r": true}})"), HasSubstr("suite: line 2.expected.q: missing"));
  EXPECT_THAT(refusal(noul + R"({"q": true, "r": true}})"), HasSubstr("an answer for each question"));
  EXPECT_THAT(refusal(noul + R"({"q": true}, "extra": 1})"), HasSubstr("an unknown field"));
  EXPECT_THAT(refusal(""), HasSubstr("no questions"));
  const std::string choice = R"({"id": "a", "request": {"state": 1, "questions": {"q": {"type": "choice",)"
                             R"( "instructions": "?", "criteria": {"x": null, "y": null}}}}, "expected": )";
  EXPECT_THAT(refusal(choice + R"({"q": "z"}})"), HasSubstr("one of the question's options"));
  const std::string score = R"({"id": "a", "request": {"state": 1, "questions": {"q": {"type": "score",)"
                            R"( "instructions": "?", "criteria": ["x", "y"]}}}, "expected": )";
  EXPECT_THAT(refusal(score + R"({"q": 1.5}})"), HasSubstr("0 to 1"));
}

TEST(Evaluator, FiguresOfKnownAnswers) {
  const auto records = parse_suite(kThreeTypes, "suite");
  const auto& questions = records[0].request.questions;
  Evaluator evaluator;
  decision::Decision decision;
  decision.questions = {answered(questions[0], {0.2, 0.8}), answered(questions[1], {0.6, 0.4}),
                        answered(questions[2], {0.0, 0.0, 1.0})};
  evaluator.add(records[0], decision);
  decision::Decision even;
  even.questions = {answered(records[1].request.questions[0], {0.3, 0.7})};
  evaluator.add(records[1], even);
  const Evaluation result = evaluator.result();
  EXPECT_EQ(result.noul.right, 1u);
  EXPECT_EQ(result.noul.asked, 1u);
  EXPECT_EQ(result.choice.right, 0u);
  EXPECT_EQ(result.choice.asked, 1u);
  EXPECT_DOUBLE_EQ(result.score_error, 0.25);
  EXPECT_EQ(result.score.right, 1u);
  // One bin holds 0.8 and a right answer, another 0.6 and a wrong one.
  EXPECT_NEAR(result.calibration, (0.2 + 0.6) / 2, 1e-12);
  EXPECT_EQ(result.unanswerable, 1u);
  EXPECT_NEAR(result.unanswerable_excess, 0.2, 1e-12);
  ASSERT_EQ(result.choice_confusions.size(), 1u);
  EXPECT_EQ(result.choice_confusions[0].expected, "blue");
  EXPECT_EQ(result.choice_confusions[0].answered, "grey");
  EXPECT_EQ(result.all().asked, 3u);
  EXPECT_THAT(to_text(result, 5), HasSubstr("blue -> grey"));
  EXPECT_EQ(to_json(result)["score"]["right"], 1);
}

TEST(Evaluator, AnswersOfAnotherRequestAreRefused) {
  const auto records = parse_suite(kThreeTypes, "suite");
  EXPECT_THROW(Evaluator().add(records[0], decision::Decision{}), Error);
}

}  // namespace
}  // namespace assay::lab
