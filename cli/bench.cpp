#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "cli/result_output.hpp"
#include "lab/bench_decision.hpp"
#include "lab/receipt/receipt.hpp"
#include "lab/synthetic_weights.hpp"

namespace assay::cli {
namespace {

struct Arguments {
  lab::DecisionBenchOptions options;
  std::string precision = "bf16";
  std::vector<std::string> forms;
  ResultOutput output;
};

std::string shapes_help() {
  std::string help = "The model's shape:";
  for (const std::string& name : lab::shape_names()) help += " " + name;
  return help;
}

void run_decision(Arguments& arguments) {
  arguments.options.precision = parse_precision(arguments.precision);
  arguments.options.forms = parse_forms(arguments.forms);
  arguments.output.check_folder();
  const lab::DecisionBenchReport report =
      lab::bench_decision(arguments.options, [](std::string_view line) { show_progress("bench", line); });
  arguments.output.deliver(lab::to_json(report), lab::to_table(report), [&] {
    return std::vector{
        lab::make_receipt(lab::ReceiptKind::bench, bench_subject(report), lab::to_json(report))};
  });
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure a run on synthetic weights of a real model's shape");
  bench->require_subcommand(1);
  CLI::App* decision =
      bench->add_subcommand("decision", "Time, memory and share of each op of decision passes");
  const auto arguments = std::make_shared<Arguments>();
  decision->add_option("--shape", arguments->options.shape, shapes_help())->capture_default_str();
  decision
      ->add_option("--rows", arguments->options.rows, "Tokens of a row: state and one question of 32 tokens")
      ->delimiter(',')
      ->capture_default_str();
  decision
      ->add_option("--questions", arguments->options.questions, "Questions asked of the state in one pass")
      ->delimiter(',')
      ->capture_default_str();
  decision->add_option("--precision", arguments->precision, "fp32 or bf16")->capture_default_str();
  decision->add_option("--threads", arguments->options.threads, "Threads; 0 for one per core")
      ->capture_default_str();
  decision->add_option("--form", arguments->forms, "op=form, for this run; may be given again");
  decision->add_option("--repeat", arguments->options.repeat, "Timed passes of each case")
      ->capture_default_str();
  arguments->output.add_to(*decision);
  decision->callback([arguments] { run_decision(*arguments); });
}

}  // namespace assay::cli
