#include "lab/ledger/ledger.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <map>
#include <set>

#include "lab/ledger/render.hpp"
#include "lab/tests/ledger_fixture.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

class LedgerTest : public LedgerFixture {
 protected:
  /// Every file below the ledger with its bytes.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(ledger().folder())) {
      if (entry.is_regular_file()) files[entry.path().string()] = read_text_file(entry.path());
    }
    return files;
  }

  template <class Make>
  void refuse_record(const Make& make, const std::string& why) {
    const std::string id = ledger().propose(proposal()).id();
    ledger().freeze(id, freezing());
    const auto before = contents();
    const auto good = save(gate_receipt());
    const auto bad = save(make());
    expect_error(ErrorKind::mismatch, why, [&] { ledger().record(id, {good, bad}); });
    EXPECT_EQ(contents(), before);
  }
};

TEST_F(LedgerTest, IdsCountUpAndNameTheFile) {
  EXPECT_EQ(ledger().propose(proposal("matmul: 1 token!")).file().filename(), "EXP-0001-matmul-1-token.json");
  Proposal named = proposal();
  named.slug = "a-name";
  EXPECT_EQ(ledger().propose(named).file().filename(), "EXP-0002-a-name.json");
  EXPECT_EQ(ledger().read().size(), 2u);
  EXPECT_EQ(ledger().read("EXP-0002").subsystem(), "matmul");
  expect_error(ErrorKind::missing, "EXP-0003", [&] { ledger().read("EXP-0003"); });
}

TEST_F(LedgerTest, AProposalWithoutContentIsRefused) {
  for (std::string Proposal::*field :
       {&Proposal::subject, &Proposal::hypothesis, &Proposal::mechanism, &Proposal::risk}) {
    for (const char* text : {"", " \n"}) {
      Proposal empty = proposal();
      empty.*field = text;
      expect_error(ErrorKind::malformed, "proposal.", [&] { ledger().propose(empty); });
    }
  }
  Proposal cut = proposal();
  cut.hypothesis = "cut \xc3";
  expect_error(ErrorKind::malformed, "UTF-8", [&] { ledger().propose(cut); });
  Proposal slug = proposal();
  slug.slug = "../up";
  expect_error(ErrorKind::invalid_argument, "--slug", [&] { ledger().propose(slug); });
  Proposal source = proposal();
  source.sources = {"no/such/folder"};
  expect_error(ErrorKind::missing, "--source", [&] { ledger().propose(source); });
  source.sources = {"/usr"};
  expect_error(ErrorKind::invalid_argument, "outside", [&] { ledger().propose(source); });
  EXPECT_TRUE(ledger().read().empty());
}

TEST_F(LedgerTest, AGapADuplicateAndAnIdThatAnyCommitKnewAreRefused) {
  for (int i = 0; i < 3; ++i) ledger().propose(proposal());
  commit("Three experiments");
  const auto files = ledger().files();
  std::filesystem::remove(files[2]);
  expect_error(ErrorKind::mismatch, "EXP-0003", [&] { ledger().propose(proposal()); });
  git("checkout -- ledger");
  std::filesystem::remove(files[1]);
  expect_error(ErrorKind::mismatch, "EXP-0002", [&] { ledger().propose(proposal()); });
  git("checkout -- ledger");
  std::filesystem::copy(files[1], files[1].string() + "-again.json");
  expect_error(ErrorKind::mismatch, "EXP-0002 a second time", [&] { ledger().propose(proposal()); });
}

TEST_F(LedgerTest, ProcessesThatProposeAtOnceGetIdsOfTheirOwn) {
  constexpr int kProcesses = 6;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        for (int j = 0; j < 3; ++j) ledger().propose(proposal());
        ::_exit(0);
      } catch (const std::exception&) {
        ::_exit(1);
      }
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::set<std::string> ids;
  for (const Experiment& experiment : ledger().read()) ids.insert(experiment.id());
  EXPECT_EQ(ids.size(), 3u * kProcesses);
  EXPECT_EQ(*ids.rbegin(), "EXP-0018");
}

