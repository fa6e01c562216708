#include "lab/ledger/ledger.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <set>
#include <span>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/path.hpp"
#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "lab/ledger/evidence.hpp"
#include "lab/ledger/folder.hpp"
#include "lab/ledger/git.hpp"
#include "lab/ledger/schema.hpp"
#include "lab/window/plan.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLargestExperiment = std::size_t{1} << 20;
constexpr std::size_t kLargestFrozenFile = std::size_t{16} << 20;
constexpr std::size_t kLastNumber = 9999;
constexpr std::size_t kIdLength = 8;
constexpr std::size_t kLongestSlug = 48;
constexpr std::array<std::string_view, 4> kStates{"proposed", "frozen", "recorded", "decided"};

std::string sha256_of(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

std::string slug_of(std::string_view text) {
  std::string slug;
  for (const char raw : text) {
    const bool upper = raw >= 'A' && raw <= 'Z';
    const char letter = upper ? static_cast<char>(raw - 'A' + 'a') : raw;
    const bool kept = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
    if (kept && slug.size() < kLongestSlug) slug.push_back(letter);
    if (!kept && !slug.empty() && slug.back() != '-') slug.push_back('-');
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "experiment" : slug;
}

[[noreturn]] void refuse_state(const Experiment& experiment, const std::string& expected,
                               const std::string& advice) {
  throw Error(ErrorKind::mismatch, {.where = experiment.id(),
                                    .found = fmt::format("it is {}", to_string(experiment.state())),
                                    .expected = expected,
                                    .advice = advice});
}

const Experiment& find(const std::vector<Experiment>& experiments, const std::string& id) {
  for (const Experiment& experiment : experiments) {
    if (experiment.id() == id) return experiment;
  }
  throw Error(ErrorKind::missing, {.where = id,
                                   .found = "no such experiment",
                                   .expected = "an ID of the ledger",
                                   .advice = "`assay ledger list` lists them"});
}

/// The file in the ledger's terms, its bytes kept under their hash.
Json keep(const std::filesystem::path& file, const std::filesystem::path& folder, const GitRepository& git) {
  const std::string text = read_text_file(file, kLargestFrozenFile);
  if (!parse_json_strictly(text, file.string()).is_object()) {
    throw Error(ErrorKind::malformed, {file.string(), "no JSON object", "a gate or a window plan"});
  }
  const std::string sha256 = sha256_of(text);
  make_folder(folder);
  write_file_atomically(folder / (sha256 + ".json"), text);
  return {{"path", git.relative(file).value_or(file.filename().string())}, {"sha256", sha256}};
}

void check_rule(const Freezing& freezing) {
  const auto require = [](bool reads, bool given, const std::string& flag) {
    if (reads == given) return;
    throw Error(ErrorKind::invalid_argument,
                {.where = flag,
                 .found = given ? "given, but the rule does not read it" : "not given, but the rule reads it",
                 .expected = "a rule that reads what is frozen, and nothing else"});
  };
  require(freezing.rule.contains("gates"), !freezing.gates.empty(), "--gate");
  require(freezing.rule.contains("window"), !freezing.window.empty(), "--window");
}

/// A claim about a pair that no window of the plan can hold could never be refuted. A window pairs each form
/// with those that stand after it.
void check_pairs(const Freezing& freezing) {
  const WindowPlan plan = read_window_plan(freezing.window);
  const Json& clause = freezing.rule["window"];
  const auto place = [&](const char* field, const auto& named) -> std::optional<std::ptrdiff_t> {
    if (!clause.contains(field)) return std::nullopt;
    const std::string name = clause[field].get<std::string>();
    const auto found =
        std::find_if(named.begin(), named.end(), [&](const auto& one) { return one.name == name; });
    if (found != named.end()) return found - named.begin();
    throw Error(ErrorKind::invalid_argument, {.where = fmt::format("rule, window.{}", field),
                                              .found = "'" + printable(name) + "'",
                                              .expected = "a name of " + freezing.window.string()});
  };
  place("item", plan.items);
  const std::ptrdiff_t last = std::ssize(plan.forms) - 1;
  const std::ptrdiff_t baseline = place("baseline", plan.forms).value_or(0);
  const std::ptrdiff_t candidate = place("candidate", plan.forms).value_or(last);
  if (baseline < candidate) return;
  throw Error(ErrorKind::invalid_argument,
              {.where = "rule, window",
               .found = fmt::format("the baseline is form {} of {}, the candidate form {}", baseline + 1,
                                    freezing.window.string(), candidate + 1),
               .expected = "a baseline that stands before the candidate in the plan",
               .advice = "change their order in the plan"});
}

void check_committed(const Experiment& experiment, const GitRepository& git,
                     const std::filesystem::path& ledger) {
  const auto sources = experiment.body()["proposal"]["sources"].get<std::vector<std::string>>();
  const auto changed = git.uncommitted(sources, git.relative(ledger).value_or(""));
  if (changed.empty()) return;
  throw Error(
      ErrorKind::mismatch,
      {.where = changed.front(),
       .found = fmt::format("modified or untracked ({} so under {})", counted(changed.size(), "file"),
                            sources.empty() ? "the repository" : fmt::format("{}", fmt::join(sources, ", "))),
       .expected = "the subject's sources as committed",
       .advice = "commit or remove them: an experiment starts from a commit"});
}

GitRepository repository_of(const std::filesystem::path& folder) {
  auto git = GitRepository::find(folder);
  if (git) return std::move(*git);
  throw Error(ErrorKind::unsupported, {.where = folder.string(),
                                       .found = "outside a git repository",
                                       .expected = "a ledger inside one",
                                       .advice = "an experiment is frozen with the commit it starts from"});
}

/// The sources as git names them, so that the freeze can ask for them wherever it runs.
Json source_paths(const std::vector<std::string>& sources, const std::filesystem::path& folder) {
  const auto git = GitRepository::find(folder);
  Json paths = Json::array();
  for (const std::string& source : sources) {
    if (!path_exists(source)) {
      throw Error(ErrorKind::missing, {"--source", "'" + source + "' is not there", "a file or folder"});
    }
    const auto inside = git ? git->relative(source) : std::nullopt;
    if (!inside) {
      throw Error(ErrorKind::invalid_argument,
                  {"--source", "'" + source + "' is outside the ledger's repository", "a path inside it"});
    }
    paths.push_back(inside->empty() ? "." : *inside);
  }
  return paths;
}

/// IDs that some commit knew.
std::set<std::string> committed_ids(const std::filesystem::path& experiments) {
  std::set<std::string> ids;
  const auto git = GitRepository::find(experiments);
  if (!git) return ids;
  const auto path = git->relative(experiments);
  if (!path) return ids;
  for (const std::string& file : git->paths_ever(*path)) {
    const std::string name = std::filesystem::path(file).filename().string();
    if (name.starts_with("EXP-")) ids.insert(name.substr(0, kIdLength));
  }
  return ids;
}

}  // namespace

std::string_view to_string(ExperimentState state) {
  return kStates[static_cast<std::size_t>(state)];
}

std::string utc_now() {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", now);
}

std::size_t number_of(const std::string& id) {
  constexpr std::size_t kPrefix = 4;
  std::size_t number = 0;
  if (id.size() > kPrefix) std::from_chars(id.data() + kPrefix, id.data() + id.size(), number);
  return number;
}

Experiment::Experiment(std::filesystem::path file, Json body)
    : file_(std::move(file)), body_(std::move(body)) {
  experiment_schema().check(body_, file_.string());
  if (body_.contains("frozen")) read_rule(body_["frozen"]["rule"], file_.string() + ", frozen.rule");
}

ExperimentState Experiment::state() const {
  const auto place = std::find(kStates.begin(), kStates.end(), body_["state"].get<std::string>());
  return static_cast<ExperimentState>(place - kStates.begin());
}

std::string Experiment::subsystem() const {
  const std::string subject = text("subject");
  return subject.substr(0, subject.find(':'));
}

std::optional<std::string> Experiment::supersedes() const {
  const Json& proposal = body_["proposal"];
  if (!proposal.contains("supersedes")) return std::nullopt;
  return proposal["supersedes"].get<std::string>();
}

std::optional<std::string> Experiment::superseded_by() const {
  if (!body_.contains("superseded_by")) return std::nullopt;
  return body_["superseded_by"].get<std::string>();
}

Rule Experiment::rule() const {
  return read_rule(body_["frozen"]["rule"], id() + ", frozen.rule");
}

std::vector<std::string> Experiment::gate_sha256s() const {
  std::vector<std::string> list;
  for (const Json& gate : body_["frozen"]["gates"]) list.push_back(gate["sha256"].get<std::string>());
  return list;
}

std::string Experiment::frozen_sha256() const {
  return body_["frozen"]["sha256"].get<std::string>();
}

std::string Experiment::computed_frozen_sha256() const {
  nlohmann::json part{{"id", body_["id"]}, {"proposal", body_["proposal"]}, {"frozen", body_["frozen"]}};
  part["frozen"].erase("sha256");
  return sha256_of(part.dump());
}

std::string Experiment::refusal_of(const Receipt& receipt) const {
  const Json& frozen = body_["frozen"];
  if (made(receipt) < frozen["made"].get<std::string>()) {
    return fmt::format("made {}, before the freeze at {}", made(receipt), frozen["made"].get<std::string>());
  }
  if (frozen.contains("device") && device_id(receipt) != frozen["device"].get<std::string>()) {
    return fmt::format("made on {}, not on {}", device_id(receipt), frozen["device"].get<std::string>());
  }
  if (receipt.kind == ReceiptKind::gate) {
    const std::string gate = read_gate_finding(receipt).gate_sha256;
    const auto gates = gate_sha256s();
    if (std::find(gates.begin(), gates.end(), gate) != gates.end()) return "";
    return fmt::format("of gate {:.12}, which is not frozen here", gate);
  }
  if (receipt.kind == ReceiptKind::window) {
    const std::string plan = read_window_finding(receipt).plan_sha256;
    if (frozen.contains("window") && frozen["window"]["sha256"] == plan) return "";
    return fmt::format("of window plan {:.12}, which is not frozen here", plan);
  }
  const Rule parsed = rule();
  const bool read = std::any_of(parsed.values.begin(), parsed.values.end(), [&](const ValueClause& clause) {
    return clause.kind == to_string(receipt.kind);
  });
  return read ? "" : fmt::format("of kind {}, which the rule does not read", to_string(receipt.kind));
}

std::vector<std::string> Experiment::receipt_sha256s() const {
  std::vector<std::string> list;
  if (!body_.contains("receipts")) return list;
  for (const Json& receipt : body_["receipts"]) list.push_back(receipt["sha256"].get<std::string>());
  return list;
}

std::string Experiment::evidence() const {
  return body_["decision"]["evidence"].get<std::string>();
}

std::string Experiment::disposition() const {
  return body_["decision"]["dispositions"].back()["disposition"].get<std::string>();
}

Experiment read_experiment(const std::filesystem::path& file) {
  Experiment experiment(file, parse_json_strictly(read_text_file(file, kLargestExperiment), file.string()));
  if (!file.filename().string().starts_with(experiment.id() + "-")) {
    throw Error(ErrorKind::mismatch, {.where = file.string() + ", id",
                                      .found = experiment.id(),
                                      .expected = "the ID that the file is named by"});
  }
  return experiment;
}

std::vector<std::filesystem::path> Ledger::files() const {
  std::vector<std::filesystem::path> list;
  if (!is_directory_path(experiments())) return list;
  for (const auto& file : list_directory(experiments())) {
    if (file.extension() != ".tmp") list.push_back(file);
  }
  return list;
}

std::vector<Experiment> Ledger::read() const {
  std::vector<Experiment> list;
  for (const auto& file : files()) {
    list.push_back(read_experiment(file));
    if (list.size() > 1 && list[list.size() - 2].id() == list.back().id()) {
      throw Error(ErrorKind::mismatch, {.where = file.string(),
                                        .found = list.back().id() + " a second time",
                                        .expected = "every ID once"});
    }
  }
  return list;
}

Experiment Ledger::read(const std::string& id) const {
  return find(read(), id);
}

std::vector<Receipt> Ledger::receipts_of(const Experiment& experiment) const {
  std::vector<Receipt> list;
  for (const std::string& sha256 : experiment.receipt_sha256s()) {
    list.push_back(read_receipt(receipts() / (sha256 + ".json")));
  }
  return list;
}

/// All experiments, numbered 1 … n, none missing that a commit knew.
std::vector<Experiment> Ledger::read_sound() const {
  std::vector<Experiment> list = read();
  std::set<std::string> present;
  for (const Experiment& experiment : list) present.insert(experiment.id());
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (number_of(list[i].id()) == i + 1) continue;
    throw Error(ErrorKind::mismatch,
                {.where = experiments().string(),
                 .found = fmt::format("{} where EXP-{:04} was expected", list[i].id(), i + 1),
                 .expected = "IDs without gaps",
                 .advice = "restore the missing experiment from git"});
  }
  for (const std::string& id : committed_ids(experiments())) {
    if (present.contains(id)) continue;
    throw Error(ErrorKind::mismatch,
                {.where = experiments().string(),
                 .found = id + " was committed and is gone",
                 .expected = "every experiment ever committed",
                 .advice = "restore it from git: experiments stay, whatever came of them"});
  }
  return list;
}

