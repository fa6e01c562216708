#include "lab/ledger/rule.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/tests/expect_error.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

const std::string kGate(64, 'a');
const std::string kOtherGate(64, 'b');

Rule rule_of(const char* text) {
  return read_rule(Json::parse(text), "rule");
}

const char* const kGateAndWindow =
    R"({"gates": "all pass", "window": {"min_ratio": 1.05, "interval_excludes_1": true, "clean": true}})";

GateFinding gate(bool pass, const std::string& sha256 = kGate) {
  return {.gate_sha256 = sha256, .name = "a gate", .pass = pass, .forms = "rms_norm=vector"};
}

PairFinding pair(double ratio, double lower, double upper, bool faster = true) {
  return {.item = "row",
          .baseline = "reference",
          .candidate = "vector",
          .ratio = ratio,
          .lower = lower,
          .upper = upper,
          .faster = faster,
          .doubt = {}};
}

WindowFinding window(std::vector<PairFinding> pairs, bool clean = true) {
  return {.plan_sha256 = "",
          .clean = clean,
          .pairs = std::move(pairs),
          .forms = {{"reference", "matmul=vector rms_norm=reference"},
                    {"vector", "matmul=vector rms_norm=vector"}}};
}

struct Case {
  const char* name;
  Findings findings;
  Evidence evidence;
};

PairFinding doubted(PairFinding pair) {
  pair.doubt = "too good";
  return pair;
}

PairFinding on_item(PairFinding pair, const std::string& item) {
  pair.item = item;
  return pair;
}

class GateAndWindow : public testing::TestWithParam<Case> {};

TEST_P(GateAndWindow, GivesTheEvidence) {
  const Judgement judgement = judge(rule_of(kGateAndWindow), {kGate}, GetParam().findings);
  EXPECT_EQ(to_string(judgement.evidence), to_string(GetParam().evidence));
  ASSERT_EQ(judgement.clauses.size(), 2u);
  for (const ClauseOutcome& clause : judgement.clauses) EXPECT_FALSE(clause.because.empty());
}

const PairFinding kGood = pair(1.2, 1.1, 1.3);
const PairFinding kSlow = pair(0.8, 0.7, 0.9, false);

INSTANTIATE_TEST_SUITE_P(
    Table, GateAndWindow,
    testing::Values(
        Case{"all_holds", {{gate(true)}, {window({kGood})}, {}}, Evidence::positive},
        Case{"exactly_the_ratio", {{gate(true)}, {window({pair(1.05, 1.01, 1.3)})}, {}}, Evidence::positive},
        Case{"gate_fails", {{gate(false)}, {window({kGood})}, {}}, Evidence::negative},
        Case{
            "one_gate_receipt_fails", {{gate(true), gate(false)}, {window({kGood})}, {}}, Evidence::negative},
        Case{"no_gate_receipt", {{}, {window({kGood})}, {}}, Evidence::inconclusive},
        Case{
            "another_gate_passes", {{gate(true, kOtherGate)}, {window({kGood})}, {}}, Evidence::inconclusive},
        Case{"no_window", {{gate(true)}, {}, {}}, Evidence::inconclusive},
        Case{"window_without_pairs", {{gate(true)}, {window({})}, {}}, Evidence::inconclusive},
        Case{"contended", {{gate(true)}, {window({kGood}, false)}, {}}, Evidence::inconclusive},
        Case{"contended_and_slow", {{gate(true)}, {window({kSlow}, false)}, {}}, Evidence::inconclusive},
        Case{"contended_then_clean",
             {{gate(true)}, {window({kSlow}, false), window({kGood})}, {}},
             Evidence::positive},
        Case{"clean_then_contended",
             {{gate(true)}, {window({kGood}), window({kSlow}, false)}, {}},
             Evidence::positive},
        Case{"slow", {{gate(true)}, {window({kSlow})}, {}}, Evidence::negative},
        Case{"no_difference", {{gate(true)}, {window({pair(1, 0.99, 1.01, false)})}, {}}, Evidence::negative},
        Case{"faster_but_surely_too_little",
             {{gate(true)}, {window({pair(1.03, 1.02, 1.04)})}, {}},
             Evidence::negative},
        Case{"below_the_ratio",
             {{gate(true)}, {window({pair(1.04, 1.01, 1.07)})}, {}},
             Evidence::inconclusive},
        Case{"interval_holds_1", {{gate(true)}, {window({pair(1.2, 0.9, 1.5)})}, {}}, Evidence::inconclusive},
        Case{"interval_begins_at_1",
             {{gate(true)}, {window({pair(1.2, 1, 1.5)})}, {}},
             Evidence::inconclusive},
        Case{"window_calls_it_mixed",
             {{gate(true)}, {window({pair(1.2, 1.1, 1.3, false)})}, {}},
             Evidence::inconclusive},
        Case{"in_doubt", {{gate(true)}, {window({doubted(kGood)})}, {}}, Evidence::inconclusive},
        Case{"one_item_slow",
             {{gate(true)}, {window({kGood, on_item(kSlow, "long row")})}, {}},
             Evidence::negative},
        Case{"one_item_open",
             {{gate(true)}, {window({kGood, on_item(pair(1.2, 0.9, 1.5), "long row"), kGood})}, {}},
             Evidence::inconclusive},
        Case{"good_and_bad_window",
             {{gate(true)}, {window({kGood}), window({kSlow})}, {}},
             Evidence::negative},
        Case{"good_and_open_window",
             {{gate(true)}, {window({kGood}), window({pair(1.04, 1.01, 1.07)})}, {}},
             Evidence::inconclusive},
        Case{"gate_fails_without_window", {{gate(false)}, {}, {}}, Evidence::negative}),
    [](const auto& info) { return info.param.name; });

