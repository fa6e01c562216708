#include "lab/cost/profile.hpp"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace assay::lab {
namespace {

using backbone::OpCall;
using testing::HasSubstr;
using namespace std::chrono_literals;

/// One thread; 1e9 fp32 and 2e9 bf16 operations a second; 1e9 bytes a second everywhere but L1, which moves
/// 4e9.
Ceilings planted_ceilings() {
  Ceilings ceilings;
  ceilings.caches = {32768, 1u << 20, 1u << 25};
  const auto rate = [](double median) { return Summary{3, median, median, median, median, median, 0}; };
  ceilings.peaks.push_back({"fp32_fma", ops::Precision::fp32, 1, rate(1e9)});
  ceilings.peaks.push_back({"bf16_dot", ops::Precision::bf16, 1, rate(2e9)});
  for (const MemoryLevel level : {MemoryLevel::l1, MemoryLevel::l2, MemoryLevel::l3, MemoryLevel::memory}) {
    for (const MemoryAccess access : {MemoryAccess::read, MemoryAccess::write, MemoryAccess::copy}) {
      ceilings.bandwidths.push_back(
          {level, access, 1, 4096, false, rate(level == MemoryLevel::l1 ? 4e9 : 1e9)});
    }
  }
  return ceilings;
}

OpCall call(std::string_view op, std::string_view part, std::int32_t layer, OpCall::Clock::duration begin,
            OpCall::Clock::duration length) {
  OpCall made;
  made.op = op;
  made.form = "vector";
  made.part = part;
  made.layer = layer;
  made.shape = {{{"rows", 8}, {"dim", 64}}};
  made.begin = OpCall::Clock::time_point(begin);
  made.end = made.begin + length;
  return made;
}

/// 100 ms, of which ops take 30 + 20 + 10.
ProfilePass planted_pass() {
  ProfilePass pass;
  pass.begin = OpCall::Clock::time_point(1s);
  pass.end = pass.begin + 100ms;
  pass.calls = {call("rms_norm", "input_norm", 0, 1s + 5ms, 10ms), call("matmul", "qkv", 0, 1s + 20ms, 30ms),
                call("rms_norm", "post_attention_norm", 1, 1s + 60ms, 20ms)};
  OpCall& product = pass.calls[1];
  product.precision = ops::Precision::bf16;
  product.operations = 4e6;
  product.weight_bytes = 5e5;
  product.data_bytes = 4e4;
  pass.calls[0].data_bytes = 2e4;
  pass.calls[2].data_bytes = 2e4;
  return pass;
}

TEST(Profile, LinesAndWhatIsInNoOpMakeUpTheWallTime) {
  const ProfileReport report =
      make_profile({planted_pass(), planted_pass()}, planted_ceilings(), 1, 1u << 30);
  EXPECT_NEAR(report.wall, 0.1, 1e-12);
  EXPECT_NEAR(report.unaccounted, 0.04, 1e-12);
  ASSERT_EQ(report.lines.size(), 2u);
  EXPECT_EQ(report.lines[0].op, "matmul");
  EXPECT_NEAR(report.lines[0].seconds, 0.03, 1e-12);
  EXPECT_EQ(report.lines[0].calls, 1);
  EXPECT_EQ(report.lines[1].parts, "input_norm,post_attention_norm");
  EXPECT_EQ(report.lines[1].shape, "rows=8 dim=64");
  EXPECT_NEAR(report.lines[1].seconds, 0.03, 1e-12);
  EXPECT_EQ(report.lines[1].calls, 2);
}

TEST(Profile, TheFloorIsTheLargerOfArithmeticAndMovementCallByCall) {
  const ProfileReport report = make_profile({planted_pass()}, planted_ceilings(), 1, 1u << 30);
  const ProfileLine& product = report.lines[0];
  EXPECT_NEAR(product.arithmetic, 4e6 / 2e9, 1e-12);
  // Weights come from memory, the 40,000 bytes of activations from L2.
  EXPECT_NEAR(product.movement, 5e5 / 1e9 + 4e4 / 1e9, 1e-12);
  EXPECT_NEAR(product.floor, product.arithmetic, 1e-12);
  const ProfileLine& norms = report.lines[1];
  EXPECT_EQ(norms.arithmetic, 0);
  EXPECT_NEAR(norms.floor, 2 * 2e4 / 4e9, 1e-12);
  EXPECT_NEAR(to_json(report)["lines"][1]["times_floor"].get<double>(), 0.03 / norms.floor, 1e-6);
}

TEST(Profile, WithoutPassesOrWithCeilingsForOtherThreadsIsAnError) {
  EXPECT_THROW(make_profile({}, planted_ceilings(), 1, 1), Error);
  EXPECT_THROW(make_profile({planted_pass()}, planted_ceilings(), 2, 1), Error);
}

/// Checks what viewers need of every event and returns how many there are of each category.
std::map<std::string, std::size_t> check_trace(const nlohmann::ordered_json& trace) {
  std::map<std::string, std::size_t> categories;
  std::vector<std::pair<double, double>> open;  // begin and end of the events that this one must nest in
  for (const auto& event : trace.at("traceEvents")) {
    EXPECT_TRUE(event.at("name").is_string());
    EXPECT_TRUE(event.at("pid").is_number_integer() && event.at("tid").is_number_integer());
    EXPECT_TRUE(event.at("args").is_object());
    const std::string phase = event.at("ph");
    if (phase == "M") continue;
    EXPECT_EQ(phase, "X");
    ++categories[event.at("cat")];
    const double begin = event.at("ts");
    const double end = begin + event.at("dur").get<double>();
    EXPECT_GE(begin, 0);
    EXPECT_GE(end, begin);
    while (!open.empty() && open.back().second < begin + 1e-6) open.pop_back();
    if (!open.empty()) {
      EXPECT_GE(begin, open.back().first - 1e-3);
      EXPECT_LE(end, open.back().second + 1e-3);
    }
    open.emplace_back(begin, end);
  }
  return categories;
}

TEST(Profile, TheTraceHasAPassItsLayersAndItsOpsNested) {
  ProfileReport report = make_profile({planted_pass()}, planted_ceilings(), 1, 1u << 30);
  const nlohmann::ordered_json trace = to_chrome_trace(report);
  auto categories = check_trace(trace);
  EXPECT_EQ(categories["pass"], 1u);
  EXPECT_EQ(categories["layer"], 2u);
  EXPECT_EQ(categories["op"], 3u);
  const auto& product = trace["traceEvents"][5];
  EXPECT_EQ(product["name"], "matmul qkv");
  EXPECT_NEAR(product["ts"].get<double>(), 20'000, 1e-6);
  EXPECT_NEAR(product["dur"].get<double>(), 30'000, 1e-6);
  EXPECT_EQ(product["args"]["layer"], 0);
}

TEST(Profile, OfAModelsCallAddsUpAndItsTraceIsWhole) {
  ProfileOptions options;
  options.choice.shape = "kev-tiny";
  options.precision = ops::Precision::fp32;
  options.threads = 1;
  options.tokens = 40;
  options.passes = 2;
  const ProfileReport report = measure_profile(options, planted_ceilings(), [](std::string_view) {});
  double sum = report.unaccounted;
  double calls = 0;
  for (const ProfileLine& line : report.lines) {
    sum += line.seconds;
    calls += line.calls;
    EXPECT_GT(line.floor, 0) << line.op;
  }
  EXPECT_NEAR(sum, report.wall, 1e-9);
  EXPECT_GE(report.unaccounted, 0);
  EXPECT_EQ(check_trace(to_chrome_trace(report))["op"], static_cast<std::size_t>(2 * calls));
  EXPECT_THAT(to_table(report), HasSubstr("in no op"));
  EXPECT_EQ(report.subject["tokens"], 40);
}

ProfileOptions request_options(std::string request) {
  ProfileOptions options;
  options.choice.model = std::string(ASSAY_TEST_DATA) + "/kev-tiny-hybrid/run";
  options.threads = 1;
  options.passes = 1;
  options.request = std::move(request);
  options.request_name = "request.json";
  return options;
}

TEST(Profile, OfARequestIsOfItsDecision) {
  const std::string request =
      R"({"state": "a short state", "questions": {"q": {"type": "noul", "instructions": "is it short?"}}})";
  const ProfileReport report =
      measure_profile(request_options(request), planted_ceilings(), [](std::string_view) {});
  EXPECT_FALSE(report.lines.empty());
  EXPECT_GT(report.unaccounted, 0);
  EXPECT_EQ(report.subject["request"].get<std::string>().size(), 64u);
}

TEST(Profile, BadOptionsAndRequestsAreErrorsThatNameThem) {
  const auto message = [](const ProfileOptions& options) -> std::string {
    try {
      measure_profile(options, planted_ceilings(), [](std::string_view) {});
    } catch (const Error& error) {
      return error.what();
    }
    return "profiled without an error";
  };
  EXPECT_THAT(message(request_options("{")), HasSubstr("request.json"));
  EXPECT_THAT(message(request_options(R"({"state": "s"})")), HasSubstr("questions"));
  ProfileOptions options;
  EXPECT_THAT(message(options), HasSubstr("--shape"));
  options.choice.shape = "kev-tiny";
  options.passes = 0;
  EXPECT_THAT(message(options), HasSubstr("--passes"));
  options.passes = 1;
  options.tokens = 0;
  EXPECT_THAT(message(options), HasSubstr("--tokens"));
  options.tokens = 1;
  options.request = "{}";
  EXPECT_THAT(message(options), HasSubstr("--request"));
}

}  // namespace
}  // namespace assay::lab
