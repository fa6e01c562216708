#include "lab/gate/sweep.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "decision/checkpoint.hpp"
#include "lab/music_fixture.hpp"
#include "music/checkpoint.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

/// A choice of forms to run, or why it cannot be.
struct Candidate {
  std::string label;
  ops::FormOverrides forms;
  std::string not_run;
};

std::vector<Candidate> candidates(const std::vector<std::string>& vary, ops::Precision precision) {
  std::vector<Candidate> result;
  for (const ops::FormListing& listing : ops::list_forms()) {
    if (std::find(vary.begin(), vary.end(), listing.op) == vary.end()) continue;
    if (ops::has_forms_by_precision(listing.op) && listing.info.precision != precision) continue;
    Candidate candidate{
        .label = fmt::format("{}={}", listing.op, listing.info.name), .forms = {}, .not_run = {}};
    candidate.forms.emplace(listing.op, listing.info.name);
    if (!listing.supported) candidate.not_run = listing.why;
    result.push_back(std::move(candidate));
  }
  return result;
}

void check_ops(const std::vector<std::string>& vary) {
  std::set<std::string> known;
  for (const ops::FormListing& listing : ops::list_forms()) known.emplace(listing.op);
  for (const std::string& op : vary) {
    if (known.contains(op)) continue;
    throw Error(ErrorKind::invalid_argument, {.where = "--vary " + op,
                                              .found = "no such op",
                                              .expected = fmt::format("one of {}", fmt::join(known, ", "))});
  }
}

SubjectKind subject_of(const std::filesystem::path& fixture) {
  if (fixture.extension() == ".safetensors") return SubjectKind::taps;
  return is_music_fixture(fixture) ? SubjectKind::music : SubjectKind::decision;
}

/// Ops that no layer of the decision model runs.
std::set<std::string> idle_ops(const formats::ModelConfig& config) {
  std::set<std::string> idle{"gated_delta_rule", "causal_conv1d",    "attention", "rope",
                             "conv1d",           "conv_transpose1d", "snake"};
  for (const formats::LayerType type : config.layers) {
    for (const char* op : type == formats::LayerType::linear_attention
                              ? std::array{"gated_delta_rule", "causal_conv1d"}
                              : std::array{"attention", "rope"}) {
      idle.erase(op);
    }
  }
  return idle;
}

/// A pair with what its model and fixture are.
struct KnownPair {
  const SweepPair* pair = nullptr;
  SubjectKind subject = SubjectKind::decision;
  std::set<std::string> idle = {};  ///< ops that nothing in the model runs
};

KnownPair know(const SweepPair& pair, const std::optional<std::filesystem::path>& base) {
  KnownPair known{.pair = &pair, .subject = subject_of(pair.fixture)};
  if (known.subject != SubjectKind::music) {
    known.idle = idle_ops(decision::open_checkpoint(pair.model, base).config);
    return known;
  }
  if (base) {
    throw Error(ErrorKind::invalid_argument, {.where = pair.model.string(),
                                              .found = "a base for a music model",
                                              .expected = "none: it has its parts beside it",
                                              .advice = "sweep models with a base by themselves"});
  }
  music::Checkpoint::open(pair.model);  // a model that is none is found before hours of rows
  known.idle = {"gated_delta_rule", "causal_conv1d"};
  return known;
}

/// A row that is to be, and what it takes to run its gate.
struct Job {
  SweepRow row;
  const GateFile* gate = nullptr;
  ops::Precision precision = ops::Precision::fp32;
  ops::FormOverrides forms = {};
  const SweepPair* pair = nullptr;  ///< none for an op gate
};

/// Lists the rows of a sweep in their order.
class JobList {
 public:
  explicit JobList(const SweepPlan& plan) : plan_(plan) {
    for (const SweepPair& pair : plan.pairs) pairs_.push_back(know(pair, plan.base));
    for (const GateFile& gate : plan_.gates) {
      for (const ops::Precision precision : plan_.precisions) {
        if (gate.precision && *gate.precision != precision) continue;
        gate.subject == SubjectKind::op ? add_op(gate, precision) : add_model(gate, precision);
      }
    }
  }

  std::vector<Job> take() { return std::move(jobs_); }

