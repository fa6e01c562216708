#include "decision/model.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/tests/temporary_directory.hpp"
#include "decision/tests/expect_error.hpp"
#include "decision/tests/fixture.hpp"

namespace assay::decision {
namespace {

constexpr double kExact = 1e-4;  // the exact path's bar on |Δp|

TEST(DecisionModel, AnswersAsTheOracleOnTheExactPath) {
  for (const std::string& checkpoint : checkpoints()) {
    const auto model = load_model(checkpoint, {.precision = ops::Precision::fp32});
    const auto records = fixture_records(checkpoint);
    for (std::size_t r = 0; r < records.size(); r += 4) {
      const Decision decision = model->decide(record_request(records[r]));
      ASSERT_EQ(decision.questions.size(), records[r]["rows"].size());
      for (std::size_t q = 0; q < decision.questions.size(); ++q) {
        const auto& row = records[r]["rows"][q];
        const auto& found = decision.questions[q];
        EXPECT_EQ(found.id, row["question"].get<std::string>());
        ASSERT_EQ(found.probabilities.size(), row["probabilities"].size());
        for (std::size_t i = 0; i < found.probabilities.size(); ++i) {
          EXPECT_NEAR(found.probabilities[i], row["probabilities"][i].get<double>(), kExact);
          EXPECT_NEAR(found.logits[i], row["logits"][i].get<double>(), 1e-3);
        }
      }
    }
  }
}

TEST(DecisionModel, CountsTokensAndEchoesTheModelsName) {
  const auto model = load_model("kev-tiny-dense");
  const auto record = fixture_records("kev-tiny-dense")[1];
  Request request = record_request(record);
  request.model = "anything";
  const Decision decision = model->decide(request);
  std::size_t tokens = record["rows"][0]["state_ids"].size();
  for (const auto& row : record["rows"]) tokens += row["branch_ids"].size();
  EXPECT_EQ(decision.input_tokens, tokens);
  EXPECT_GT(decision.output_tokens, 0u);
  EXPECT_EQ(decision.model, "anything");
  EXPECT_FALSE(decision.state_from_cache);
}

TEST(DecisionModel, StatesComeFromTheCacheOnceKept) {
  const auto model = load_model("kev-tiny-hybrid", {.state_cache_bytes = std::size_t{64} << 20});
  const auto records = fixture_records("kev-tiny-hybrid");
  const Request first = record_request(records[1]);
  const Request other = record_request(records[2]);
  EXPECT_FALSE(model->decide(first).state_from_cache);
  EXPECT_FALSE(model->decide(other).state_from_cache);
  EXPECT_TRUE(model->decide(first).state_from_cache);
  Request another_question = first;
  another_question.questions[0].instructions += " Really?";
  EXPECT_TRUE(model->decide(another_question).state_from_cache);
  Request another_state = first;
  another_state.state += ".";
  EXPECT_FALSE(model->decide(another_state).state_from_cache);
  EXPECT_EQ(model->cache_counters().entries, 3u);
}

TEST(DecisionModel, ABatchNamesTheRequestThatIsWrong) {
  const auto model = load_model("kev-tiny-dense", {.limits = {.state_tokens = 64, .row_tokens = 256}});
  const Request good = record_request(fixture_records("kev-tiny-dense")[2]);
  Request bad = good;
  for (int i = 0; i < 100; ++i) bad.state += " more";
  expect_error(ErrorKind::limit_exceeded, {"requests[1].state"}, [&] {
    model->decide(std::vector<Request>{good, bad});
  });
  expect_error(ErrorKind::limit_exceeded, {"state: "}, [&] { model->decide(bad); });
  EXPECT_EQ(model->decide(std::vector<Request>{good, good}).size(), 2u);
  EXPECT_TRUE(model->decide(std::vector<Request>{}).empty());
}

TEST(DecisionModel, ACancelledRunSaysSoAndTheNextOneAnswers) {
  const auto model = load_model("kev-tiny-dense");
  const Request request = record_request(fixture_records("kev-tiny-dense")[1]);
  const std::atomic<bool> cancel = true;
  expect_error(ErrorKind::cancelled, {}, [&] { model->decide(request, &cancel); });
  EXPECT_EQ(model->decide(request).questions.size(), request.questions.size());
}

TEST(DecisionModel, SeveralThreadsMayAskAtOnce) {
  const auto model = load_model("kev-tiny-dense", {.threads = 2, .state_cache_bytes = std::size_t{8} << 20});
  const auto records = fixture_records("kev-tiny-dense");
  std::vector<std::vector<float>> expected;
  for (std::size_t i = 0; i < 4; ++i)
    expected.push_back(model->decide(record_request(records[i])).questions[0].logits);
  std::vector<std::thread> askers;
  std::atomic<int> wrong = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    askers.emplace_back([&, i] {
      for (int round = 0; round < 3; ++round) {
        if (model->decide(record_request(records[i])).questions[0].logits != expected[i]) ++wrong;
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(wrong, 0);
}

TEST(DecisionModel, ATokenizerLargerThanTheVocabularyIsRefused) {
  Checkpoint checkpoint = open_checkpoint(run_directory("kev-tiny-dense"), std::nullopt);
  checkpoint.config.vocabulary_size = checkpoint.tokenizer.id_limit() - 1;
  expect_error(ErrorKind::mismatch, {"tokenizer"}, [&] { DecisionModel(std::move(checkpoint), {}); });
}

TEST(DecisionModel, AFileChangedBetweenOpeningAndLoadingIsRefused) {
  const TemporaryDirectory directory;
  directory.copy(std::filesystem::path(ASSAY_TEST_DATA) / "kev-tiny-dense/base", "base");
  directory.copy(std::filesystem::path(ASSAY_TEST_DATA) / "kev-tiny-dense/run", "run");
  Checkpoint checkpoint = open_checkpoint(directory / "run", std::nullopt);
  const std::filesystem::path weights = directory / "base/model.safetensors";
  std::filesystem::last_write_time(weights, std::filesystem::file_time_type::clock::now());
  expect_error(ErrorKind::io, {"base/model.safetensors", "written while it was read"},
               [&] { DecisionModel(std::move(checkpoint), {}); });
}

TEST(DecisionModel, ItsAnswersOutliveItsFiles) {
  const TemporaryDirectory directory;
  directory.copy(std::filesystem::path(ASSAY_TEST_DATA) / "kev-tiny-hybrid/base", "base");
  directory.copy(std::filesystem::path(ASSAY_TEST_DATA) / "kev-tiny-hybrid/run", "run");
  const auto model = DecisionModel::load(directory / "run", std::nullopt, {});
  const Request request = record_request(fixture_records("kev-tiny-hybrid").front());
  const auto before = model->decide(request).questions[0].logits;
  std::filesystem::resize_file(directory / "base/model.safetensors", 0);
  EXPECT_EQ(model->decide(request).questions[0].logits, before);
}

}  // namespace
}  // namespace assay::decision
