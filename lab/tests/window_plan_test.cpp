#include <gtest/gtest.h>

#include <functional>

#include <nlohmann/json.hpp>

#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"
#include "lab/window/plan.hpp"
#include "lab/window/work_set.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

Json example_plan() {
  return Json::parse(R"({
    "schema": "assay.window-plan/1", "name": "example_plan", "device": "cpu",
    "items": [{"name": "row", "shape": "kev-tiny", "row_tokens": 40, "questions": 2},
              {"name": "product", "op": "matmul", "sizes": {"m": 3, "n": 32, "k": 64}, "calls": 4}],
    "forms": [{"name": "a", "precision": "fp32"},
              {"name": "b", "ops": {"gated_delta_rule": "reference"}, "threads": 1, "call_tokens": 64}]})");
}

WindowPlan parse_plan(const Json& json) {
  return parse_window_plan(json.dump(), "plan.json");
}

TEST(WindowPlan, DefaultsAreThoseThatTheHeaderStates) {
  const WindowPlan plan = parse_plan(example_plan());
  EXPECT_EQ(plan.name, "example_plan");
  EXPECT_EQ(plan.sha256.size(), 64u);
  ASSERT_EQ(plan.items.size(), 2u);
  EXPECT_EQ(plan.items[0].settling_runs, 0u);
  EXPECT_EQ(plan.items[1].settling_runs, 1u);
  EXPECT_EQ(plan.items[1].calls, 4u);
  EXPECT_EQ(plan.items[1].sizes.at("n"), 32u);
  ASSERT_EQ(plan.forms.size(), 2u);
  EXPECT_EQ(plan.forms[0].precision, ops::Precision::fp32);
  EXPECT_EQ(plan.forms[1].precision, ops::Precision::bf16);
  EXPECT_EQ(plan.forms[1].call_tokens, 64u);
  EXPECT_EQ(plan.processes, 2u);
  EXPECT_EQ(plan.repetitions, 12u);
  EXPECT_EQ(plan.alive, Alive::rounds);
  EXPECT_EQ(plan.limits.other_cpu, 0.05);
  EXPECT_EQ(plan.rule.min_wins, 0.75);
}

TEST(WindowPlan, LimitsAndRuleAreTightenedOnly) {
  const WindowPlan plan = parse_plan(example_plan());
  const std::vector<std::tuple<std::string, std::string, Json>> looser = {
      {"limits", "other_cpu", plan.limits.other_cpu + 0.01},
      {"limits", "other_cpu_second", plan.limits.other_cpu_second + 0.01},
      {"limits", "load_per_core", plan.limits.load_per_core + 0.1},
      {"limits", "steal", plan.limits.steal + 0.01},
      {"limits", "available_memory_bytes", plan.limits.available_memory_bytes - 1},
      {"rule", "confidence", plan.rule.confidence - 0.01},
      {"rule", "min_wins", plan.rule.min_wins - 0.01},
      {"rule", "min_ratio", plan.rule.min_ratio - 0.01},
      {"rule", "min_pairs", plan.rule.min_pairs - 1},
      {"rule", "suspicious_ratio", plan.rule.suspicious_ratio + 1}};
  for (const auto& [part, field, value] : looser) {
    Json json = example_plan();
    json[part] = {{field, value}};
    try {
      parse_plan(json);
      ADD_FAILURE() << field;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
    }
  }
}

TEST(WindowPlan, EveryFieldIsRead) {
  Json json = example_plan();
  json["processes"] = 3;
  json["repetitions"] = 4;
  json["warm_ups"] = 0;
  json["alive"] = "together";
  json["timeout_seconds"] = 2.5;
  json["limits"] = {{"other_cpu", 0.01}, {"available_memory_bytes", std::size_t{1} << 30}};
  json["rule"] = {{"min_ratio", 1.1}, {"seed", 9}};
  json["ceilings"] = {{"fp32_flops", 1e11}};
  const WindowPlan plan = parse_plan(json);
  EXPECT_EQ(plan.processes, 3u);
  EXPECT_EQ(plan.repetitions, 4u);
  EXPECT_EQ(plan.warm_ups, 0u);
  EXPECT_EQ(plan.alive, Alive::together);
  EXPECT_EQ(plan.timeout_seconds, 2.5);
  EXPECT_EQ(plan.limits.other_cpu, 0.01);
  EXPECT_EQ(plan.limits.available_memory_bytes, std::size_t{1} << 30);
  EXPECT_EQ(plan.rule.min_ratio, 1.1);
  EXPECT_EQ(plan.rule.seed, 9u);
  EXPECT_EQ(plan.ceilings.fp32_flops, 1e11);
  EXPECT_FALSE(plan.ceilings.bf16_flops.has_value());
}

