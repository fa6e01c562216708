#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/sha256.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"
#include "lab/ledger/ledger.hpp"
#include "lab/receipt/receipt.hpp"

namespace assay::lab {

/// A git repository with some code, a gate, a window plan and a ledger.
class LedgerFixture : public testing::Test {
 public:
  using Json = nlohmann::ordered_json;

  void SetUp() override {
    directory_.write("code/kernel.cpp", "int answer();\n");
    gate_ = directory_.write("gates/decisions.json", "{\"name\": \"decisions\"}\n");
    plan_ = directory_.write("plans/rows.json", plan_text());
    git("init --quiet");
    commit("Start");
  }

  void git(const std::string& arguments) const {
    const std::string line = "git -C '" + directory_.path().string() +
                             "' -c user.name=lab -c user.email=lab@lab.example -c commit.gpgsign=false " +
                             arguments + " > /dev/null 2>&1";
    ASSERT_EQ(std::system(line.c_str()), 0) << line;
  }

  void commit(const std::string& message) const {
    git("add --all");
    git("commit --quiet --allow-empty --message '" + message + "'");
  }

  static std::string plan_text() {
    return R"({"schema": "assay.window-plan/1", "name": "rows", "device": "cpu",
 "items": [{"name": "row", "op": "rms_norm", "sizes": {"rows": 8, "dim": 64}}],
 "forms": [{"name": "reference", "ops": {"rms_norm": "reference"}},
           {"name": "vector", "ops": {"rms_norm": "vector"}}]})";
  }

  Ledger ledger() const { return Ledger(directory_ / "ledger"); }

  static Proposal proposal(const std::string& subject = "matmul: one token") {
    return {.subject = subject,
            .hypothesis = "It is faster.",
            .mechanism = "It reads less.",
            .risk = "reordered",
            .sources = {},
            .slug = {},
            .supersedes = {}};
  }

  Freezing freezing() const {
    return {.gates = {gate_},
            .window = plan_,
            .device = {},
            .rule = {{"schema", "assay.rule/1"},
                     {"gates", "all pass"},
                     {"window", {{"min_ratio", 1.05}, {"interval_excludes_1", true}, {"clean", true}}}}};
  }

  Json gate_receipt(bool pass = true, const std::string& form = "rms_norm=vector") const {
    return make_receipt(ReceiptKind::gate,
                        {{"gate", {{"name", "decisions"}, {"sha256", sha256_hex(gate_)}}}, {"forms", form}},
                        {{"result", pass ? "PASS" : "FAIL"}});
  }

  Json window_receipt(double ratio = 1.2) const {
    const Json pair{{"item", "row"},
                    {"baseline", "reference"},
                    {"candidate", "vector"},
                    {"ratio", ratio},
                    {"interval", {ratio - 0.05, ratio + 0.05}},
                    {"verdict", ratio > 1.05 ? "faster" : "inconclusive"},
                    {"suspicious", false}};
    const auto form = [](const std::string& name) {
      return Json{{"name", name}, {"forms", "matmul=vector rms_norm=" + name}};
    };
    return make_receipt(ReceiptKind::window,
                        {{"plan", {{"name", "rows"}, {"sha256", sha256_hex(plan_)}}},
                         {"forms", {form("reference"), form("vector")}}},
                        {{"clean", true}, {"times", Json::array()}, {"pairs", {pair}}});
  }

  std::filesystem::path save(const Json& receipt) const {
    return write_receipt(outside_ / "made", receipt).file;
  }

  /// An experiment with both receipts.
  std::string recorded(double ratio = 1.2) const {
    const std::string id = ledger().propose(proposal()).id();
    ledger().freeze(id, freezing());
    ledger().record(id, {save(gate_receipt()), save(window_receipt(ratio))});
    return id;
  }

 protected:
  TemporaryDirectory directory_;
  TemporaryDirectory outside_;  ///< receipts as gates and windows leave them, not in the repository
  std::filesystem::path gate_;
  std::filesystem::path plan_;
};

}  // namespace assay::lab
