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
#include "base/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/decision_options.hpp"
#include "cli/embedded_model.hpp"
#include "cli/result_output.hpp"
#include "cli/table.hpp"
#include "lab/decision_fixture.hpp"
#include "lab/gate/bisect.hpp"
#include "lab/gate/decision_subject.hpp"
#include "lab/gate/execute.hpp"
#include "lab/gate/run_gate.hpp"
#include "lab/gate/sweep.hpp"
#include "lab/receipt/receipt.hpp"
#include "lab/window/signals.hpp"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

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

Json receipt_of(const lab::GateReport& report) {
  return lab::make_receipt(lab::ReceiptKind::gate, lab::receipt_subject(report), lab::receipt_result(report));
}

/// Prints reports and writes their receipts; one that fails is the command's failure.
void deliver(const std::vector<lab::GateReport>& reports, const ResultOutput& output) {
  bool pass = true;
  Json documents = Json::array();
  std::string text;
  for (const lab::GateReport& report : reports) {
    documents.push_back(lab::to_json(report));
    text += (text.empty() ? "" : "\n") + lab::to_text(report);
    pass = pass && report.pass();
  }
  const Json& document = documents.size() == 1 ? documents.front() : documents;
  output.deliver(document, text, [&] {
    std::vector<Json> receipts;
    for (const lab::GateReport& report : reports) receipts.push_back(receipt_of(report));
    return receipts;
  });
  if (!pass) throw CLI::RuntimeError(1);
}

struct DecisionFlags {
  DecisionModelFlags model;
  std::string fixture;
  bool red = false;
  ResultOutput output;
};

