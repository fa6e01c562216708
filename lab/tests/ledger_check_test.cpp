#include "lab/ledger/check.hpp"

#include <functional>

#include "lab/ledger/imported.hpp"
#include "lab/tests/ledger_fixture.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

/// Three committed experiments: EXP-0001 positive and integrated, EXP-0002 negative and abandoned, superseded
/// by EXP-0003, which is frozen; and an imported record.
class LedgerCheck : public LedgerFixture {
 public:
  /// Made once and copied for each test: what takes time is git.
  void SetUp() override {
    static const TemporaryDirectory kMade;
    static bool made = false;
    if (made) {
      std::filesystem::copy(kMade.path(), directory_.path(), std::filesystem::copy_options::recursive);
      gate_ = directory_ / "gates/decisions.json";
      plan_ = directory_ / "plans/rows.json";
      return;
    }
    LedgerFixture::SetUp();
    fill();
    std::filesystem::copy(directory_.path(), kMade.path(), std::filesystem::copy_options::recursive);
    made = true;
  }

  void fill() const {
    ledger().decide(recorded(), {"integrated", "faster", ""});
    ledger().decide(recorded(0.8), {"abandoned", "slower", ""});
    Proposal next = proposal("matmul: again");
    next.supersedes = "EXP-0002";
    ledger().propose(next);
    ledger().freeze("EXP-0003", freezing());
    const auto table = directory_.write("old.md", "| ID | Evidence |\n|---|---|\n| OPT-0001 | positive |\n");
    import_markdown(ledger(), table, "old");
    commit("Experiments");
  }

  std::filesystem::path file(std::size_t number) const { return ledger().files().at(number - 1); }

  /// Changes an experiment's document behind the ledger's back.
  void edit(std::size_t number, const std::function<void(Json&)>& change) const {
    Json body = Json::parse(read_text_file(file(number)));
    change(body);
    write_file_atomically(file(number), body.dump(1) + "\n");
  }

  /// The same, with the hash of the frozen part made to fit.
  void edit_and_rehash(std::size_t number, const std::function<void(Json&)>& change) const {
    edit(number, [&](Json& body) {
      change(body);
      body["frozen"]["sha256"] = Experiment(file(number), body).computed_frozen_sha256();
    });
  }

  std::filesystem::path receipt(std::size_t number) const {
    const Json body = Json::parse(read_text_file(file(number)));
    return ledger().receipts() / (body["receipts"][0]["sha256"].get<std::string>() + ".json");
  }

  static void append(const std::filesystem::path& path) {
    write_file_atomically(path, read_text_file(path) + " ");
  }

  void expect_problem(const std::string& part) const {
    const LedgerAudit audit = check(ledger());
    const bool found =
        std::any_of(audit.problems.begin(), audit.problems.end(),
                    [&](const std::string& problem) { return problem.find(part) != std::string::npos; });
    EXPECT_TRUE(found) << "no problem with \"" << part << "\" in\n" << to_text(audit);
  }
};

TEST_F(LedgerCheck, ASoundLedgerHasNoProblems) {
  const LedgerAudit audit = check(ledger());
  EXPECT_TRUE(audit.sound()) << to_text(audit);
  EXPECT_TRUE(audit.notes.empty()) << to_text(audit);
  EXPECT_EQ(audit.experiments, 3u);
  EXPECT_EQ(audit.imported, 1u);
  EXPECT_EQ(audit.commits, 1u);
}

struct Tampering {
  const char* name;
  std::function<void(const LedgerCheck&)> plant;
  const char* problem;
};

class Planted : public LedgerCheck, public testing::WithParamInterface<Tampering> {};

TEST_P(Planted, IsFoundBeforeAndAfterItIsCommitted) {
  GetParam().plant(*this);
  expect_problem(GetParam().problem);
  commit("Nothing to see");
  expect_problem(GetParam().problem);
}

