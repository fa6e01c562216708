// An answer's bits depend on its own row and the model alone: not on what is asked with it or before it, the
// number of threads, how passes and calls are cut, or whether the state comes from the cache.

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/tests/sanitized.hpp"
#include "decision/model.hpp"
#include "decision/tests/fixture.hpp"

namespace assay::decision {
namespace {

/// Logits by request and question id.
using Logits = std::vector<std::map<std::string, std::vector<float>>>;

class SameBits : public testing::TestWithParam<std::tuple<std::string, ops::Precision>> {
 protected:
  void SetUp() override {
    const auto records = fixture_records(checkpoint());
    // Of every kind: eight questions and two, an object, a list, forged delimiters, no state, one of many
    // calls. The first two are enough for a sanitizer.
    std::vector<std::size_t> kinds = {7, 4, 1, 2, 5, 13};
    if (kSanitized) kinds.resize(2);
    for (const std::size_t record : kinds) requests_.push_back(record_request(records[record]));
    static std::map<ParamType, Logits> asked;
    if (!asked.contains(GetParam())) asked[GetParam()] = ask_each(*load({}), requests_);
    expected_ = asked[GetParam()];
  }

  std::string checkpoint() const { return std::get<0>(GetParam()); }

  std::unique_ptr<DecisionModel> load(ModelOptions options) const {
    options.precision = std::get<1>(GetParam());
    return load_model(checkpoint(), options);
  }

  static void add(const Decision& decision, std::map<std::string, std::vector<float>>& logits) {
    for (const QuestionDecision& question : decision.questions) logits[question.id] = question.logits;
  }

  static Logits ask_each(DecisionModel& model, const std::vector<Request>& requests) {
    Logits logits;
    for (const Request& request : requests) add(model.decide(request), logits.emplace_back());
    return logits;
  }

  static Logits ask_together(DecisionModel& model, const std::vector<Request>& requests) {
    Logits logits;
    for (const Decision& decision : model.decide(requests)) add(decision, logits.emplace_back());
    return logits;
  }

  std::vector<Request> requests_;
  Logits expected_;
};

TEST_P(SameBits, WithOneThreadAndWithThree) {
  for (const std::size_t threads : {1u, 2u, 3u})
    EXPECT_EQ(ask_each(*load({.threads = threads}), requests_), expected_);
}

TEST_P(SameBits, AskedQuestionByQuestion) {
  const auto model = load({});
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    std::map<std::string, std::vector<float>> logits;
    for (const Question& question : requests_[i].questions) {
      Request single = requests_[i];
      single.questions = {question};
      add(model->decide(single), logits);
    }
    EXPECT_EQ(logits, expected_[i]);
  }
}

TEST_P(SameBits, AfterOtherRequestsAndInAnotherOrderOfQuestions) {
  const auto model = load({});
  std::vector<Request> turned(requests_.rbegin(), requests_.rend());
  for (Request& request : turned) std::reverse(request.questions.begin(), request.questions.end());
  Logits logits = ask_each(*model, turned);
  std::reverse(logits.begin(), logits.end());
  EXPECT_EQ(logits, expected_);
}

TEST_P(SameBits, AllInOneBatchAndWithEqualStatesInIt) {
  const auto model = load({});
  EXPECT_EQ(ask_together(*model, requests_), expected_);
  std::vector<Request> twice = requests_;
  twice.insert(twice.end(), requests_.begin(), requests_.end());
  Logits expected = expected_;
  expected.insert(expected.end(), expected_.begin(), expected_.end());
  EXPECT_EQ(ask_together(*model, twice), expected);
}

TEST_P(SameBits, InPassesAndCallsOfAnyLength) {
  for (const std::size_t pass_tokens : {1u, 100u, 700u}) {
    EXPECT_EQ(ask_together(*load({.pass_tokens = pass_tokens}), requests_), expected_) << pass_tokens;
  }
  for (const std::size_t call_tokens : {128u, 300u}) {
    EXPECT_EQ(ask_together(*load({.call_tokens = call_tokens}), requests_), expected_) << call_tokens;
  }
}

TEST_P(SameBits, WithTheStateFromTheCacheOrEvictedFromIt) {
  const auto kept = load({.state_cache_bytes = std::size_t{1} << 30});
  EXPECT_EQ(ask_each(*kept, requests_), expected_);
  EXPECT_EQ(ask_each(*kept, requests_), expected_);
  EXPECT_EQ(ask_together(*kept, requests_), expected_);
  EXPECT_EQ(kept->cache_counters().hits, 2 * requests_.size());
  const auto cramped = load({.state_cache_bytes = std::size_t{2} << 20});
  EXPECT_EQ(ask_each(*cramped, requests_), expected_);
  EXPECT_EQ(ask_together(*cramped, requests_), expected_);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, SameBits,
                         testing::Combine(testing::Values("kev-tiny-hybrid", "kev-tiny-dense"),
                                          testing::Values(ops::Precision::fp32, ops::Precision::bf16)),
                         [](const auto& info) {
                           const bool hybrid = std::get<0>(info.param) == "kev-tiny-hybrid";
                           return std::string(hybrid ? "Hybrid" : "Dense") +
                                  (std::get<1>(info.param) == ops::Precision::fp32 ? "Fp32" : "Bf16");
                         });

}  // namespace
}  // namespace assay::decision
