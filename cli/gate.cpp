#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/decision_options.hpp"
#include "lab/decision_fixture.hpp"
#include "lab/decision_gate.hpp"

namespace assay::cli {
namespace {

struct DecisionGateFlags {
  DecisionModelFlags model;
  std::string fixture;
  bool red = false;
  bool json = false;
};

void gate_decision(const DecisionGateFlags& flags) {
  const lab::DecisionFixture fixture = lab::read_decision_fixture(flags.fixture);
  const auto model = flags.model.load(0);
  const lab::DecisionBar bar = lab::default_bar(model->precision());
  const lab::DecisionGateReport report = lab::run_decision_gate(*model, fixture, bar, flags.red);
  print(flags.json ? lab::to_json(report).dump(2) + "\n" : lab::to_text(report));
  if (!report.pass()) throw CLI::RuntimeError(1);
}

}  // namespace

void add_gate(CLI::App& app) {
  CLI::App* gate =
      app.add_subcommand("gate", "Judge a run against an oracle's recorded answers: PASS or FAIL");
  gate->require_subcommand(1);
  auto flags = std::make_shared<DecisionGateFlags>();
  CLI::App* command =
      gate->add_subcommand("decision", "Answers of a decision model; exit status 0 for PASS, 1 for FAIL");
  flags->model.add_to(*command);
  command->add_option("--fixture", flags->fixture, "The oracle's recorded answers")->required();
  command->add_flag("--red", flags->red, "Also run the red arms, each of which the gate must fail");
  command->add_flag("--json", flags->json, "Print the report as JSON");
  command->callback([flags] { gate_decision(*flags); });
}

}  // namespace assay::cli
