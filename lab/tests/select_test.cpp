#include "lab/selection/select.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"
#include "lab/receipt/machine.hpp"
#include "ops/device_selection.hpp"
#include "ops/form_listing.hpp"

namespace assay::lab {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::string kGateName(64, 'a');

/// Receipts of `gated_delta_rule` forms at fp32: its default is chunk_16.
class Select : public testing::Test {
 protected:
  void add(ReceiptKind kind, Json subject, Json result) {
    receipts_.push_back(
        write_receipt(folder_.path(), make_receipt(kind, std::move(subject), std::move(result))));
  }
  void gate(const std::string& form, bool pass, const std::string& sha256 = kGateName) {
    add(ReceiptKind::gate,
        {{"type", "op"},
         {"op", "gated_delta_rule"},
         {"forms", "gated_delta_rule=" + form},
         {"precision", "fp32"},
         {"gate", {{"name", "op-gdr"}, {"sha256", sha256}}}},
        {{"result", pass ? "PASS" : "FAIL"}});
  }
  void window(const std::string& baseline, const std::string& candidate, const std::string& verdict,
              double ratio, bool clean = true, bool suspicious = false) {
    const auto form = [](const std::string& name) {
      return Json{{"name", name},
                  {"precision", "fp32"},
                  {"forms", "matmul=vector gated_delta_rule=" + name},
                  {"threads", 2},
                  {"call_tokens", 1024}};
    };
    Json pair{{"item", "380 tokens"},    {"baseline", baseline}, {"candidate", candidate},
              {"verdict", verdict},      {"ratio", ratio},       {"interval", {ratio - 0.01, ratio + 0.01}},
              {"suspicious", suspicious}};
    add(ReceiptKind::window, {{"forms", {form(baseline), form(candidate)}}},
        {{"clean", clean}, {"pairs", Json::array({std::move(pair)})}});
  }
  SelectionReport report() {
    return select_by_receipts(receipts_, {{kGateName, "op-gdr"}}, this_machine().id);
  }
  FormJudgement of(const SelectionReport& report, const std::string& form) {
    for (const FormJudgement& judgement : report.judgements) {
      if (judgement.op == "gated_delta_rule" && judgement.form == form &&
          judgement.precision == ops::Precision::fp32) {
        return judgement;
      }
    }
    ADD_FAILURE() << form;
    return {};
  }
  std::string chosen(const SelectionReport& report, ops::Precision precision = ops::Precision::fp32,
                     const std::string& op = "gated_delta_rule") {
    std::string found;
    for (const FormJudgement& judgement : report.judgements) {
      if (judgement.chosen && judgement.op == op && judgement.precision == precision) found += judgement.form;
    }
    return found;
  }