struct BadPlan {
  ErrorKind kind;
  const char* message;
  std::function<void(Json&)> spoil;
};

TEST(WindowPlan, BadInputIsRefusedWithItsPlace) {
  using enum ErrorKind;
  const BadPlan cases[] = {
      {malformed, "schema", [](Json& j) { j.erase("schema"); }},
      {unsupported, "assay.window-plan/2", [](Json& j) { j["schema"] = "assay.window-plan/2"; }},
      {malformed, "repetition", [](Json& j) { j["repetition"] = 4; }},
      {malformed, "name", [](Json& j) { j["name"] = 5; }},
      {invalid_argument, "name", [](Json& j) { j["name"] = ""; }},
      {unsupported, "no forms for other devices", [](Json& j) { j["device"] = "cuda:0"; }},
      {invalid_argument, "no item", [](Json& j) { j["items"] = Json::array(); }},
      {invalid_argument, "no form", [](Json& j) { j["forms"] = Json::array(); }},
      {malformed, "items", [](Json& j) { j["items"] = "all"; }},
      {invalid_argument, "two of the name \"row\"", [](Json& j) { j["items"][1]["name"] = "row"; }},
      {invalid_argument, "two of the name \"a\"", [](Json& j) { j["forms"][1]["name"] = "a"; }},
      {invalid_argument, "2 of 'model', 'shape' and 'op'", [](Json& j) { j["items"][0]["op"] = "matmul"; }},
      {invalid_argument, "0 of", [](Json& j) { j["items"][0].erase("shape"); }},
      {malformed, "row_token", [](Json& j) { j["items"][0]["row_token"] = 9; }},
      {invalid_argument, "row_tokens", [](Json& j) { j["items"][0]["row_tokens"] = 32; }},
      {invalid_argument, "row_tokens", [](Json& j) { j["items"][0]["row_tokens"] = 9000; }},
      {malformed, "row_tokens", [](Json& j) { j["items"][0]["row_tokens"] = -1; }},
      {invalid_argument, "questions", [](Json& j) { j["items"][0]["questions"] = 0; }},
      {invalid_argument, "kev-9t", [](Json& j) { j["items"][0]["shape"] = "kev-9t"; }},
      {unsupported, "matmull", [](Json& j) { j["items"][1]["op"] = "matmull"; }},
      {invalid_argument, "no size 'k'", [](Json& j) { j["items"][1]["sizes"].erase("k"); }},
      {invalid_argument, "4 sizes", [](Json& j) { j["items"][1]["sizes"]["q"] = 1; }},
      {invalid_argument, "m 0", [](Json& j) { j["items"][1]["sizes"]["m"] = 0; }},
      {invalid_argument, "GiB",
       [](Json& j) {
         j["items"][1]["sizes"] = {{"m", 1}, {"n", 1 << 20}, {"k", 1 << 20}};
       }},
      {invalid_argument, "calls", [](Json& j) { j["items"][1]["calls"] = 0; }},
      {missing, "nothing at",
       [](Json& j) {
         j["items"][0] = {{"name", "r"}, {"model", "none"}, {"request", "x"}};
       }},
      {invalid_argument, "precision", [](Json& j) { j["forms"][0]["precision"] = "fp8"; }},
      {invalid_argument, "forms[1]",
       [](Json& j) {
         j["forms"][1]["ops"] = {{"gated_delta_rule", "magic"}};
       }},
      {invalid_argument, "threads", [](Json& j) { j["forms"][1]["threads"] = 5000; }},
      {malformed, "thread", [](Json& j) { j["forms"][1]["thread"] = 1; }},
      {invalid_argument, "processes", [](Json& j) { j["processes"] = 1; }},
      {invalid_argument, "a multiple of 2", [](Json& j) { j["repetitions"] = 3; }},
      {invalid_argument, "samples", [](Json& j) { j["repetitions"] = 90000; }},
      {invalid_argument, "alive", [](Json& j) { j["alive"] = "some"; }},
      {invalid_argument, "timeout_seconds", [](Json& j) { j["timeout_seconds"] = 0; }},
      {invalid_argument, "other_cpu",
       [](Json& j) {
         j["limits"] = {{"other_cpu", 2}};
       }},
      {malformed, "limits",
       [](Json& j) {
         j["limits"] = {{"cpu", 0.1}};
       }},
      {invalid_argument, "confidence",
       [](Json& j) {
         j["rule"] = {{"confidence", 1}};
       }},
      {invalid_argument, "min_ratio",
       [](Json& j) {
         j["rule"] = {{"min_ratio", 0.5}};
       }},
      {invalid_argument, "fp32_flops",
       [](Json& j) {
         j["ceilings"] = {{"fp32_flops", 0}};
       }},
  };
  for (const BadPlan& bad : cases) {
    SCOPED_TRACE(bad.message);
    Json json = example_plan();
    bad.spoil(json);
    expect_error(bad.kind, bad.message, [&] { parse_plan(json); });
  }
  expect_error(ErrorKind::malformed, "plan.json", [] { parse_window_plan("{", "plan.json"); });
  expect_error(ErrorKind::missing, "no-plan.json", [] { read_window_plan("no-plan.json"); });
}