void Ledger::write(const Experiment& experiment) const {
  write_file_atomically(experiment.file(), to_json_text(experiment.body(), experiment.file().string()));
}

/// A `new --supersedes` that was killed between its two files leaves the older without its link.
void Ledger::complete_links(const std::vector<Experiment>& experiments) const {
  for (const Experiment& newer : experiments) {
    if (!newer.supersedes()) continue;
    const Experiment& older = find(experiments, *newer.supersedes());
    if (older.superseded_by()) continue;
    Json body = older.body();
    body["superseded_by"] = newer.id();
    write(Experiment(older.file(), std::move(body)));
    log().info("{} is superseded by {}", older.id(), newer.id());
  }
}

Experiment Ledger::propose(const Proposal& proposal) {
  make_folder(experiments());
  const FolderLock lock(folder_);
  std::vector<Experiment> list = read_sound();
  if (list.size() >= kLastNumber) {
    throw Error(ErrorKind::limit_exceeded, {experiments().string(), "no ID left", "at most EXP-9999"});
  }
  Json text{{"made", utc_now()},
            {"subject", proposal.subject},
            {"sources", source_paths(proposal.sources, folder_)},
            {"hypothesis", proposal.hypothesis},
            {"mechanism", proposal.mechanism},
            {"risk", proposal.risk}};
  if (!proposal.supersedes.empty()) {
    const Experiment& older = find(list, proposal.supersedes);
    if (older.superseded_by()) {
      throw Error(ErrorKind::mismatch, {older.id(), "superseded by " + *older.superseded_by() + " already",
                                        "an experiment that stands"});
    }
    text["supersedes"] = older.id();
  }
  if (!proposal.slug.empty() && slug_of(proposal.slug) != proposal.slug) {
    throw Error(ErrorKind::invalid_argument, {"--slug", "'" + proposal.slug + "'",
                                              "words of a-z and 0-9 with hyphens between, at most 48"});
  }
  const std::string id = fmt::format("EXP-{:04}", list.size() + 1);
  const std::string slug = proposal.slug.empty() ? slug_of(proposal.subject) : proposal.slug;
  Experiment experiment(
      experiments() / fmt::format("{}-{}.json", id, slug),
      {{"schema", "assay.experiment/1"}, {"id", id}, {"state", "proposed"}, {"proposal", text}});
  make_folder(folder_ / "schema");
  write_file_atomically(folder_ / "schema" / "experiment.schema.json", experiment_schema_text());
  create_file(experiment.file(), to_json_text(experiment.body(), experiment.file().string()));
  list.push_back(experiment);
  complete_links(list);
  return experiment;
}

