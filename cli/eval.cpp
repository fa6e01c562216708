#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/decision_options.hpp"
#include "lab/evaluation.hpp"

namespace assay::cli {
namespace {

struct EvalFlags {
  DecisionModelFlags model;
  std::string suite;
  std::size_t confusions = 10;
  bool json = false;
};

/// Requests that are answered in one go: enough to fill a pass of a small model.
constexpr std::size_t kTogether = 32;

void evaluate(const EvalFlags& flags) {
  const std::vector<lab::SuiteRecord> records = lab::read_suite(flags.suite);
  const auto model = flags.model.load(0);
  lab::Evaluator evaluator;
  for (std::size_t first = 0; first < records.size(); first += kTogether) {
    const std::size_t count = std::min(kTogether, records.size() - first);
    std::vector<decision::Request> requests;
    for (std::size_t i = 0; i < count; ++i) requests.push_back(records[first + i].request);
    const auto decisions = model->decide(requests);
    for (std::size_t i = 0; i < count; ++i) evaluator.add(records[first + i], decisions[i]);
    show_progress("eval", fmt::format("{} of {}", first + count, records.size()));
  }
  const lab::Evaluation evaluation = evaluator.result();
  print(flags.json ? lab::to_json(evaluation).dump(2) + "\n" : lab::to_text(evaluation, flags.confusions));
}

}  // namespace

void add_eval(CLI::App& app) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* command =
      app.add_subcommand("eval", "Accuracy, score error and calibration of a model on a suite of questions");
  flags->model.add_to(*command, false);
  command->add_option("--suite", flags->suite, "File of questions with the answers that they should get")
      ->required();
  command->add_option("--confusions", flags->confusions, "How many confusions to list")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print the figures as JSON");
  command->callback([flags] { evaluate(*flags); });
}

}  // namespace assay::cli
