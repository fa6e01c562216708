#include "lab/ledger/check.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "base/sha256.hpp"
#include "lab/ledger/evidence.hpp"
#include "lab/ledger/git.hpp"
#include "lab/ledger/imported.hpp"
#include "lab/ledger/schema.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

class Auditor {
 public:
  explicit Auditor(const Ledger& ledger) : ledger_(ledger), git_(repository(ledger)) {}

  LedgerAudit run() {
    read_experiments();
    check_ids();
    check_schema_copy();
    attempt([&] { check_content_named(ledger_.receipts()); });
    attempt([&] { check_content_named(ledger_.frozen()); });
    for (const Experiment& experiment : experiments_) {
      attempt([&] { check_experiment(experiment); });
    }
    check_links();
    read_imported();
    check_history();
    return std::move(audit_);
  }

 private:
  static std::optional<GitRepository> repository(const Ledger& ledger) {
    if (!is_directory_path(ledger.folder())) {
      throw Error(ErrorKind::missing, {.where = ledger.folder().string(),
                                       .found = "no such folder",
                                       .expected = "a ledger",
                                       .advice = "--ledger names it"});
    }
    return GitRepository::find(ledger.folder());
  }

  void problem(const std::string& where, const std::string& what) {
    audit_.problems.push_back(where + ": " + what);
  }

  /// What throws is a problem; the audit goes on.
  void attempt(const std::function<void()>& step) {
    try {
      step();
    } catch (const Error& error) {
      audit_.problems.emplace_back(error.what());
    }
  }

  void read_experiments() {
    for (const fs::path& file : ledger_.files()) {
      attempt([&] { experiments_.push_back(read_experiment(file)); });
    }
    audit_.experiments = experiments_.size();
  }

  /// By the files' names, so that an experiment that cannot be read leaves no gap besides.
  void check_ids() {
    std::size_t expected = 1;
    std::string last;
    for (const fs::path& file : ledger_.files()) {
      constexpr std::size_t kIdLength = 8;
      const std::string id = file.filename().string().substr(0, kIdLength);
      if (id == last) {
        problem(file.string(), fmt::format("{} is used a second time", id));
        continue;
      }
      for (; expected < number_of(id); ++expected) {
        problem(ledger_.experiments().string(), fmt::format("EXP-{:04} is missing: a gap", expected));
      }
      expected = number_of(id) + 1;
      last = id;
    }
  }

  void check_schema_copy() {
    const fs::path copy = ledger_.folder() / "schema" / "experiment.schema.json";
    attempt([&] {
      if (path_exists(copy) && read_text_file(copy) != experiment_schema_text()) {
        problem(copy.string(), "not the schema that this program enforces");
      }
    });
  }

  void check_content_named(const fs::path& folder) {
    if (!is_directory_path(folder)) return;
    for (const fs::path& file : list_directory(folder)) {
      if (file.extension() != ".json") continue;
      attempt([&] {
        const std::string sha256 = sha256_hex(file);
        if (file.stem() != sha256) {
          problem(file.string(), "edited or damaged: its bytes have SHA-256 " + sha256);
        }
      });
      if (folder == ledger_.receipts()) ++audit_.receipts;
    }
  }

  void check_experiment(const Experiment& experiment) {
    if (experiment.state() == ExperimentState::proposed) return;
    if (experiment.frozen_sha256() != experiment.computed_frozen_sha256()) {
      problem(experiment.id(),
              fmt::format("what was frozen was changed: its hash is {:.12}…, recorded is {:.12}…",
                          experiment.computed_frozen_sha256(), experiment.frozen_sha256()));
    }
    const Json& frozen = experiment.body()["frozen"];
    for (const Json& gate : frozen["gates"]) check_frozen_file(experiment, gate);
    if (frozen.contains("window")) check_frozen_file(experiment, frozen["window"]);
    if (git_ && !git_->has_commit(frozen["commit"].get<std::string>())) {
      audit_.notes.push_back(fmt::format("{}: frozen at commit {:.12}, which this repository does not hold",
                                         experiment.id(), frozen["commit"].get<std::string>()));
    }
    check_receipts(experiment);
  }

  void check_frozen_file(const Experiment& experiment, const Json& file) {
    const std::string sha256 = file["sha256"].get<std::string>();
    const std::string path = file["path"].get<std::string>();
    if (!path_exists(ledger_.frozen() / (sha256 + ".json"))) {
      problem(experiment.id(), fmt::format("{} as frozen ({:.12}…) is not in frozen/", path, sha256));
    }
    if (!git_) return;
    attempt([&] {
      if (!path_exists(git_->root() / path)) return;
      if (sha256_hex(git_->root() / path) != sha256) {
        problem(experiment.id(), path + " was edited after it was frozen: a changed one needs another name");
      }
    });
  }

