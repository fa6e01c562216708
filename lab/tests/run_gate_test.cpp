#include "lab/gate/run_gate.hpp"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/tests/expect_error.hpp"
#include "decision/model.hpp"
#include "lab/gate/decision_subject.hpp"
#include "lab/gate/execute.hpp"
#include "lab/gate/op_subject.hpp"

namespace assay::lab {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string data_path(const std::string& name) {
  return std::string(ASSAY_TEST_DATA "/") + name;
}

/// A generator of noise from a seed, as a stage of a music model is one: an array of samples with a rate.
class Noise final : public Subject {
 public:
  explicit Noise(std::vector<unsigned> seeds, std::size_t period = 0)
      : seeds_(std::move(seeds)), period_(period) {}

  nlohmann::ordered_json describe() const override { return {{"type", "noise"}}; }
  std::size_t cases() const override { return seeds_.size(); }
  std::string case_name(std::size_t index) const override { return "seed " + std::to_string(seeds_[index]); }
  Answer expected(std::size_t index) override { return wave(seeds_[index]); }
  Answer run(std::size_t index) override { return wave(seeds_[index]); }
  std::optional<Answer> run_changed(std::size_t index, std::string_view arm) override {
    if (arm != input_arm::kWrongSeed) return std::nullopt;
    return wave(seeds_[index] + 1);
  }

 private:
  /// Seed 0 is silence.
  Answer wave(unsigned seed) const {
    std::vector<float> samples(2000);
    unsigned state = seed;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (period_ > 0 && i >= period_) {
        samples[i] = samples[i - period_];
      } else if (seed > 0) {
        samples[i] = static_cast<float>(state = state * 1664525u + 1013904223u) / 4294967296.0f - 0.5f;
      }
    }
    Answer answer;
    answer.arrays.push_back(
        {.name = "wave", .shape = {2, 1000}, .values = std::move(samples), .sample_rate = 500});
    return answer;
  }

  std::vector<unsigned> seeds_;
  std::size_t period_;
};

GateFile audio_gate(std::vector<RedArm> arms, double threshold = 0.01) {
  GateFile gate;
  gate.name = "audio";
  gate.bar = AudioBar{.whole = {}, .nrmse_per_second = threshold};
  gate.red_arms = std::move(arms);
  return gate;
}

TEST(RedArms, AWrongSeedAndAShiftedWindowAreRed) {
  Noise subject({1, 2});
  const GateReport report = run_gate(audio_gate({{"wrong_seed", 0}, {"shifted_window", 0.01}}), subject);
  EXPECT_TRUE(report.pass()) << to_text(report);
  EXPECT_EQ(report.red_arms[1].outcome, ArmOutcome::red);
  EXPECT_EQ(report.red_arms[1].changed, 2u);
}

TEST(RedArms, AnArmThatPassesFailsTheGate) {
  Noise subject({1});
  const GateReport report = run_gate(audio_gate({{"wrong_seed", 0}}, 100), subject);
  EXPECT_TRUE(report.verdict.pass());
  EXPECT_EQ(report.red_arms[0].outcome, ArmOutcome::green);
  EXPECT_FALSE(report.pass());
}

TEST(RedArms, AnArmThatChangesNothingIsInertAndFailsTheGate) {
  Noise silence({0});
  GateReport report = run_gate(audio_gate({{"permuted_output", 0}}), silence);
  EXPECT_TRUE(report.verdict.pass());
  EXPECT_EQ(report.red_arms[0].outcome, ArmOutcome::inert);
  EXPECT_FALSE(report.pass());
  EXPECT_EQ(receipt_result(report)["red_arms"]["permuted_output"]["outcome"], "INERT");
  // A shift by whole periods: 25 samples at 500 a second.
  Noise periodic({1}, 25);
  report = run_gate(audio_gate({{"shifted_window", 0.05}}), periodic);
  EXPECT_EQ(report.red_arms[0].outcome, ArmOutcome::inert);
}

TEST(RedArms, CasesThatAnArmLeavesAsTheyAreAreLeftOutOfIt) {
  Noise subject({0, 3});
  const GateReport report = run_gate(audio_gate({{"scaled_output", 1.5}}), subject);
  EXPECT_EQ(report.red_arms[0].outcome, ArmOutcome::red);
  EXPECT_EQ(report.red_arms[0].changed, 1u);
  EXPECT_EQ(report.red_arms[0].unchanged, 1u);
}

