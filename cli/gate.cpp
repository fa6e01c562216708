#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "cli/commands.hpp"
#include "cli/decision_options.hpp"
#include "cli/table.hpp"
#include "lab/decision_fixture.hpp"
#include "lab/gate/bisect.hpp"
#include "lab/gate/decision_subject.hpp"
#include "lab/gate/execute.hpp"
#include "lab/gate/run_gate.hpp"
#include "lab/gate/sweep.hpp"
#include "lab/receipt/receipt.hpp"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Where receipts go, and how the result is printed.
struct OutputFlags {
  std::string receipts;
  bool json = false;

  void add_to(CLI::App& command) {
    command.add_option("--receipts", receipts,
                       "Folder to write the receipt into; without it none is written");
    command.add_flag("--json", json, "Print the report as JSON");
  }

  /// Writes the receipt and says where. Gives its SHA-256, empty where there is none.
  std::string write(lab::ReceiptKind kind, Json subject, Json result) const {
    if (receipts.empty()) return {};
    const lab::Receipt receipt =
        lab::write_receipt(receipts, lab::make_receipt(kind, std::move(subject), std::move(result)));
    fmt::print(stderr, "receipt {}\n", receipt.file.string());
    return receipt.sha256;
  }
};

/// What a gate is run on.
struct TargetFlags {
  std::string model;
  std::string base;
  std::vector<std::string> fixtures;
  std::string precision;
  std::vector<std::string> forms;
  std::size_t threads = 0;

  void add_to(CLI::App& command) {
    command.add_option("--model", model, "Run directory of a Kev checkpoint, its Hub id, or a GGUF file");
    command.add_option("--base", base,
                       "Base model directory, where the run's own reference is not to be followed");
    command.add_option("--fixture", fixtures,
                       "The oracle's recorded answers, where the gate names none; repeatable");
    command.add_option("--precision", precision, "fp32 or bf16; by default the gate's");
    command.add_option("--form", forms, "op=name: run this form of an op (see `assay forms`); repeatable");
    command.add_option("--threads", threads, "Threads to use; 0 is one a core")->capture_default_str();
  }

  lab::GateTarget target() const {
    lab::GateTarget target{.model = model, .forms = parse_forms(forms), .threads = threads};
    if (!base.empty()) target.base = base;
    if (!precision.empty()) target.precision = parse_precision(precision);
    target.fixtures.assign(fixtures.begin(), fixtures.end());
    return target;
  }
};

/// Prints reports and writes their receipts; one that fails is the command's failure.
void deliver(const std::vector<lab::GateReport>& reports, const OutputFlags& output) {
  bool pass = true;
  Json documents = Json::array();
  std::string text;
  for (const lab::GateReport& report : reports) {
    output.write(lab::ReceiptKind::gate, lab::receipt_subject(report), lab::receipt_result(report));
    documents.push_back(lab::to_json(report));
    text += (text.empty() ? "" : "\n") + lab::to_text(report);
    pass = pass && report.pass();
  }
  const Json& document = documents.size() == 1 ? documents.front() : documents;
  print(output.json ? document.dump(2) + "\n" : text);
  if (!pass) throw CLI::RuntimeError(1);
}

struct DecisionFlags {
  DecisionModelFlags model;
  std::string fixture;
  bool red = false;
  OutputFlags output;
};

void gate_decision(const DecisionFlags& flags) {
  const lab::DecisionFixture fixture = lab::read_decision_fixture(flags.fixture);
  const auto model = flags.model.load(0);
  lab::DecisionSubject subject(*model, fixture);
  deliver({lab::run_gate(lab::default_decision_gate(model->precision(), flags.red), subject)}, flags.output);
}

void add_decision(CLI::App& gate) {
  auto flags = std::make_shared<DecisionFlags>();
  CLI::App* command =
      gate.add_subcommand("decision", "Answers of a decision model; exit status 0 for PASS, 1 for FAIL");
  flags->model.add_to(*command);
  command->add_option("--fixture", flags->fixture, "The oracle's recorded answers")->required();
  command->add_flag("--red", flags->red, "Also run the red arms, each of which the gate must fail");
  flags->output.add_to(*command);
  command->callback([flags] { gate_decision(*flags); });
}

struct RunFlags {
  std::string gate;
  TargetFlags target;
  OutputFlags output;
};

void add_run(CLI::App& gate) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      gate.add_subcommand("run", "A gate from its file, red arms too; exit status 0 for PASS, 1 for FAIL");
  command->add_option("gate", flags->gate, "The gate's JSON file")->required();
  flags->target.add_to(*command);
  flags->output.add_to(*command);
  command->callback([flags] {
    deliver(lab::execute_gate(lab::read_gate_file(flags->gate), flags->target.target()), flags->output);
  });
}

struct SweepFlags {
  std::vector<std::string> gates;
  std::vector<std::string> models;
  std::vector<std::string> fixtures;
  std::string base;
  std::vector<std::string> vary;
  std::vector<std::string> precisions{"fp32", "bf16"};
  std::size_t threads = 0;
  std::string out;
  OutputFlags output;
};