TEST(WindowPlan, PathsAreRelativeToThePlansFolder) {
  const TemporaryDirectory folder;
  folder.write("plans/request.json", "{}");
  Json json = example_plan();
  json["items"] = {{{"name", "r"}, {"model", "."}, {"request", "request.json"}}};
  const auto file = folder.write("plans/plan.json", json.dump());
  EXPECT_EQ(read_window_plan(file).items[0].request, folder / "plans/request.json");
}

Json conv1d_sizes() {
  return {{"length", 10}, {"in_channels", 3}, {"out_channels", 4}, {"kernel", 3},
          {"stride", 1},  {"dilation", 2},    {"padding", 2}};
}

Json conv_transpose1d_sizes() {
  return {{"length", 5}, {"in_channels", 3}, {"out_channels", 4},
          {"kernel", 4}, {"stride", 2},      {"padding", 1}};
}

TEST(WorkSet, EveryOpRunsAndCountsItsWork) {
  Json json = example_plan();
  json["items"] = Json::array();
  const auto add = [&](const char* op, const Json& sizes) {
    json["items"].push_back({{"name", op}, {"op", op}, {"sizes", sizes}});
  };
  add("matmul", {{"m", 3}, {"n", 32}, {"k", 64}});
  add("attention", {{"tokens", 5}, {"heads", 4}, {"kv_heads", 2}, {"head_dim", 64}, {"inherited", 3}});
  add("gated_delta_rule",
      {{"tokens", 20}, {"key_heads", 1}, {"value_heads", 2}, {"key_dim", 64}, {"value_dim", 64}});
  add("causal_conv1d", {{"tokens", 9}, {"channels", 64}, {"width", 4}});
  add("rms_norm", {{"rows", 3}, {"dim", 64}});
  add("swiglu", {{"rows", 3}, {"dim", 64}});
  add("conv1d", conv1d_sizes());
  add("conv_transpose1d", conv_transpose1d_sizes());
  add("snake", {{"rows", 3}, {"channels", 64}});
  ASSERT_EQ(json["items"].size(), timed_ops().size());
  const WindowPlan plan = parse_plan(json);
  for (const WindowForm& form : plan.forms) {
    WorkSet set(plan, form);
    for (std::size_t i = 0; i < set.size(); ++i) {
      set.item(i).run();
      EXPECT_GT(set.item(i).cost().bytes, 0) << plan.items[i].op;
      EXPECT_EQ(set.model(i), "");
    }
    const WorkCost product = set.item(0).cost();
    EXPECT_EQ(product.fp32_operations + product.bf16_operations, 2.0 * 3 * 32 * 64);
    EXPECT_EQ(product.bf16_operations > 0, form.precision == ops::Precision::bf16);
    EXPECT_EQ(set.item(1).cost().fp32_operations, 4.0 * (5 * 3 + 15) * 4 * 64);
    EXPECT_GT(least_bytes(plan, form), 0);
  }
}