 private:
  void add_op(const GateFile& gate, ops::Precision precision) {
    std::vector<std::string> vary;
    if (std::find(plan_.vary.begin(), plan_.vary.end(), gate.op) != plan_.vary.end()) vary.push_back(gate.op);
    add_forms(gate, precision, vary, nullptr);
  }

  void add_model(const GateFile& gate, ops::Precision precision) {
    for (const KnownPair& known : pairs_) {
      if (known.subject != gate.subject) continue;
      std::vector<std::string> vary;
      for (const std::string& op : plan_.vary) {
        if (!known.idle.contains(op)) {
          vary.push_back(op);
          continue;
        }
        add(gate, precision, {.label = op + "=(any)", .forms = {}, .not_run = no_layer_runs(op)}, known.pair);
      }
      // What is idle changes nothing, so the run with default forms stands for all of its forms.
      add_forms(gate, precision, vary, known.pair);
    }
  }

  static std::string no_layer_runs(const std::string& op) {
    return fmt::format("the model has no layer that runs {}", op);
  }

  void add_forms(const GateFile& gate, ops::Precision precision, const std::vector<std::string>& vary,
                 const SweepPair* pair) {
    if (vary.empty()) return add(gate, precision, {.label = "default", .forms = {}, .not_run = {}}, pair);
    for (const Candidate& candidate : candidates(vary, precision)) add(gate, precision, candidate, pair);
  }

  void add(const GateFile& gate, ops::Precision precision, const Candidate& candidate,
           const SweepPair* pair) {
    jobs_.push_back({.row = {.gate = gate.name,
                             .comparator = std::string(comparator_name(gate.bar)),
                             .fixture = pair == nullptr ? "" : pair->fixture.filename().string(),
                             .precision = std::string(to_string(precision)),
                             .form = candidate.label,
                             .report = {},
                             .not_run = candidate.not_run,
                             .receipt_sha256 = {}},
                     .gate = &gate,
                     .precision = precision,
                     .forms = candidate.forms,
                     .pair = pair});
  }

  const SweepPlan& plan_;
  std::vector<KnownPair> pairs_;
  std::vector<Job> jobs_;
};

GateReport judge_one(const SweepPlan& plan, const Job& job) {
  GateTarget target{.precision = job.precision, .forms = job.forms, .threads = plan.threads};
  target.stop = plan.stop;
  if (job.pair != nullptr) {
    target.model = job.pair->model;
    target.base = plan.base;
    target.fixtures = {job.pair->fixture};
  }
  return std::move(execute_gate(*job.gate, target).front());
}

void require_runs(const std::vector<Job>& jobs) {
  if (std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.row.not_run.empty(); })) return;
  throw Error(ErrorKind::invalid_argument,
              {.where = "sweep",
               .found = "no gate that any of the precisions, fixtures and forms suits",
               .expected = "one or more",
               .advice = "look at the gates' precisions and at the fixtures' types"});
}

std::string result_of(const SweepRow& row) {
  return !row.report ? "not run" : row.report->pass() ? "PASS" : "FAIL";
}

std::string arms_of(const SweepRow& row) {
  std::string text;
  for (const ArmReport& arm : row.report->red_arms) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", arm.arm.name, to_string(arm.outcome));
  }
  return text;
}

Json row_json(const SweepRow& row) {
  Json json{{"gate", row.gate},       {"comparator", row.comparator},
            {"fixture", row.fixture}, {"precision", row.precision},
            {"form", row.form},       {"result", result_of(row)}};
  if (row.report) {
    json["measures"] = row.report->verdict.measures;
    json["failures"] = row.report->verdict.failures;
    json["red_arms"] = Json::object();
    for (const ArmReport& arm : row.report->red_arms) json["red_arms"][arm.arm.name] = to_string(arm.outcome);
  } else {
    json["reason"] = row.not_run;
  }
  if (!row.receipt_sha256.empty()) json["receipt"] = row.receipt_sha256;
  return json;
}