Experiment Ledger::freeze(const std::string& id, const Freezing& freezing) {
  const FolderLock lock(folder_);
  const std::vector<Experiment> list = read_sound();
  const Experiment& experiment = find(list, id);
  if (experiment.state() != ExperimentState::proposed) {
    refuse_state(experiment, "a proposed experiment",
                 "what is frozen stays: a changed threshold is a new ID");
  }
  check_rule(freezing);
  const GitRepository git = repository_of(folder_);
  const auto commit = git.head();
  if (!commit) {
    throw Error(ErrorKind::unsupported, {git.root().string(), "no commit yet", "a commit to start from"});
  }
  check_committed(experiment, git, folder_);
  Json frozen{{"made", utc_now()}, {"commit", *commit}, {"gates", Json::array()}};
  if (!freezing.window.empty()) check_pairs(freezing);
  for (const auto& gate : freezing.gates) frozen["gates"].push_back(keep(gate, this->frozen(), git));
  if (!freezing.window.empty()) frozen["window"] = keep(freezing.window, this->frozen(), git);
  if (!freezing.device.empty()) frozen["device"] = freezing.device;
  frozen["rule"] = freezing.rule;
  frozen["sha256"] = std::string(sha256_of(""));
  Json body = experiment.body();
  body["state"] = "frozen";
  body["frozen"] = std::move(frozen);
  body["frozen"]["sha256"] = Experiment(experiment.file(), body).computed_frozen_sha256();
  Experiment changed(experiment.file(), std::move(body));
  write(changed);
  complete_links(list);
  return changed;
}