TEST(RedArms, AnArmThatNoCaseHasRoomForIsAnError) {
  Noise subject({1});
  expect_error(ErrorKind::limit_exceeded, "swapped_states", [&] {
    run_gate(audio_gate({{"swapped_states", 0}}), subject);
  });
}

TEST(RunGate, NoCasesIsAFailure) {
  Noise subject({});
  const GateReport report = run_gate(audio_gate({{"wrong_seed", 0}}), subject);
  EXPECT_THAT(report.verdict.failures, Contains("no values compared"));
  EXPECT_FALSE(report.pass());
}

/// A form of matmul that is wrong in one value of many.
void run_wrong(const ops::Context& context, const ops::MatmulArgs& args) {
  ops::MatmulArgs plain = args;
  ops::matmul_forms()[0].run(context, plain);
  if (args.m > 0 && args.w->n > 2) args.y.row(args.m - 1)[2] += 0.01f;
}

TEST(OpGate, EveryFormThatRunsHerePassesItsGateAndItsArmsAreRed) {
  std::size_t judged = 0;
  for (const ops::FormListing& form : ops::list_forms()) {
    if (!form.supported) continue;
    SCOPED_TRACE(std::string(form.op) + "=" + std::string(form.info.name));
    const std::string precision(to_string(form.info.precision));
    const std::string name =
        "op-" + std::string(form.op) + (ops::has_forms_by_precision(form.op) ? "-" + precision : "");
    GateTarget target{.precision = form.info.precision};
    target.forms.emplace(form.op, form.info.name);
    const auto reports = execute_gate(read_gate_file(data_path("../../lab/gates/" + name + ".json")), target);
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_TRUE(reports[0].pass()) << to_text(reports[0]);
    ++judged;
  }
  EXPECT_GE(judged, 26u);
}

TEST(OpGate, AFormThatIsWrongInOneValueFails) {
  ops::MatmulForm wrong = ops::matmul_forms()[0];
  wrong.run = run_wrong;
  static ops::MatmulForm faulty;
  faulty = wrong;
  faulty.pack = [](std::size_t n, std::size_t k, const ops::WeightRows& rows) {
    ops::MatmulWeight weight = ops::matmul_forms()[0].pack(n, k, rows);
    weight.form = &faulty;
    return weight;
  };
  ops::Selection selection = ops::select_forms(ops::Precision::fp32);
  selection.matmul = &faulty;
  OpSubject subject("matmul", 1, selection, ops::Precision::fp32);
  const GateReport report =
      run_gate(read_gate_file(data_path("../../lab/gates/op-matmul-fp32.json")), subject);
  EXPECT_FALSE(report.verdict.pass());
  EXPECT_THAT(report.verdict.failures, Contains(HasSubstr("n=")));
}

TEST(OpGate, AnUnknownOpIsRefused) {
  expect_error(ErrorKind::invalid_argument, "expected one of matmul", [] { make_op_cases("conv3d", 1); });
}

TEST(OpGate, TheSameSeedGivesTheSameCases) {
  const auto once = make_op_cases("gated_delta_rule", 5), again = make_op_cases("gated_delta_rule", 5);
  ASSERT_EQ(once.size(), again.size());
  EXPECT_TRUE(same_bits(once.back()->exact(), again.back()->exact()));
  EXPECT_FALSE(same_bits(once.back()->exact(), make_op_cases("gated_delta_rule", 6).back()->exact()));
}

class OnACheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    model_ = decision::DecisionModel::load(data_path("kev-tiny-dense/run"), std::nullopt,
                                           {.precision = ops::Precision::fp32});
    fixture_ = read_decision_fixture(data_path("kev-tiny-dense.fixture.json"));
    fixture_.records.resize(12);
  }

  GateReport run(bool red = false) {
    DecisionSubject subject(*model_, fixture_);
    return run_gate(default_decision_gate(ops::Precision::fp32, red), subject);
  }

  std::unique_ptr<decision::DecisionModel> model_;
  DecisionFixture fixture_;
};