std::vector<std::string> cells(const SweepRow& row, const std::vector<std::string>& columns) {
  std::vector<std::string> line{row.gate, row.fixture, row.precision, row.form, result_of(row)};
  for (const std::string& column : columns) {
    std::string cell;
    if (row.report) {
      for (const auto& [name, value] : row.report->verdict.columns) {
        if (name == column) cell = value;
      }
    }
    line.push_back(std::move(cell));
  }
  line.push_back(row.report ? arms_of(row) : row.not_run);
  return line;
}

}  // namespace

bool SweepReport::pass() const {
  return whole() && std::all_of(rows.begin(), rows.end(),
                                [](const SweepRow& row) { return !row.report || row.report->pass(); });
}

std::string rows_done(const SweepReport& report) {
  return fmt::format("{} of {} done", report.rows.size(), counted(report.planned, "row"));
}

SweepReport sweep(const SweepPlan& plan, const SweepObserver& on_row) {
  check_ops(plan.vary);
  for (const GateFile& gate : plan.gates) {
    if (gate.fixtures.empty()) continue;
    throw Error(ErrorKind::invalid_argument, {.where = "gate " + gate.name,
                                              .found = "a gate with fixtures of its own",
                                              .expected = "gates that take the sweep's fixtures"});
  }
  std::vector<Job> jobs = JobList(plan).take();
  require_runs(jobs);
  SweepReport report{.gates = plan.gates,
                     .vary = plan.vary,
                     .precisions = plan.precisions,
                     .rows = {},
                     .planned = jobs.size()};
  for (Job& job : jobs) {
    try {
      if (plan.stop && plan.stop()) break;
      if (job.row.not_run.empty()) job.row.report = judge_one(plan, job);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::cancelled) throw;
      break;
    }
    if (on_row) on_row(job.row, report.rows.size() + 1, jobs.size());
    report.rows.push_back(std::move(job.row));
  }
  return report;
}

Json receipt_subject(const SweepReport& report) {
  Json json{{"gates", Json::array()},
            {"vary", report.vary},
            {"precisions", Json::array()},
            {"fixtures", Json::array()}};
  for (const GateFile& gate : report.gates) {
    json["gates"].push_back({{"name", gate.name}, {"sha256", gate.sha256}});
  }
  for (const ops::Precision precision : report.precisions) json["precisions"].push_back(to_string(precision));
  std::set<std::string> seen;
  for (const SweepRow& row : report.rows) {
    if (!row.report || row.fixture.empty()) continue;
    const Json& subject = row.report->subject;
    if (!seen.insert(subject["fixture_sha256"].get<std::string>()).second) continue;
    json["fixtures"].push_back({{"fixture", subject["fixture"]},
                                {"fixture_sha256", subject["fixture_sha256"]},
                                {"model_identity", subject["model_identity"]}});
  }
  return json;
}

Json receipt_result(const SweepReport& report) {
  Json json{{"rows", Json::array()}};
  std::map<std::string, std::size_t> counts;
  for (const SweepRow& row : report.rows) {
    json["rows"].push_back(row_json(row));
    ++counts[result_of(row)];
  }
  json["passed"] = counts["PASS"];
  json["failed"] = counts["FAIL"];
  json["not_run"] = counts["not run"];
  return json;
}

std::vector<SweepTable> tables(const SweepReport& report) {
  std::vector<SweepTable> result;
  for (const SweepRow& first : report.rows) {
    const auto known = std::find_if(result.begin(), result.end(), [&](const SweepTable& table) {
      return table.comparator == first.comparator;
    });
    if (known != result.end()) continue;
    std::vector<std::string> columns;
    for (const SweepRow& row : report.rows) {
      if (row.comparator != first.comparator || !row.report || !columns.empty()) continue;
      for (const auto& [name, value] : row.report->verdict.columns) columns.push_back(name);
    }
    SweepTable table{.comparator = first.comparator,
                     .cells = {{"gate", "fixture", "precision", "form", "result"}}};
    table.cells[0].insert(table.cells[0].end(), columns.begin(), columns.end());
    table.cells[0].emplace_back("red arms, or why not run");
    for (const SweepRow& row : report.rows) {
      if (row.comparator == first.comparator) table.cells.push_back(cells(row, columns));
    }
    result.push_back(std::move(table));
  }
  return result;
}

}  // namespace assay::lab