Experiment Ledger::record(const std::string& id, const std::vector<std::filesystem::path>& receipts) {
  const FolderLock lock(folder_);
  const Experiment experiment = find(read_sound(), id);
  if (experiment.state() == ExperimentState::proposed) {
    refuse_state(experiment, "a frozen experiment", "`assay ledger freeze` comes first");
  }
  if (experiment.state() == ExperimentState::decided) {
    refuse_state(experiment, "an experiment that is not decided", "new evidence is a new ID");
  }
  Json body = experiment.body();
  body["state"] = "recorded";
  std::vector<std::string> known = experiment.receipt_sha256s();
  std::vector<Receipt> admitted;
  for (const auto& file : receipts) {
    Receipt receipt = read_receipt(file);
    std::string refusal = experiment.refusal_of(receipt);
    if (std::find(known.begin(), known.end(), receipt.sha256) != known.end()) refusal = "attached already";
    if (!refusal.empty()) {
      throw Error(ErrorKind::mismatch, {.where = file.string(),
                                        .found = refusal,
                                        .expected = "a receipt of what " + id + " froze",
                                        .advice = "no receipt was attached"});
    }
    body["receipts"].push_back({{"sha256", receipt.sha256},
                                {"kind", to_string(receipt.kind)},
                                {"made", made(receipt)},
                                {"attached", utc_now()}});
    known.push_back(receipt.sha256);
    admitted.push_back(std::move(receipt));
  }
  Experiment changed(experiment.file(), std::move(body));
  make_folder(this->receipts());
  for (const Receipt& receipt : admitted) {
    const std::filesystem::path kept = this->receipts() / (receipt.sha256 + ".json");
    if (!path_exists(kept)) write_file_atomically(kept, read_text_file(receipt.file));
  }
  judge(changed, receipts_of(changed));
  write(changed);
  return changed;
}