TEST_F(OnACheckpoint, TheRunPassesAndEveryRedArmFails) {
  const GateReport report = run(true);
  EXPECT_TRUE(report.pass()) << to_text(report);
  ASSERT_EQ(report.red_arms.size(), 2u);
  for (const ArmReport& arm : report.red_arms) {
    EXPECT_EQ(arm.outcome, ArmOutcome::red) << arm.arm.name;
    EXPECT_GT(arm.verdict.measures["max_abs_dp"].get<double>(), 0.02) << arm.arm.name;
  }
  EXPECT_THAT(to_text(report), HasSubstr("PASS"));
  EXPECT_EQ(to_json(report)["result"], "PASS");
  EXPECT_EQ(to_json(report)["red_arms"]["swapped_states"]["outcome"], "RED");
}

TEST_F(OnACheckpoint, ADifferentTokenIsAFailureThatNamesItsRow) {
  fixture_.records[1].rows[0].branch_ids[2] ^= 1;
  const GateReport report = run();
  EXPECT_FALSE(report.pass());
  EXPECT_EQ(report.verdict.measures["rows_with_same_tokens"].get<std::size_t>() + 1,
            report.verdict.measures["rows"].get<std::size_t>());
  EXPECT_THAT(report.verdict.failures, Contains(HasSubstr(fixture_.records[1].id + ".q0: question ids")));
}

TEST_F(OnACheckpoint, AFixtureOfAnotherModelIsRefused) {
  fixture_.temperature += 0.5;
  EXPECT_THROW(run(), Error);
  fixture_.temperature -= 0.5;
  fixture_.records[0].state_ids.back() = 1 << 20;
  EXPECT_THROW(run(), Error);
}

TEST_F(OnACheckpoint, StatesAreSwappedOnlyWhereThereAreSeveral) {
  fixture_.records.resize(1);
  EXPECT_NO_THROW(run());
  EXPECT_THROW(run(true), Error);
}

TEST(TapsGate, LayersEqualTheOraclesAndTapsOfAnotherModelAreRefused) {
  const GateFile gate = read_gate_file(data_path("../../lab/gates/taps-fp32.json"));
  GateTarget target{.model = data_path("kev-tiny-hybrid/run"),
                    .fixtures = {data_path("kev-tiny-hybrid.fixture.taps.safetensors")}};
  const auto reports = execute_gate(gate, target);
  EXPECT_TRUE(reports.at(0).pass()) << to_text(reports[0]);
  EXPECT_EQ(reports[0].verdict.measures["arrays"], 5);
  target.fixtures = {data_path("kev-tiny-dense.fixture.taps.safetensors")};
  expect_error(ErrorKind::mismatch, "taps of 3 layers", [&] { execute_gate(gate, target); });
}

TEST(ExecuteGate, WhatIsMissingOrTooMuchIsSaid) {
  const auto gate = [](const std::string& name) {
    return read_gate_file(data_path("../../lab/gates/" + name));
  };
  const auto refused = [&](const std::string& part, const std::string& name, const GateTarget& target) {
    expect_error(ErrorKind::invalid_argument, part, [&] { execute_gate(gate(name), target); });
  };
  refused("no model", "decision-fp32.json", {});
  refused("no fixture", "decision-fp32.json", {.model = data_path("kev-tiny-dense/run")});
  refused("none of them: the gate is of an op", "op-rope.json", {.model = data_path("kev-tiny-dense/run")});
  refused("none of them: the gate is of an op", "op-rope.json", {.base = data_path("kev-tiny-dense/base")});
  expect_error(ErrorKind::mismatch, "a run at bf16",
               [&] { execute_gate(gate("decision-fp32.json"), {.precision = ops::Precision::bf16}); });
  GateFile own = gate("decision-fp32.json");
  own.fixtures = {{data_path("kev-tiny-dense.fixture.json"), std::string(64, '0')}};
  expect_error(ErrorKind::mismatch, "that the gate pins",
               [&] { execute_gate(own, {.model = data_path("kev-tiny-dense/run")}); });
  expect_error(ErrorKind::invalid_argument, "the gate names its own", [&] {
    execute_gate(own, {.model = data_path("kev-tiny-dense/run"),
                       .fixtures = {data_path("kev-tiny-dense.fixture.json")}});
  });
}

}  // namespace
}  // namespace assay::lab
