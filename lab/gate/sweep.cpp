#include "lab/gate/sweep.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "decision/checkpoint.hpp"

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
    if (listing.op == "matmul" && listing.info.precision != precision) continue;
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

bool is_taps(const std::filesystem::path& fixture) {
  return fixture.extension() == ".safetensors";
}

/// Ops that no layer of the model runs.
std::set<std::string> idle_ops(const formats::ModelConfig& config) {
  std::set<std::string> idle{"gated_delta_rule", "causal_conv1d", "attention", "rope"};
  for (const formats::LayerType type : config.layers) {
    for (const char* op : type == formats::LayerType::linear_attention
                              ? std::array{"gated_delta_rule", "causal_conv1d"}
                              : std::array{"attention", "rope"}) {
      idle.erase(op);
    }
  }
  return idle;
}

class Sweep {
 public:
  Sweep(const SweepPlan& plan, const std::function<void(SweepRow&)>& on_row) : plan_(plan), on_row_(on_row) {
    report_.gates = plan.gates;
    report_.vary = plan.vary;
    report_.precisions = plan.precisions;
    for (const SweepPair& pair : plan.pairs) {
      idle_.push_back(idle_ops(decision::open_checkpoint(pair.model, plan.base).config));
    }
  }

  SweepReport run() {
    for (const GateFile& gate : plan_.gates) {
      for (const ops::Precision precision : plan_.precisions) {
        if (gate.precision && *gate.precision != precision) continue;
        gate.subject == SubjectKind::op ? run_op(gate, precision) : run_model(gate, precision);
      }
    }
    const bool any = std::any_of(report_.rows.begin(), report_.rows.end(),
                                 [](const SweepRow& row) { return row.report.has_value(); });
    if (!any) {
      throw Error(ErrorKind::invalid_argument,
                  {.where = "sweep",
                   .found = "no gate that any of the precisions, fixtures and forms suits",
                   .expected = "one or more",
                   .advice = "look at the gates' precisions and at the fixtures' types"});
    }
    return std::move(report_);
  }

 private:
  void run_op(const GateFile& gate, ops::Precision precision) {
    std::vector<std::string> vary;
    if (std::find(plan_.vary.begin(), plan_.vary.end(), gate.op) != plan_.vary.end()) vary.push_back(gate.op);
    run_forms(gate, precision, vary, {}, nullptr);
  }

  void run_model(const GateFile& gate, ops::Precision precision) {
    for (std::size_t i = 0; i < plan_.pairs.size(); ++i) {
      if (is_taps(plan_.pairs[i].fixture) != (gate.subject == SubjectKind::taps)) continue;
      std::vector<std::string> vary;
      for (const std::string& op : plan_.vary) {
        if (!idle_[i].contains(op)) {
          vary.push_back(op);
          continue;
        }
        SweepRow row = new_row(gate, precision, plan_.pairs[i].fixture.filename().string(), op + "=(any)");
        row.not_run = fmt::format("the model has no layer that runs {}", op);
        finish(std::move(row));
      }
      // What is idle changes nothing, so the run with default forms stands for all of its forms.
      run_forms(gate, precision, vary, plan_.pairs[i].fixture.filename().string(), &plan_.pairs[i]);
    }
  }

  void run_forms(const GateFile& gate, ops::Precision precision, const std::vector<std::string>& vary,
                 const std::string& fixture, const SweepPair* pair) {
    std::vector<Candidate> list = candidates(vary, precision);
    if (vary.empty()) list.push_back({.label = "default", .forms = {}, .not_run = {}});
    for (const Candidate& candidate : list) {
      SweepRow row = new_row(gate, precision, fixture, candidate.label);
      row.not_run = candidate.not_run;
      if (row.not_run.empty()) row.report = judge_one(gate, precision, candidate, pair);
      finish(std::move(row));
    }
  }

  GateReport judge_one(const GateFile& gate, ops::Precision precision, const Candidate& candidate,
                       const SweepPair* pair) const {
    GateTarget target{.precision = precision, .forms = candidate.forms, .threads = plan_.threads};
    if (pair != nullptr) {
      target.model = pair->model;
      target.base = plan_.base;
      target.fixtures = {pair->fixture};
    }
    return std::move(execute_gate(gate, target).front());
  }

  static SweepRow new_row(const GateFile& gate, ops::Precision precision, std::string fixture,
                          std::string form) {
    return {.gate = gate.name,
            .comparator = std::string(comparator_name(gate.bar)),
            .fixture = std::move(fixture),
            .precision = std::string(to_string(precision)),
            .form = std::move(form),
            .report = {},
            .not_run = {},
            .receipt_sha256 = {}};
  }

  void finish(SweepRow row) {
    if (on_row_) on_row_(row);
    report_.rows.push_back(std::move(row));
  }

  const SweepPlan& plan_;
  const std::function<void(SweepRow&)>& on_row_;
  std::vector<std::set<std::string>> idle_;
  SweepReport report_;
};

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
  return std::all_of(rows.begin(), rows.end(),
                     [](const SweepRow& row) { return !row.report || row.report->pass(); });
}

SweepReport sweep(const SweepPlan& plan, const std::function<void(SweepRow&)>& on_row) {
  check_ops(plan.vary);
  for (const GateFile& gate : plan.gates) {
    if (gate.fixtures.empty()) continue;
    throw Error(ErrorKind::invalid_argument, {.where = "gate " + gate.name,
                                              .found = "a gate with fixtures of its own",
                                              .expected = "gates that take the sweep's fixtures"});
  }
  return Sweep(plan, on_row).run();
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