TEST_F(LedgerTest, AFullDiskLeavesWhatStood) {
  ledger().propose(proposal());
  const auto before = contents();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{100, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(ledger().propose(proposal()), Error);
  EXPECT_THROW(ledger().freeze("EXP-0001", freezing()), Error);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  auto after = contents();
  // The gate and plan are small enough to be kept; nothing refers to them yet.
  std::erase_if(after, [](const auto& file) { return file.first.find("/frozen/") != std::string::npos; });
  EXPECT_EQ(after, before);
  EXPECT_EQ(ledger().propose(proposal()).id(), "EXP-0002");
}

TEST_F(LedgerTest, WhatAKilledCommandLeftIsNoExperiment) {
  ledger().propose(proposal());
  directory_.write("ledger/experiments/EXP-0002-half.json.123.new.tmp", "{\"schem");
  EXPECT_EQ(ledger().propose(proposal()).id(), "EXP-0002");
}

TEST_F(LedgerTest, GoesThroughItsStatesAndRefusesEveryOtherOrder) {
  const std::string id = ledger().propose(proposal()).id();
  const auto gate = save(gate_receipt());
  const auto decide = [&] { ledger().decide(id, {"abandoned", "because", ""}); };
  expect_error(ErrorKind::mismatch, "proposed", [&] { ledger().record(id, {gate}); });
  expect_error(ErrorKind::mismatch, "proposed", decide);
  ledger().freeze(id, freezing());
  expect_error(ErrorKind::mismatch, "frozen", [&] { ledger().freeze(id, freezing()); });
  expect_error(ErrorKind::mismatch, "frozen", decide);
  ledger().record(id, {save(gate_receipt()), save(window_receipt())});
  expect_error(ErrorKind::mismatch, "recorded", [&] { ledger().freeze(id, freezing()); });
  const Experiment decided = ledger().decide(id, {"integrated", "faster", ""});
  EXPECT_EQ(decided.evidence(), "positive");
  EXPECT_EQ(decided.disposition(), "integrated");
  expect_error(ErrorKind::mismatch, "decided", [&] { ledger().freeze(id, freezing()); });
  expect_error(ErrorKind::mismatch, "decided", [&] { ledger().record(id, {save(gate_receipt(false))}); });
  expect_error(ErrorKind::mismatch, "decided", decide);
}

TEST_F(LedgerTest, ReceiptsCanBeAddedUntilTheDecisionAndAllCount) {
  const std::string id = recorded();
  ledger().record(id, {save(window_receipt(1.01))});
  EXPECT_EQ(ledger().decide(id, {"abandoned", "a second window disagrees", ""}).evidence(), "inconclusive");
  EXPECT_EQ(ledger().read(id).receipt_sha256s().size(), 3u);
}

TEST_F(LedgerTest, OnlyPositiveEvidenceIsIntegrated) {
  const std::string id = recorded(0.8);
  expect_error(ErrorKind::mismatch, "negative", [&] { ledger().decide(id, {"integrated", "wanted", ""}); });
  EXPECT_EQ(to_string(ledger().read(id).state()), "recorded");
  EXPECT_EQ(ledger().decide(id, {"abandoned", "slower", ""}).evidence(), "negative");
}

TEST_F(LedgerTest, PendingIntegrationMayEndAndEvidenceStays) {
  const std::string id = recorded();
  ledger().decide(id, {"pending-integration", "the product gate is to run", ""});
  const Experiment done = ledger().decide(id, {"integrated", "it ran", ""});
  EXPECT_EQ(done.body()["decision"]["dispositions"].size(), 2u);
  expect_error(ErrorKind::mismatch, "integrated", [&] { ledger().decide(id, {"abandoned", "no", ""}); });
}

TEST_F(LedgerTest, ASuccessorIsLinkedBothWays) {
  const std::string id = recorded();
  expect_error(ErrorKind::mismatch, "successor", [&] {
    ledger().decide(id, {"superseded", "why", "EXP-0002"});
  });
  Proposal next = proposal();
  next.supersedes = id;
  EXPECT_EQ(ledger().propose(next).id(), "EXP-0002");
  EXPECT_EQ(ledger().read(id).superseded_by(), "EXP-0002");
  expect_error(ErrorKind::mismatch, "superseded by EXP-0002 already", [&] { ledger().propose(next); });
  expect_error(ErrorKind::mismatch, "--by", [&] { ledger().decide(id, {"superseded", "why", "EXP-0003"}); });
  expect_error(ErrorKind::mismatch, "--by", [&] { ledger().decide(id, {"abandoned", "why", "EXP-0002"}); });
  EXPECT_EQ(ledger().decide(id, {"superseded", "why", "EXP-0002"}).disposition(), "superseded");
  next.supersedes = "EXP-0009";
  expect_error(ErrorKind::missing, "EXP-0009", [&] { ledger().propose(next); });
}

TEST_F(LedgerTest, AReceiptFromBeforeTheFreezeIsRefused) {
  const auto make = [&] {
    Json old = gate_receipt();
    old["made"] = "2020-01-01T00:00:00Z";
    return old;
  };
  refuse_record(make, "before the freeze");
}

TEST_F(LedgerTest, AReceiptOfAnotherGateIsRefused) {
  const auto make = [&] {
    Json other = gate_receipt();
    other["subject"]["gate"]["sha256"] = std::string(64, 'f');
    return other;
  };
  refuse_record(make, "which is not frozen here");
}

TEST_F(LedgerTest, AReceiptOfAnotherPlanIsRefused) {
  const auto make = [&] {
    Json other = window_receipt();
    other["subject"]["plan"]["sha256"] = std::string(64, 'f');
    return other;
  };
  refuse_record(make, "which is not frozen here");
}

TEST_F(LedgerTest, AReceiptThatTheRuleDoesNotReadIsRefused) {
  refuse_record([] { return make_receipt(ReceiptKind::footprint, Json::object(), Json::object()); },
                "does not read");
}

TEST_F(LedgerTest, AReceiptOfAnotherDeviceIsRefusedWhereOneIsFrozen) {
  const std::string id = ledger().propose(proposal()).id();
  Freezing on = freezing();
  on.device = "cpu-of-another-kind";
  ledger().freeze(id, on);
  expect_error(ErrorKind::mismatch, "not on cpu-of-another-kind",
               [&] { ledger().record(id, {save(gate_receipt())}); });
}

TEST_F(LedgerTest, AnEditedUnreadableOrRepeatedReceiptIsRefused) {
  const std::string id = ledger().propose(proposal()).id();
  ledger().freeze(id, freezing());
  const auto gate = save(gate_receipt());
  std::string text = read_text_file(gate);
  text.insert(1, " ");
  outside_.write("made/" + gate.filename().string(), text);
  expect_error(ErrorKind::mismatch, "edited", [&] { ledger().record(id, {gate}); });
  Json odd = gate_receipt();
  odd["result"] = Json::object();
  expect_error(ErrorKind::malformed, "/result", [&] { ledger().record(id, {save(odd)}); });
  expect_error(ErrorKind::missing, "", [&] { ledger().record(id, {directory_ / "none.json"}); });
  const auto window = save(window_receipt());
  expect_error(ErrorKind::mismatch, "attached already", [&] { ledger().record(id, {window, window}); });
  EXPECT_EQ(to_string(ledger().read(id).state()), "frozen");
}

TEST_F(LedgerTest, FreezingNeedsTheSubjectsSourcesCommitted) {
  const std::string id = ledger().propose(proposal()).id();
  Proposal narrow = proposal();
  narrow.sources = {(directory_ / "code").string()};
  const std::string other = ledger().propose(narrow).id();
  directory_.write("notes.txt", "not committed");
  expect_error(ErrorKind::mismatch, "notes.txt", [&] { ledger().freeze(id, freezing()); });
  directory_.write("code/kernel.cpp", "int changed();\n");
  expect_error(ErrorKind::mismatch, "code/kernel.cpp", [&] { ledger().freeze(other, freezing()); });
  git("checkout -- code");
  EXPECT_EQ(to_string(ledger().freeze(other, freezing()).state()), "frozen");
  commit("Notes");
  EXPECT_EQ(to_string(ledger().freeze(id, freezing()).state()), "frozen");
}

TEST_F(LedgerTest, FreezingNeedsARepository) {
  const TemporaryDirectory plain;
  Ledger outside(plain / "ledger");
  outside.propose(proposal());
  expect_error(ErrorKind::unsupported, "git", [&] { outside.freeze("EXP-0001", freezing()); });
}

TEST_F(LedgerTest, TheRuleReadsWhatIsFrozenAndNothingElse) {
  const std::string id = ledger().propose(proposal()).id();
  Freezing bad = freezing();
  bad.gates.clear();
  expect_error(ErrorKind::invalid_argument, "--gate", [&] { ledger().freeze(id, bad); });
  bad = freezing();
  bad.rule.erase("window");
  expect_error(ErrorKind::invalid_argument, "--window", [&] { ledger().freeze(id, bad); });
  bad = freezing();
  bad.rule["widow"] = 1;
  expect_error(ErrorKind::malformed, "widow", [&] { ledger().freeze(id, bad); });
  bad = freezing();
  bad.rule["window"]["min_ratio"] = "1.05";
  expect_error(ErrorKind::malformed, "frozen.rule.window.min_ratio", [&] { ledger().freeze(id, bad); });
  bad = freezing();
  bad.gates = {directory_.write("ledger/broken.json", "{")};
  expect_error(ErrorKind::malformed, "broken.json", [&] { ledger().freeze(id, bad); });
  EXPECT_EQ(to_string(ledger().read(id).state()), "proposed");
}

TEST_F(LedgerTest, PagesShowEveryExperimentAndTakeTextAsText) {
  Proposal sharp = proposal("matmul: <script>alert(1)</script> | \"{{imported}}\"");
  ledger().propose(sharp);
  const std::string id = ledger().propose(proposal()).id();
  ledger().freeze(id, freezing());
  ledger().record(id, {save(gate_receipt()), save(window_receipt())});
  ledger().decide(id, {"integrated", "faster", ""});
  const LedgerView shown = view(ledger());
  const std::string html = to_html(shown);
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_NE(html.find("id=\"EXP-0002\" data-evidence=\"positive\" data-disposition=\"integrated\""),
            std::string::npos);
  EXPECT_NE(html.find("1.200× [1.150, 1.250]"), std::string::npos);
  EXPECT_NE(html.find("href=\"receipts/"), std::string::npos);
  for (const char* outside : {"http:", "https:", "src=", "@import", "url("}) {
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  }
  const MarkdownTable table = read_markdown_table(to_markdown(shown), "LEDGER.md");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][0], "EXP-0001");
  EXPECT_EQ(table.rows[1][4], "positive");
}