const std::vector<Tampering> kTamperings{
    {"receipt_edited", [](const LedgerCheck& t) { t.append(t.receipt(1)); }, "edited"},
    {"receipt_removed", [](const LedgerCheck& t) { std::filesystem::remove(t.receipt(1)); }, "is gone"},
    {"threshold_moved",
     [](const LedgerCheck& t) {
       t.edit(2, [](Json& b) { b["frozen"]["rule"]["window"]["min_ratio"] = 0.7; });
     },
     "what was frozen was changed"},
    {"threshold_moved_and_hash_made_to_fit",
     [](const LedgerCheck& t) {
       t.edit_and_rehash(3, [](Json& b) { b["frozen"]["rule"]["window"]["min_ratio"] = 0.7; });
     },
     "as committed in"},
    {"evidence_changed",
     [](const LedgerCheck& t) { t.edit(2, [](Json& b) { b["decision"]["evidence"] = "positive"; }); },
     "receipts and rule give negative"},
    {"finding_changed",
     [](const LedgerCheck& t) {
       t.edit(2, [](Json& b) { b["decision"]["findings"][0]["because"] = "it seems so"; });
     },
     "findings"},
    {"hypothesis_changed",
     [](const LedgerCheck& t) { t.edit(1, [](Json& b) { b["proposal"]["hypothesis"] = "It is smaller."; }); },
     "what was frozen was changed"},
    {"hypothesis_changed_and_hash_made_to_fit",
     [](const LedgerCheck& t) {
       t.edit_and_rehash(1, [](Json& b) { b["proposal"]["hypothesis"] = "It is smaller."; });
     },
     "the proposal was changed after the freeze"},
    {"id_used_twice",
     [](const LedgerCheck& t) { std::filesystem::copy(t.file(1), t.file(1).string() + "-2.json"); },
     "EXP-0001 is used a second time"},
    {"id_used_again",
     [](const LedgerCheck& t) {
       t.edit_and_rehash(3, [](Json& b) { b["proposal"]["made"] = "2020-01-01T00:00:00Z"; });
     },
     "the ID was used again"},
    {"gap", [](const LedgerCheck& t) { std::filesystem::remove(t.file(2)); }, "EXP-0002 is missing: a gap"},
    {"last_experiment_removed", [](const LedgerCheck& t) { std::filesystem::remove(t.file(3)); },
     "the experiment is gone"},
    {"integrated_on_negative_evidence",
     [](const LedgerCheck& t) {
       t.edit(2, [](Json& b) { b["decision"]["dispositions"][0]["disposition"] = "integrated"; });
     },
     "integrated on negative evidence"},
    {"disposition_rewritten",
     [](const LedgerCheck& t) {
       t.edit(1, [](Json& b) { b["decision"]["dispositions"][0]["reason"] = "another reason"; });
     },
     "a disposition was taken away or changed"},
    {"link_of_one_way", [](const LedgerCheck& t) { t.edit(2, [](Json& b) { b.erase("superseded_by"); }); },
     "does not link back"},
    {"links_in_a_circle",
     [](const LedgerCheck& t) {
       t.edit_and_rehash(2, [](Json& b) { b["proposal"]["supersedes"] = "EXP-0003"; });
       t.edit(3, [](Json& b) { b["superseded_by"] = "EXP-0002"; });
     },
     "go in a circle"},
    {"link_to_nowhere",
     [](const LedgerCheck& t) { t.edit(1, [](Json& b) { b["superseded_by"] = "EXP-0009"; }); },
     "EXP-0009, which is not there"},
    {"unknown_field", [](const LedgerCheck& t) { t.edit(1, [](Json& b) { b["waiver"] = true; }); }, "waiver"},
    {"receipt_detached", [](const LedgerCheck& t) { t.edit(1, [](Json& b) { b["receipts"].erase(1); }); },
     "receipts were taken away"},
    {"state_taken_back",
     [](const LedgerCheck& t) {
       t.edit(2, [](Json& b) {
         b["state"] = "recorded";
         b.erase("decision");
       });
     },
     "the decision's"},
    {"frozen_gate_edited",
     [](const LedgerCheck& t) {
       for (const auto& entry : std::filesystem::directory_iterator(t.ledger().frozen()))
         t.append(entry.path());
     },
     "frozen"},
    {"gate_edited_where_it_stands",
     [](const LedgerCheck& t) { t.append(t.ledger().folder() / ".." / "gates" / "decisions.json"); },
     "gates/decisions.json was edited after it was frozen"},
    {"frozen_copy_removed", [](const LedgerCheck& t) { std::filesystem::remove_all(t.ledger().frozen()); },
     "is not in frozen/"},
    {"imported_row_changed",
     [](const LedgerCheck& t) {
       const auto file = t.ledger().imported() / "old.json";
       std::string text = read_text_file(file);
       text.replace(text.find("positive"), 8, "negative");
       write_file_atomically(file, text);
     },
     "rows were changed or removed"},
    {"imported_record_removed",
     [](const LedgerCheck& t) { std::filesystem::remove(t.ledger().imported() / "old.json"); },
     "the imported record is gone"},
    {"schema_loosened",
     [](const LedgerCheck& t) { t.append(t.ledger().folder() / "schema" / "experiment.schema.json"); },
     "not the schema"}};

INSTANTIATE_TEST_SUITE_P(Kinds, Planted, testing::ValuesIn(kTamperings),
                         [](const auto& info) { return info.param.name; });

TEST_F(LedgerCheck, GoingOnIsNoTampering) {
  ledger().record("EXP-0003", {save(gate_receipt()), save(window_receipt())});
  commit("Receipts");
  ledger().record("EXP-0003", {save(window_receipt(1.3))});
  commit("One more");
  ledger().decide("EXP-0003", {"pending-integration", "to be run", ""});
  commit("Decided");
  ledger().decide("EXP-0003", {"integrated", "it ran", ""});
  const LedgerAudit audit = check(ledger());
  EXPECT_TRUE(audit.sound()) << to_text(audit);
  EXPECT_EQ(audit.commits, 4u);
}

TEST_F(LedgerCheck, OutsideARepositoryTheHistoryIsSaidToBeUnchecked) {
  std::filesystem::remove_all(directory_ / ".git");
  const LedgerAudit audit = check(ledger());
  EXPECT_TRUE(audit.sound()) << to_text(audit);
  EXPECT_EQ(audit.commits, 0u);
  ASSERT_FALSE(audit.notes.empty());
  EXPECT_NE(audit.notes.back().find("not checked"), std::string::npos);
}

TEST_F(LedgerCheck, AFolderThatIsNotThereIsAnError) {
  expect_error(ErrorKind::missing, "no such folder", [&] { check(Ledger(directory_ / "none")); });
}

}  // namespace
}  // namespace assay::lab