/// A model to a fixture, or one model to all of them.
std::vector<lab::SweepPair> pairs(const SweepFlags& flags) {
  if (flags.models.size() > 1 && flags.models.size() != flags.fixtures.size()) {
    throw Error(
        ErrorKind::invalid_argument,
        {.where = "--model",
         .found = counted(flags.models.size(), "model") + ", " + counted(flags.fixtures.size(), "fixture"),
         .expected = "one model, or as many as fixtures, in the same order"});
  }
  if (flags.models.empty() != flags.fixtures.empty()) {
    throw Error(ErrorKind::invalid_argument, {.where = flags.models.empty() ? "--model" : "--fixture",
                                              .found = "none",
                                              .expected = "models with fixtures, or neither"});
  }
  if (flags.models.empty() && !flags.base.empty()) {
    throw Error(ErrorKind::invalid_argument, {.where = "--base",
                                              .found = "given without --model",
                                              .expected = "models with fixtures, whose base it is",
                                              .advice = "leave it out"});
  }
  std::vector<lab::SweepPair> pairs;
  for (std::size_t i = 0; i < flags.fixtures.size(); ++i) {
    pairs.push_back({flags.models.size() == 1 ? flags.models[0] : flags.models[i], flags.fixtures[i]});
  }
  return pairs;
}

std::string sweep_text(const lab::SweepReport& report) {
  std::string text;
  for (const lab::SweepTable& table : lab::tables(report)) text += format_table(table.cells) + "\n";
  return text + (report.pass() ? "PASS\n" : "FAIL\n");
}

void gate_sweep(const SweepFlags& flags) {
  lab::SweepPlan plan{.pairs = pairs(flags), .vary = flags.vary, .threads = flags.threads};
  for (const std::string& gate : flags.gates) plan.gates.push_back(lab::read_gate_file(gate));
  for (const std::string& precision : flags.precisions) plan.precisions.push_back(parse_precision(precision));
  if (!flags.base.empty()) plan.base = flags.base;
  const lab::SweepReport report = lab::sweep(plan, [&](lab::SweepRow& row) {
    if (!row.report) return;
    row.receipt_sha256 = flags.output.write(lab::ReceiptKind::gate, lab::receipt_subject(*row.report),
                                            lab::receipt_result(*row.report));
  });
  const Json subject = lab::receipt_subject(report);
  const Json result = lab::receipt_result(report);
  flags.output.write(lab::ReceiptKind::sweep, subject, result);
  const Json document{{"subject", subject}, {"result", result}};
  const std::string text = sweep_text(report);
  if (!flags.out.empty()) {
    const std::filesystem::path folder = flags.out;
    make_directories(folder);
    write_file_atomically(folder / "sweep.txt", text);
    write_file_atomically(folder / "sweep.json", document.dump(1) + "\n");
    write_file_atomically(folder / "sweep.html", lab::to_html(report));
  }
  print(flags.output.json ? document.dump(2) + "\n" : text);
  if (!report.pass()) throw CLI::RuntimeError(1);
}

void add_sweep(CLI::App& gate) {
  auto flags = std::make_shared<SweepFlags>();
  CLI::App* command = gate.add_subcommand(
      "sweep",
      "Gates over every form of an op, precision and fixture, as one table; exit status 1 if any fails");
  command->add_option("gates", flags->gates, "Gates' JSON files")->required();
  command->add_option("--model", flags->models, "Run directory, Hub id or GGUF file; one, or one a fixture");
  command->add_option("--fixture", flags->fixtures, "An oracle's recorded answers or taps; repeatable");
  command->add_option("--base", flags->base, "Base model directory for every model");
  command->add_option("--vary", flags->vary, "An op whose forms are all run; repeatable");
  command->add_option("--precision", flags->precisions, "fp32, bf16 or both")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--threads", flags->threads, "Threads to use; 0 is one a core")->capture_default_str();
  command->add_option("--out", flags->out, "Folder for sweep.txt, sweep.json and sweep.html");
  flags->output.add_to(*command);
  command->callback([flags] { gate_sweep(*flags); });
}

struct BisectFlags {
  std::string gate;
  TargetFlags target;
  std::vector<std::string> elsewhere;
  OutputFlags output;
};

void gate_bisect(const BisectFlags& flags) {
  std::size_t runs = 0;
  const auto progress = [&](const lab::BisectTrial& trial) {
    fmt::print(stderr, "run {}: {}\n", ++runs, trial.pass ? "PASS" : "FAIL");
  };
  const lab::BisectReport report = lab::bisect_forms(lab::read_gate_file(flags.gate), flags.target.target(),
                                                     parse_forms(flags.elsewhere), progress);
  const Json subject = lab::receipt_subject(report);
  const Json result = lab::receipt_result(report);
  flags.output.write(lab::ReceiptKind::bisect, subject, result);
  print(flags.output.json ? Json{{"subject", subject}, {"result", result}}.dump(2) + "\n"
                          : lab::to_text(report));
}

void add_bisect(CLI::App& gate) {
  auto flags = std::make_shared<BisectFlags>();
  CLI::App* command = gate.add_subcommand(
      "bisect", "Which layers and tensor sets carry the damage where a form fails a gate");
  command->add_option("gate", flags->gate, "The gate's JSON file")->required();
  flags->target.add_to(*command);
  command->add_option("--elsewhere", flags->elsewhere,
                      "op=name: the form that runs where the suspect does not; by default the reference");
  flags->output.add_to(*command);
  command->callback([flags] { gate_bisect(*flags); });
}

}  // namespace

void add_gate(CLI::App& app) {
  CLI::App* gate =
      app.add_subcommand("gate", "Judge a run against an oracle's recorded answers: PASS or FAIL");
  gate->require_subcommand(1);
  add_decision(*gate);
  add_run(*gate);
  add_sweep(*gate);
  add_bisect(*gate);
}

}  // namespace assay::cli
