#include "decision/answer.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "decision/tests/python_cases.hpp"

namespace assay::decision {
namespace {

TEST(Answer, SoftmaxIsADistributionAndShiftsDoNotMatter) {
  const std::vector<float> logits = {1.5f, -2.0f, 0.25f};
  const std::vector<float> shifted = {1001.5f, 998.0f, 1000.25f};
  const auto p = softmax(logits);
  EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1.0, 1e-15);
  EXPECT_NEAR(std::log(p[0] / p[1]), 3.5, 1e-12);
  EXPECT_EQ(p, softmax(shifted));
  EXPECT_EQ(softmax(std::vector<float>{-3e38f, 3e38f})[1], 1.0);
  EXPECT_TRUE(softmax({}).empty());
}

TEST(Answer, ArgmaxIsTheFirstOfEquals) {
  EXPECT_EQ(argmax(std::vector<double>{0.2, 0.4, 0.4}), 1u);
  EXPECT_EQ(argmax(std::vector<double>{1.0}), 0u);
}

TEST(Answer, ChoiceConfidenceRunsFromUniformToCertain) {
  EXPECT_EQ(choice_confidence(std::vector<double>{1.0}), 1.0);
  EXPECT_EQ(choice_confidence(std::vector<double>{0.25, 0.25, 0.25, 0.25}), 0.0);
  EXPECT_EQ(choice_confidence(std::vector<double>{0.0, 1.0}), 1.0);
  EXPECT_NEAR(choice_confidence(std::vector<double>{0.7, 0.2, 0.1}), (0.7 - 1.0 / 3) / (1 - 1.0 / 3), 1e-15);
}

TEST(Answer, ScoreConfidenceIsOneLessTheMeanDistanceFromTheMode) {
  EXPECT_EQ(score_confidence(std::vector<double>{0.0, 0.0, 1.0}), 1.0);
  EXPECT_EQ(score_confidence(std::vector<double>{0.5, 0.0, 0.5}), 0.5);
  EXPECT_NEAR(score_confidence(std::vector<double>{0.1, 0.6, 0.1, 0.2}), 1 - (0.1 + 0.1 + 0.4) / 3, 1e-15);
}

TEST(Answer, EachTypeAnswersItsOwnWay) {
  const std::vector<double> p = {0.3, 0.7};
  EXPECT_EQ(make_answer(QuestionType::noul, p).value, 0.7);
  const Answer choice = make_answer(QuestionType::choice, p);
  EXPECT_EQ(choice.mode, 1u);
  EXPECT_NEAR(choice.confidence, 0.4, 1e-15);
  const Answer score = make_answer(QuestionType::score, std::vector<double>{0.25, 0.25, 0.5});
  EXPECT_NEAR(score.value, 1.25, 1e-15);
  EXPECT_EQ(score.mode, 2u);
}

TEST(Answer, RoundingIsPythons) {
  const auto cases = python_cases();
  ASSERT_GT(cases["round"].size(), 500u);
  for (const auto& c : cases["round"]) {
    EXPECT_EQ(round_to_hundredths(c[0].get<double>()), c[1].get<double>()) << c[0];
  }
}

}  // namespace
}  // namespace assay::decision