Experiment Ledger::decide(const std::string& id, const Disposition& wanted) {
  const FolderLock lock(folder_);
  const std::vector<Experiment> list = read_sound();
  complete_links(list);
  const Experiment experiment = read(id);
  if (experiment.state() < ExperimentState::recorded) {
    refuse_state(experiment, "an experiment with receipts", "`assay ledger record` comes first");
  }
  Json body = experiment.body();
  if (experiment.state() == ExperimentState::recorded) {
    const Judgement judgement = judge(experiment, receipts_of(experiment));
    body["state"] = "decided";
    body["decision"] = {{"made", utc_now()},
                        {"evidence", to_string(judgement.evidence)},
                        {"findings", findings_json(judgement)},
                        {"dispositions", Json::array()}};
  } else if (!disposition_may_follow(experiment.disposition(), wanted.disposition)) {
    refuse_state(experiment, "an experiment whose disposition is pending, or one that is superseded",
                 "it is " + experiment.disposition() + "; another outcome is a new ID");
  }
  const std::string evidence = body["decision"]["evidence"].get<std::string>();
  if (wanted.disposition == "integrated" && evidence != "positive") {
    throw Error(ErrorKind::mismatch,
                {.where = id + ", --disposition integrated",
                 .found = "the evidence is " + evidence,
                 .expected = "positive evidence",
                 .advice = "nothing is integrated without it; a changed rule is a new ID"});
  }
  const bool superseded = wanted.disposition == "superseded";
  if (superseded != !wanted.by.empty() || (superseded && experiment.superseded_by() != wanted.by)) {
    throw Error(ErrorKind::mismatch,
                {.where = id + ", --by",
                 .found = wanted.by.empty() ? "nothing" : wanted.by,
                 .expected = superseded ? experiment.superseded_by().value_or("a successor") : "nothing",
                 .advice = "`assay ledger new --supersedes " + id + "` makes a successor"});
  }
  body["decision"]["dispositions"].push_back(
      {{"made", utc_now()}, {"disposition", wanted.disposition}, {"reason", wanted.reason}});
  Experiment changed(experiment.file(), std::move(body));
  write(changed);
  return changed;
}

Json findings_json(const Judgement& judgement) {
  Json findings = Json::array();
  for (const ClauseOutcome& clause : judgement.clauses) {
    findings.push_back(
        {{"clause", clause.clause}, {"outcome", to_string(clause.outcome)}, {"because", clause.because}});
  }
  return findings;
}

bool disposition_may_follow(const std::string& before, const std::string& after) {
  if (after == before) return false;
  return before == "pending-integration" || after == "superseded";
}

Judgement judge(const Experiment& experiment, const std::vector<Receipt>& receipts) {
  const Rule rule = experiment.rule();
  return judge(rule, experiment.gate_sha256s(), read_findings(rule, receipts));
}

}  // namespace assay::lab