/// The cost of one op by the selection's default forms.
WorkCost cost_of(const char* op, const Json& sizes, ops::Precision precision) {
  device::ThreadPool threads(1);
  const auto work = make_op_work(op, sizes.get<OpSizes>(), ops::select_forms(precision, {}), threads);
  work->run();
  return work->cost();
}

TEST(OpWork, AConvolutionCountsTheProductsOfValuesThatAreThere) {
  // Ten rows of output under three taps, two rows of which reach into the padding at either end.
  const WorkCost fp32 = cost_of("conv1d", conv1d_sizes(), ops::Precision::fp32);
  EXPECT_EQ(fp32.fp32_operations, 2.0 * (30 - 4) * 3 * 4);
  EXPECT_EQ(fp32.bf16_operations, 0);
  EXPECT_EQ(fp32.bytes, 4.0 * (10 * 3 + 10 * 4 + 4 + 3 * 3 * 4));
  const WorkCost bf16 = cost_of("conv1d", conv1d_sizes(), ops::Precision::bf16);
  EXPECT_EQ(bf16.fp32_operations, 0);
  EXPECT_EQ(bf16.bf16_operations, fp32.fp32_operations);
  EXPECT_EQ(fp32.bytes - bf16.bytes, 2.0 * 3 * 3 * 4);

  Json strided = conv1d_sizes();
  strided["stride"] = 3;  // rows at 0, 3, 6 and 9: the first and the last miss a tap
  EXPECT_EQ(cost_of("conv1d", strided, ops::Precision::fp32).fp32_operations, 2.0 * (12 - 2) * 3 * 4);
}

TEST(OpWork, ATransposedConvolutionCountsTheTapsThatReachARow) {
  // Five rows of x by four taps, of which the first and the last fall on rows that the padding cuts off.
  const WorkCost fp32 = cost_of("conv_transpose1d", conv_transpose1d_sizes(), ops::Precision::fp32);
  EXPECT_EQ(fp32.fp32_operations, 2.0 * (20 - 2) * 3 * 4);
  EXPECT_EQ(fp32.bytes, 4.0 * (5 * 3 + 10 * 4 + 4 + 4 * 3 * 4));
  const WorkCost bf16 = cost_of("conv_transpose1d", conv_transpose1d_sizes(), ops::Precision::bf16);
  EXPECT_EQ(bf16.bf16_operations, fp32.fp32_operations);
}

TEST(OpWork, SnakeCountsBytesAlone) {
  const WorkCost cost = cost_of("snake", {{"rows", 3}, {"channels", 64}}, ops::Precision::fp32);
  EXPECT_EQ(cost.fp32_operations, 0);
  EXPECT_EQ(cost.bytes, 4.0 * (2 * 3 * 64 + 2 * 64));
}

TEST(OpWork, AConvolutionWithoutOutputIsRefused) {
  Json short_one = conv1d_sizes();
  short_one["length"] = 1;
  short_one["padding"] = 0;
  Json cut_off = conv_transpose1d_sizes();
  cut_off["padding"] = 6;
  const auto refused = [](const char* op, const Json& sizes, const std::string& part) {
    expect_error(ErrorKind::invalid_argument, part, [&] { check_op(op, sizes.get<OpSizes>(), "items[0]"); });
  };
  refused("conv1d", short_one, "no rows of output");
  refused("conv_transpose1d", cut_off, "no rows of output");
  Json huge = conv1d_sizes();
  for (const char* name : {"length", "in_channels", "out_channels"}) huge[name] = std::size_t{1} << 24;
  refused("conv1d", huge, "at most 16 GiB");
}

}  // namespace
}  // namespace assay::lab