  void check_receipts(const Experiment& experiment) {
    std::vector<Receipt> receipts;
    const std::size_t before = audit_.problems.size();
    for (const std::string& sha256 : experiment.receipt_sha256s()) {
      attempt([&] { receipts.push_back(read_receipt(ledger_.receipts() / (sha256 + ".json"))); });
    }
    for (std::size_t i = 0; before == audit_.problems.size() && i < receipts.size(); ++i) {
      attempt([&] { check_receipt(experiment, experiment.body()["receipts"][i], receipts[i]); });
    }
    if (experiment.state() == ExperimentState::decided && before == audit_.problems.size()) {
      attempt([&] { check_decision(experiment, judge(experiment, receipts)); });
    }
    if (experiment.state() == ExperimentState::decided) check_disposition(experiment);
  }

  void check_receipt(const Experiment& experiment, const Json& listed, const Receipt& receipt) {
    const std::string name = fmt::format("{}, receipt {:.12}…", experiment.id(), receipt.sha256);
    const std::string refusal = experiment.refusal_of(receipt);
    if (!refusal.empty()) problem(name, refusal);
    if (listed["kind"] != to_string(receipt.kind) || listed["made"] != made(receipt)) {
      problem(name, "its kind or time is not what the experiment lists");
    }
  }

  void check_decision(const Experiment& experiment, const Judgement& judgement) {
    const Json& decision = experiment.body()["decision"];
    if (experiment.evidence() != to_string(judgement.evidence)) {
      problem(experiment.id(), fmt::format("evidence is recorded as {}, but receipts and rule give {}",
                                           experiment.evidence(), to_string(judgement.evidence)));
    } else if (decision["findings"] != findings_json(judgement)) {
      problem(experiment.id(), "its findings are not those that receipts and rule give");
    }
  }

  void check_disposition(const Experiment& experiment) {
    const Json& history = experiment.body()["decision"]["dispositions"];
    for (const Json& entry : history) {
      if (entry["disposition"] == "integrated" && experiment.evidence() != "positive") {
        problem(experiment.id(), fmt::format("integrated on {} evidence", experiment.evidence()));
      }
      if (entry["disposition"] == "superseded" && !experiment.superseded_by()) {
        problem(experiment.id(), "superseded, but no successor is linked");
      }
    }
    for (std::size_t i = 1; i < history.size(); ++i) {
      const auto from = history[i - 1]["disposition"].get<std::string>();
      const auto to = history[i]["disposition"].get<std::string>();
      if (!disposition_may_follow(from, to)) problem(experiment.id(), from + " cannot become " + to);
    }
  }

  void check_links() {
    std::map<std::string, const Experiment*> by_id;
    for (const Experiment& experiment : experiments_) by_id.emplace(experiment.id(), &experiment);
    const auto target = [&](const Experiment& from, const std::string& id) -> const Experiment* {
      const auto found = by_id.find(id);
      if (found != by_id.end()) return found->second;
      problem(from.id(), "links to " + id + ", which is not there");
      return nullptr;
    };
    for (const Experiment& experiment : experiments_) {
      if (const auto id = experiment.supersedes()) {
        const Experiment* older = target(experiment, *id);
        if (older != nullptr && older->superseded_by() != experiment.id()) {
          problem(experiment.id(), fmt::format("supersedes {}, which does not link back", *id));
        }
      }
      if (const auto id = experiment.superseded_by()) {
        const Experiment* newer = target(experiment, *id);
        if (newer != nullptr && newer->supersedes() != experiment.id()) {
          problem(experiment.id(), fmt::format("superseded by {}, which does not link back", *id));
        }
      }
    }
    check_circles(by_id);
  }

  void check_circles(const std::map<std::string, const Experiment*>& by_id) {
    for (const Experiment& experiment : experiments_) {
      std::set<std::string> seen{experiment.id()};
      for (auto next = experiment.supersedes(); next && by_id.contains(*next);
           next = by_id.at(*next)->supersedes()) {
        if (seen.insert(*next).second) continue;
        problem(experiment.id(), "its supersede links go in a circle");
        break;
      }
    }
  }

  void read_imported() {
    for (const fs::path& file : imported_files(ledger_)) {
      attempt([&] {
        imported_.emplace(file.filename().string(), read_imported_ledger(file));
        audit_.imported += imported_.at(file.filename().string()).table.rows.size();
      });
    }
  }

  void check_history() {
    const auto path = git_ ? git_->relative(ledger_.folder()) : std::nullopt;
    if (!path) {
      audit_.notes.emplace_back("history: not checked, for the ledger is in no git repository");
      return;
    }
    if (git_->is_shallow()) {
      audit_.notes.emplace_back("history: this is a shallow clone; commits that it lacks were not checked");
    }
    for (const std::string& commit : git_->commits_touching(*path)) {
      ++audit_.commits;
      for (const GitRepository::Entry& entry : git_->files(commit, *path)) check_past(commit, *path, entry);
    }
  }