TEST(Rule, EveryFrozenGateNeedsAReceipt) {
  const Rule rule = rule_of(R"({"gates": "all pass"})");
  EXPECT_EQ(judge(rule, {kGate, kOtherGate}, {{gate(true)}, {}, {}}).evidence, Evidence::inconclusive);
  EXPECT_EQ(judge(rule, {kGate, kOtherGate}, {{gate(true), gate(true, kOtherGate)}, {}, {}}).evidence,
            Evidence::positive);
}

TEST(Rule, OnlyTheNamedPairsCount) {
  const Rule rule = rule_of(
      R"({"window": {"item": "row", "candidate": "vector", "min_ratio": 1.05, "interval_excludes_1": true,
          "clean": true}})");
  EXPECT_EQ(judge(rule, {}, {{}, {window({kGood, on_item(kSlow, "long row")})}, {}}).evidence,
            Evidence::positive);
  EXPECT_EQ(judge(rule, {}, {{}, {window({on_item(kGood, "long row")})}, {}}).evidence,
            Evidence::inconclusive);
}

TEST(Rule, ALowerBoundOfRefutationLeavesTheSpaceBetweenOpen) {
  const Rule rule = rule_of(
      R"({"window": {"min_ratio": 1.05, "refuted_below": 0.95, "interval_excludes_1": true, "clean": true}})");
  EXPECT_EQ(judge(rule, {}, {{}, {window({pair(1, 0.99, 1.01)})}, {}}).evidence, Evidence::inconclusive);
  EXPECT_EQ(judge(rule, {}, {{}, {window({kSlow})}, {}}).evidence, Evidence::negative);
}

TEST(Rule, NoSlowerIsAClaimToo) {
  const Rule rule =
      rule_of(R"({"window": {"min_ratio": 0.98, "interval_excludes_1": false, "clean": false}})");
  EXPECT_EQ(judge(rule, {}, {{}, {window({pair(1, 0.97, 1.03, false)}, false)}, {}}).evidence,
            Evidence::positive);
}

TEST(Rule, ValuesMustLieInTheirBounds) {
  const Rule rule =
      rule_of(R"({"values": [{"kind": "footprint", "pointer": "/result/peak", "at_most": 10}]})");
  const auto evidence = [&](std::vector<ValueFinding> values) {
    return judge(rule, {}, {{}, {}, std::move(values)}).evidence;
  };
  EXPECT_EQ(evidence({{0, 10}}), Evidence::positive);
  EXPECT_EQ(evidence({{0, 10.5}}), Evidence::negative);
  EXPECT_EQ(evidence({{0, 5}, {0, 11}}), Evidence::negative);
  EXPECT_EQ(evidence({}), Evidence::inconclusive);
  EXPECT_EQ(evidence({{0, 5}, {0, std::nullopt}}), Evidence::inconclusive);
}

TEST(Rule, OneThatContradictsItselfIsRefused) {
  expect_error(ErrorKind::invalid_argument, "refuted_below", [] {
    rule_of(
        R"({"window": {"min_ratio": 1.05, "refuted_below": 1.06, "interval_excludes_1": true, "clean": true}})");
  });
  expect_error(ErrorKind::invalid_argument, "values[0]", [] {
    rule_of(R"({"values": [{"kind": "footprint", "pointer": "/a", "at_least": 2, "at_most": 1}]})");
  });
  expect_error(ErrorKind::invalid_argument, "pointer",
               [] { rule_of(R"({"values": [{"kind": "footprint", "pointer": "/a~2", "at_most": 1}]})"); });
}

TEST(Judge, AGateThatNeverSawTheCandidatesFormsLeavesTheClaimOpen) {
  const Rule rule = rule_of(kGateAndWindow);
  GateFinding other = gate(true);
  for (const char* forms : {"rms_norm=reference", "matmul=vector rms_norm=reference", "swiglu=vector", ""}) {
    other.forms = forms;
    const Judgement judgement =
        judge(rule, {kGate}, {.gates = {other}, .windows = {window({kGood})}, .values = {}});
    EXPECT_EQ(judgement.evidence, Evidence::inconclusive) << forms;
    EXPECT_THAT(judgement.clauses[0].because, testing::HasSubstr("forms of vector")) << forms;
  }
  for (const char* forms : {"rms_norm=vector", "matmul=vector rms_norm=vector"}) {
    GateFinding seen = gate(true);
    seen.forms = forms;
    const Findings findings{.gates = {other, seen}, .windows = {window({kGood})}, .values = {}};
    EXPECT_EQ(judge(rule, {kGate}, findings).evidence, Evidence::positive) << forms;
  }
}

TEST(Judge, OnlyTheFormsOfSelectedPairsNeedTheGate) {
  const Rule rule = rule_of(R"({"gates": "all pass", "window": {"candidate": "vector", "min_ratio": 1.05,
                                "interval_excludes_1": true, "clean": true}})");
  WindowFinding both = window({kGood});
  both.pairs.push_back(kGood);
  both.pairs.back().candidate = "third";
  both.forms["third"] = "matmul=vector rms_norm=third";
  EXPECT_EQ(judge(rule, {kGate}, {.gates = {gate(true)}, .windows = {both}, .values = {}}).evidence,
            Evidence::positive);
  EXPECT_EQ(judge(rule_of(kGateAndWindow), {kGate}, {.gates = {gate(true)}, .windows = {both}, .values = {}})
                .evidence,
            Evidence::inconclusive);
}

}  // namespace
}  // namespace assay::lab
