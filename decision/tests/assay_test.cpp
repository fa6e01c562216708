#include "assay/assay.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "decision/tests/expect_error.hpp"
#include "decision/tests/fixture.hpp"

namespace assay::decision {
namespace {

TEST(PublicInterface, AnswersARequest) {
  std::size_t layers = 0;
  api::DecisionOptions options;
  options.exact = true;
  options.threads = 1;
  options.progress = [&](std::size_t done, std::size_t) { layers = done; };
  api::DecisionModel model(run_directory("kev-tiny-dense"), options);
  EXPECT_EQ(layers, 3u);
  EXPECT_EQ(model.identity().size(), 64u);
  const auto record = fixture_records("kev-tiny-dense")[3];
  api::DecisionModel moved = std::move(model);
  const auto body = nlohmann::ordered_json::parse(moved.decide(record["request"].dump()));
  EXPECT_EQ(body["answers"].size(), record["rows"].size());
  EXPECT_EQ(body["model"], record["request"]["model"]);
}

TEST(PublicInterface, FailuresNameTheField) {
  api::DecisionModel model(run_directory("kev-tiny-dense"));
  expect_error(ErrorKind::invalid_argument, {"request.questions"}, [&] { model.decide(R"({"state":1})"); });
}

}  // namespace
}  // namespace assay::decision