TEST_F(LedgerTest, AClaimAboutAPairThatThePlanCannotHoldIsNotFrozen) {
  const std::string id = ledger().propose(proposal()).id();
  const std::vector<std::pair<Json, std::string>> claims = {
      {{{"item", "nosuch"}}, "window.item"},
      {{{"baseline", "zzz"}}, "window.baseline"},
      {{{"candidate", "zzz"}}, "window.candidate"},
      {{{"baseline", "vector"}, {"candidate", "reference"}}, "stands before"},
      {{{"baseline", "vector"}}, "stands before"},
      {{{"candidate", "reference"}}, "stands before"},
      {{{"baseline", "vector"}, {"candidate", "vector"}}, "stands before"}};
  for (const auto& [fields, message] : claims) {
    Freezing freezing = this->freezing();
    freezing.rule["window"].update(fields);
    expect_error(ErrorKind::invalid_argument, message, [&] { ledger().freeze(id, freezing); });
  }
  Freezing sound = freezing();
  sound.rule["window"].update(Json{{"item", "row"}, {"baseline", "reference"}, {"candidate", "vector"}});
  EXPECT_NO_THROW(ledger().freeze(id, sound));
}

TEST_F(LedgerTest, AGateOfTheBaselineAloneMakesNothingPositive) {
  const std::string id = ledger().propose(proposal()).id();
  ledger().freeze(id, freezing());
  ledger().record(id, {save(gate_receipt(true, "rms_norm=reference")), save(window_receipt(1.2))});
  EXPECT_THROW(ledger().decide(id, {.disposition = "integrated", .reason = "fast", .by = {}}), Error);
}

}  // namespace
}  // namespace assay::lab