  TemporaryDirectory folder_;
  std::vector<Receipt> receipts_;
};

TEST_F(Select, NoReceiptsChooseNothing) {
  for (const FormJudgement& judgement : report().judgements) {
    EXPECT_FALSE(judgement.chosen) << judgement.op << ' ' << judgement.form;
    EXPECT_FALSE(judgement.why.empty());
  }
}

TEST_F(Select, ThePassedDefaultStandsUntilAFasterFormIsShown) {
  gate("chunk_16", true);
  EXPECT_EQ(chosen(report()), "chunk_16");
  gate("vector", true);
  EXPECT_EQ(chosen(report()), "chunk_16");
  EXPECT_THAT(of(report(), "vector").why, HasSubstr("never timed"));
  window("chunk_16", "vector", "inconclusive", 1.03);
  EXPECT_EQ(chosen(report()), "chunk_16");
  EXPECT_THAT(of(report(), "vector").why, HasSubstr("not shown"));
  window("chunk_16", "vector", "faster", 1.2);
  EXPECT_EQ(chosen(report()), "vector");
  EXPECT_THAT(of(report(), "vector").why, HasSubstr("1.2x"));
}

TEST_F(Select, AnOpsGateCountsAtEveryPrecisionThatRunsTheSameCodeButAWindowAtItsOwn) {
  gate("chunk_16", true);
  gate("vector", true);
  EXPECT_EQ(chosen(report(), ops::Precision::bf16), "chunk_16");
  window("chunk_16", "vector", "faster", 1.2);
  EXPECT_EQ(chosen(report(), ops::Precision::fp32), "vector");
  EXPECT_EQ(chosen(report(), ops::Precision::bf16), "chunk_16");
}

TEST_F(Select, APairCountsWhicheverFormIsTheBaseline) {
  gate("chunk_16", true);
  gate("chunk_64", true);
  window("chunk_64", "chunk_16", "slower", 0.8);
  EXPECT_EQ(chosen(report()), "chunk_64");
  EXPECT_THAT(of(report(), "chunk_64").why, HasSubstr("1.25x"));
}

TEST_F(Select, AFormThatIsSlowerSomewhereDoesNotReplaceTheDefault) {
  gate("chunk_16", true);
  gate("vector", true);
  window("chunk_16", "vector", "faster", 1.5);
  window("chunk_16", "vector", "slower", 0.9);
  EXPECT_EQ(chosen(report()), "chunk_16");
  EXPECT_THAT(of(report(), "vector").why, HasSubstr("slower"));
}

TEST_F(Select, OfSeveralFasterFormsTheFastestIsChosen) {
  gate("chunk_16", true);
  gate("vector", true);
  gate("chunk_32", true);
  window("chunk_16", "vector", "faster", 1.2);
  window("chunk_16", "chunk_32", "faster", 1.4);
  EXPECT_EQ(chosen(report()), "chunk_32");
}

TEST_F(Select, AFormWithoutAPassedGateIsRefusedHoweverFast) {
  gate("chunk_16", true);
  window("chunk_16", "vector", "faster", 3);
  EXPECT_EQ(chosen(report()), "chunk_16");
  EXPECT_THAT(of(report(), "vector").why, HasSubstr("no receipt of a gate"));
  gate("vector", false);
  EXPECT_EQ(chosen(report()), "chunk_16");
  EXPECT_THAT(of(report(), "vector").why, HasSubstr("failed"));
}

TEST_F(Select, AFailedRunRefusesTheFormsInIt) {
  gate("chunk_16", true);
  gate("vector", true);
  add(ReceiptKind::gate,
      {{"type", "decision"},
       {"forms", "matmul=vector gated_delta_rule=chunk_16"},
       {"precision", "fp32"},
       {"gate", {{"name", "decision-fp32"}, {"sha256", kGateName}}}},
      {{"result", "FAIL"}});
  EXPECT_EQ(chosen(report()), "vector");
  EXPECT_THAT(of(report(), "chunk_16").why, HasSubstr("decision-fp32 failed"));
}

TEST_F(Select, ContendedWindowsAndSuspiciousRatiosDoNotCount) {
  gate("chunk_16", true);
  gate("vector", true);
  window("chunk_16", "vector", "faster", 1.5, /*clean=*/false);
  EXPECT_EQ(chosen(report()), "chunk_16");
  EXPECT_THAT(report().unused, testing::ElementsAre(HasSubstr("contended")));
  window("chunk_16", "vector", "faster", 20, true, /*suspicious=*/true);
  EXPECT_EQ(chosen(report()), "chunk_16");
  EXPECT_THAT(of(report(), "vector").why, HasSubstr("too far from 1"));
}

TEST_F(Select, ReceiptsOfOtherDevicesAndOldGatesAreNotUsed) {
  gate("chunk_16", true, std::string(64, 'b'));
  EXPECT_EQ(chosen(report()), "");
  EXPECT_THAT(report().unused, testing::ElementsAre(HasSubstr("none of those that stand")));
  gate("chunk_16", true);
  const SelectionReport other = select_by_receipts(receipts_, {{kGateName, "op-gdr"}}, "cpu-elsewhere");
  EXPECT_EQ(chosen(other), "");
  EXPECT_EQ(other.unused.size(), 2u);
}

TEST_F(Select, AReceiptOfAnotherShapeIsAnErrorThatNamesIt) {
  add(ReceiptKind::gate, {{"type", "op"}}, {{"result", "PASS"}});
  expect_error(ErrorKind::malformed, receipts_[0].sha256, [&] { report(); });
}

TEST_F(Select, AnOpsGateAtFp32SpeaksForBothPrecisionsExceptOfProducts) {
  gate("chunk_16", true);
  EXPECT_EQ(chosen(report(), ops::Precision::bf16), "chunk_16");
  add(ReceiptKind::gate,
      {{"type", "op"},
       {"op", "matmul"},
       {"forms", "matmul=vector_bf16"},
       {"precision", "fp32"},
       {"gate", {{"name", "op-gdr"}, {"sha256", kGateName}}}},
      {{"result", "PASS"}});
  EXPECT_EQ(chosen(report(), ops::Precision::bf16, "matmul"), "");
}

TEST_F(Select, TheFormsOfAnotherDeviceAreJudgedByItsOwnInstructionSets) {
  gate("chunk_16", true);
  const auto nothing = ops::list_forms_of(0);
  const SelectionReport bare =
      select_by_receipts(receipts_, {{kGateName, "op-gdr"}}, this_machine().id, nothing);
  for (const FormJudgement& judgement : bare.judgements) {
    if (judgement.op == "matmul" && judgement.form == "amx_bf16") {
      EXPECT_THAT(judgement.why, HasSubstr("needs amx_bf16"));
    }
  }
  EXPECT_EQ(chosen(bare), "chunk_16");
}

TEST_F(Select, TheFileIsReadBackAsItWasMeant) {
  gate("chunk_16", true);
  gate("vector", true);
  window("chunk_16", "vector", "faster", 1.2);
  const auto file = folder_.write("selection.json", to_json(report()).dump());
  const ops::DeviceSelection selection = ops::read_device_selection(file);
  EXPECT_EQ(selection.complete({}, ops::Precision::fp32),
            (ops::FormOverrides{{"gated_delta_rule", "vector"}}));
  EXPECT_NE(selection.refusal("gated_delta_rule", "chunk_16", ops::Precision::fp32), nullptr);
}

TEST(KnownGates, AreTheProjectsOwn) {
  const KnownGates gates = read_known_gates(std::filesystem::path(ASSAY_TEST_DATA) / "../../lab/gates");
  EXPECT_GE(gates.size(), 10u);
  expect_error(ErrorKind::missing, "nowhere", [] { read_known_gates("nowhere"); });
}

}  // namespace
}  // namespace assay::lab