void gate_decision(const DecisionFlags& flags) {
  const lab::DecisionFixture fixture = lab::read_decision_fixture(flags.fixture);
  flags.output.check_folder();
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

struct MusicGateFlags {
  TargetFlags target;
  bool red = false;
  ResultOutput output;
};

void gate_music(const MusicGateFlags& flags) {
  lab::GateTarget target = flags.target.target();
  const ops::Precision precision = target.precision.value_or(ops::Precision::fp32);
  flags.output.check_folder();
  if (flags.target.model.empty()) target.model = embedded_music_model();
  deliver(lab::execute_gate(lab::default_music_gate(precision, flags.red), target), flags.output);
}

void add_music_gate(CLI::App& gate) {
  auto flags = std::make_shared<MusicGateFlags>();
  CLI::App* command = gate.add_subcommand(
      "music", "Songs of a music model, stage by stage; exit status 0 for PASS, 1 for FAIL");
  command->add_option(
      "--model", flags->target.model,
      "An ACE-Step checkpoint, in either layout; by default the small one that comes with the program");
  command->add_option("--fixture", flags->target.fixtures, "The oracle's recorded songs; repeatable")
      ->required();
  command->add_option("--precision", flags->target.precision, "fp32 (the default) or bf16");
  command->add_option("--form", flags->target.forms,
                      "op=name: run this form of an op (see `assay forms`); repeatable");
  command->add_option("--threads", flags->target.threads, "Threads to use; 0 is one a core")
      ->capture_default_str();
  command->add_flag("--red", flags->red, "Also run the red arms, each of which the gate must fail");
  flags->output.add_to(*command);
  command->callback([flags] { gate_music(*flags); });
}

struct RunFlags {
  std::string gate;
  TargetFlags target;
  ResultOutput output;
};

void add_run(CLI::App& gate) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      gate.add_subcommand("run", "A gate from its file, red arms too; exit status 0 for PASS, 1 for FAIL");
  command->add_option("gate", flags->gate, "The gate's JSON file")->required();
  flags->target.add_to(*command);
  flags->output.add_to(*command);
  command->callback([flags] {
    const lab::GateFile file = lab::read_gate_file(flags->gate);
    flags->output.check_folder();
    deliver(lab::execute_gate(file, flags->target.target()), flags->output);
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
  ResultOutput output;
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
  if (!report.whole()) return text + "INCOMPLETE: " + lab::rows_done(report) + "\n";
  return text + (report.pass() ? "PASS\n" : "FAIL\n");
}

Json sweep_document(const lab::SweepReport& report) {
  Json document{{"subject", lab::receipt_subject(report)}, {"result", lab::receipt_result(report)}};
  if (!report.whole()) document["incomplete"] = lab::rows_done(report);
  return document;
}

void write_sweep(const std::filesystem::path& folder, const lab::SweepReport& report) {
  write_file_atomically(folder / "sweep.txt", sweep_text(report));
  write_file_atomically(folder / "sweep.json", sweep_document(report).dump(1) + "\n");
  write_file_atomically(folder / "sweep.html", lab::to_html(report));
}

/// Says how far the sweep is, writes each row's receipt when the row is done, and ends the sweep early where
/// a signal asks for that or a receipt cannot be written: what is done is not lost either way.
class SweepWatch {
 public:
  explicit SweepWatch(const ResultOutput& output) : output_(output) {}

  bool stop() const { return signals_.requested() || failed_.has_value(); }

  void row_done(lab::SweepRow& row, std::size_t number, std::size_t rows) {
    const std::string what = row.report ? row.report->pass() ? "PASS" : "FAIL" : "not run: " + row.not_run;
    const std::string on = row.fixture.empty() ? "" : " on " + row.fixture;
    fmt::print(stderr, "sweep: row {} of {}: {}{}, {}, {}: {}\n", number, rows, printable(row.gate),
               printable(on), row.precision, printable(row.form), printable(what));
    if (!row.report) return;
    try {
      if (!output_.receipts.empty()) row.receipt_sha256 = output_.write(receipt_of(*row.report));
    } catch (const Error& error) {
      failed_ = error;
    }
  }

  /// To be called when what was done has been delivered. Throws where the sweep is not whole.
  void finish(const lab::SweepReport& report) const {
    if (failed_) throw *failed_;
    if (report.whole()) return;
    throw Error(ErrorKind::cancelled,
                {.where = "sweep", .found = "stopped by a signal; " + lab::rows_done(report)});
  }

 private:
  const ResultOutput& output_;
  const lab::StopSignals signals_;
  std::optional<Error> failed_;
};

void gate_sweep(const SweepFlags& flags) {
  lab::SweepPlan plan{.pairs = pairs(flags), .vary = flags.vary, .threads = flags.threads};
  for (const std::string& gate : flags.gates) plan.gates.push_back(lab::read_gate_file(gate));
  for (const std::string& precision : flags.precisions) plan.precisions.push_back(parse_precision(precision));
  if (!flags.base.empty()) plan.base = flags.base;
  flags.output.check_folder();
  if (!flags.out.empty()) make_directories(flags.out);
  SweepWatch watch(flags.output);
  plan.stop = [&] { return watch.stop(); };
  const lab::SweepReport report = lab::sweep(
      plan,
      [&](lab::SweepRow& row, std::size_t number, std::size_t rows) { watch.row_done(row, number, rows); });
  if (!flags.out.empty()) write_sweep(flags.out, report);
  flags.output.deliver(sweep_document(report), sweep_text(report), [&] {
    std::vector<Json> receipts;  // a sweep that was cut short is no evidence; its rows are
    if (report.whole()) {
      receipts.push_back(lab::make_receipt(lab::ReceiptKind::sweep, lab::receipt_subject(report),
                                           lab::receipt_result(report)));
    }
    return receipts;
  });
  watch.finish(report);
  if (!report.pass()) throw CLI::RuntimeError(1);
}

void add_sweep(CLI::App& gate) {
  auto flags = std::make_shared<SweepFlags>();
  CLI::App* command = gate.add_subcommand(
      "sweep",
      "Gates over every form of an op, precision and fixture, as one table; exit status 1 if any fails");
  command->add_option("gates", flags->gates, "Gates' JSON files")->required();
  command->add_option("--model", flags->models,
                      "Run directory, Hub id, GGUF file or ACE-Step checkpoint; one, or one a fixture");
  command->add_option("--fixture", flags->fixtures,
                      "An oracle's recorded answers, taps or songs; repeatable");
  command->add_option("--base", flags->base, "Base model directory for every decision model");
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
  ResultOutput output;
};

void gate_bisect(const BisectFlags& flags) {
  std::size_t runs = 0;
  const auto progress = [&](const lab::BisectTrial& trial) {
    fmt::print(stderr, "run {}: {}\n", ++runs, trial.pass ? "PASS" : "FAIL");
  };
  const lab::GateFile file = lab::read_gate_file(flags.gate);
  flags.output.check_folder();
  const lab::BisectReport report =
      lab::bisect_forms(file, flags.target.target(), parse_forms(flags.elsewhere), progress);
  const Json subject = lab::receipt_subject(report);
  const Json result = lab::receipt_result(report);
  flags.output.deliver({{"subject", subject}, {"result", result}}, lab::to_text(report), [&] {
    return std::vector{lab::make_receipt(lab::ReceiptKind::bisect, subject, result)};
  });
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
  add_music_gate(*gate);
  add_run(*gate);
  add_sweep(*gate);
  add_bisect(*gate);
}

}  // namespace assay::cli
