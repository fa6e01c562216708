#include "lab/cost/footprint.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace assay::lab {
namespace {

using testing::HasSubstr;

FootprintOptions tiny() {
  FootprintOptions options;
  options.choice.model = std::string(ASSAY_TEST_DATA) + "/kev-tiny-hybrid/run";
  options.threads = 1;
  options.tokens = 64;
  options.calls = 3;
  return options;
}

template <class Work>
std::string message(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Footprint, HasItsStagesInOrderAndAPeakOverThemAll) {
  const FootprintReport report = measure_footprint_here(tiny());
  ASSERT_EQ(report.stages.size(), 4u);
  EXPECT_EQ(report.stages[0].name, "start");
  EXPECT_EQ(report.stages[1].name, "loaded");
  EXPECT_EQ(report.stages[2].name, "first use");
  EXPECT_EQ(report.stages[3].name, "end");
  for (const FootprintStage& stage : report.stages) {
    EXPECT_EQ(stage.memory.resident, stage.memory.anonymous + stage.memory.file_mapped);
    EXPECT_GT(stage.memory.resident, 0u);
  }
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_GT(report.devices[0].weight_bytes, 0u);
  EXPECT_EQ(report.subject["tokens"], 64);
}

TEST(Footprint, GoesThroughTheFreshProcesssJsonUnchanged) {
  const FootprintReport report = measure_footprint_here(tiny());
  const nlohmann::ordered_json answer{{"subject", report.subject}, {"result", to_json(report)}};
  const FootprintReport read = read_footprint_report(answer.dump());
  EXPECT_EQ(to_json(read), to_json(report));
  EXPECT_EQ(read.subject, report.subject);
  FootprintOptions options = tiny();
  options.forms = {{"gated_delta_rule", "vector"}};
  EXPECT_EQ(to_json(read_footprint_options(to_json(options).dump())), to_json(options));
}

TEST(Footprint, AnAnswerOrOptionsThatAreNotWholeAreErrors) {
  EXPECT_THROW(read_footprint_report(""), Error);
  EXPECT_THROW(read_footprint_report("[]"), Error);
  nlohmann::ordered_json answer{{"subject", nlohmann::ordered_json::object()},
                                {"result", to_json(measure_footprint_here(tiny()))}};
  answer["result"]["process"]["stages"][2].erase("anonymous");
  EXPECT_THAT(message([&] { read_footprint_report(answer.dump()); }), HasSubstr("anonymous"));
  nlohmann::ordered_json options = to_json(tiny());
  options["precision"] = "int4";
  EXPECT_THAT(message([&] { read_footprint_options(options.dump()); }), HasSubstr("precision"));
  options = to_json(tiny());
  options["token"] = 3;
  EXPECT_THAT(message([&] { read_footprint_options(options.dump()); }), HasSubstr("token"));
}

TEST(Footprint, OptionsOutOfRangeAreErrors) {
  FootprintOptions options = tiny();
  options.tokens = 1;
  EXPECT_THAT(message([&] { measure_footprint_here(options); }), HasSubstr("--tokens"));
  options = tiny();
  options.calls = 0;
  EXPECT_THAT(message([&] { measure_footprint_here(options); }), HasSubstr("--calls"));
  options = tiny();
  options.tokens = 60'000;  // more than the model has positions
  EXPECT_THAT(message([&] { measure_footprint_here(options); }), HasSubstr("--tokens"));
  options = tiny();
  options.choice = {};
  EXPECT_THAT(message([&] { measure_footprint_here(options); }), HasSubstr("--model"));
}

TEST(Footprint, GrowthOfAModelKnowsWhatItRan) {
  GrowthOptions growth;
  growth.shortest = 1;
  growth.longest = 48;
  growth.calls = 40;
  nlohmann::ordered_json subject;
  const GrowthReport report = measure_model_growth(tiny(), growth, subject);
  EXPECT_EQ(report.bytes.size(), 40u);
  EXPECT_EQ(subject["model"]["name"], "kev-tiny-hybrid/run");
  growth.calls = 1;
  EXPECT_THAT(message([&] { measure_model_growth(tiny(), growth, subject); }), HasSubstr("calls"));
}

}  // namespace
}  // namespace assay::lab