  /// One file of one commit. A blob that was compared once need not be again.
  void check_past(const std::string& commit, const std::string& ledger_path,
                  const GitRepository::Entry& entry) {
    const fs::path inside = fs::path(entry.path).lexically_relative(ledger_path.empty() ? "." : ledger_path);
    const std::string room = inside.begin()->string();
    if (inside.extension() != ".json" || !compared_.emplace(entry.path, entry.blob).second) return;
    const std::string where = fmt::format("{}, as committed in {:.12}", inside.generic_string(), commit);
    if (room == "receipts" || room == "frozen") {
      if (!path_exists(ledger_.folder() / inside)) problem(where, "is gone");
    } else if (room == "experiments") {
      check_past_experiment(where, entry);
    } else if (room == "imported") {
      check_past_imported(where, inside.filename().string(), entry);
    }
  }

  void check_past_experiment(const std::string& where, const GitRepository::Entry& entry) {
    const Json before = Json::parse(git_->read_blob(entry.blob), nullptr, false);
    if (!before.is_object() || !before.contains("id") || !before.contains("proposal")) {
      audit_.notes.push_back(where + ": was no experiment then; not compared");
      return;
    }
    for (const Experiment& now : experiments_) {
      if (now.body()["id"] != before["id"]) continue;
      const std::string change = alteration(before, now.body());
      if (!change.empty()) problem(where, change);
      return;
    }
    // One that is there but cannot be read has its own problem.
    if (!path_exists(git_->root() / entry.path)) problem(where, "the experiment is gone");
  }

  void check_past_imported(const std::string& where, const std::string& name,
                           const GitRepository::Entry& entry) {
    const auto now = imported_.find(name);
    if (now == imported_.end()) {
      if (!path_exists(git_->root() / entry.path)) problem(where, "the imported record is gone");
      return;
    }
    attempt([&] {
      const ImportedLedger before = parse_imported_ledger(git_->read_blob(entry.blob), where);
      if (before.table.rows != now->second.table.rows) problem(where, "rows were changed or removed since");
    });
  }

  /// What of a committed experiment was changed against the rules; empty for nothing.
  static std::string alteration(const Json& before, const Json& now) {
    const auto field = [](const Json& object, const char* name) {
      return object.is_object() && object.contains(name) ? object[name] : Json();
    };
    if (field(before["proposal"], "made") != now["proposal"]["made"]) return "the ID was used again";
    const auto differs = [&](const char* name) {
      return before.contains(name) && field(before, name) != field(now, name);
    };
    if (before.contains("frozen") && before["proposal"] != now["proposal"]) {
      return "the proposal was changed after the freeze";
    }
    if (differs("frozen")) return "what was frozen was changed";
    if (differs("superseded_by")) return "the link to its successor was changed";
    if (!starts_with(field(now, "receipts"), field(before, "receipts")))
      return "receipts were taken away or changed";
    if (!before.contains("decision")) return "";
    for (const char* name : {"made", "evidence", "findings"}) {
      if (field(before["decision"], name) != field(field(now, "decision"), name)) {
        return fmt::format("the decision's '{}' is another", name);
      }
    }
    if (!starts_with(field(field(now, "decision"), "dispositions"),
                     field(before["decision"], "dispositions"))) {
      return "a disposition was taken away or changed";
    }
    return "";
  }

  static bool starts_with(const Json& list, const Json& beginning) {
    if (!beginning.is_array()) return true;
    return list.is_array() && list.size() >= beginning.size() &&
           std::equal(beginning.begin(), beginning.end(), list.begin());
  }

  const Ledger& ledger_;
  std::optional<GitRepository> git_;
  std::vector<Experiment> experiments_;
  std::map<std::string, ImportedLedger> imported_;
  std::set<std::pair<std::string, std::string>> compared_;
  LedgerAudit audit_;
};

}  // namespace

LedgerAudit check(const Ledger& ledger) {
  return Auditor(ledger).run();
}

std::string to_text(const LedgerAudit& audit) {
  std::string text;
  for (const std::string& problem : audit.problems) text += "problem  " + problem + "\n";
  for (const std::string& note : audit.notes) text += "note     " + note + "\n";
  text += fmt::format("{}, {}, {}, {} compared: {}\n", counted(audit.experiments, "experiment"),
                      counted(audit.receipts, "receipt"), counted(audit.imported, "imported row"),
                      counted(audit.commits, "commit"),
                      audit.sound() ? "sound" : counted(audit.problems.size(), "problem"));
  return text;
}

Json to_json(const LedgerAudit& audit) {
  return {{"sound", audit.sound()},     {"experiments", audit.experiments}, {"receipts", audit.receipts},
          {"imported", audit.imported}, {"commits", audit.commits},         {"problems", audit.problems},
          {"notes", audit.notes}};
}

}  // namespace assay::lab
