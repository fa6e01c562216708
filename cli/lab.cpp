#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/result_output.hpp"
#include "lab/cost/call_cost.hpp"
#include "lab/cost/ceilings.hpp"
#include "lab/cost/footprint.hpp"
#include "lab/cost/profile.hpp"
#include "lab/receipt/receipt.hpp"
#include "lab/synthetic_weights.hpp"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLargestRequest = std::size_t{64} << 20;

void show_line(std::string_view line) {
  show_progress("lab", line);
}

/// Where a measurement goes.
struct Output : ResultOutput {
  void report(lab::ReceiptKind kind, Json subject, const Json& result, const std::string& table) const {
    deliver(result, table, [&] { return std::vector{lab::make_receipt(kind, std::move(subject), result)}; });
  }
};

/// Which weights, in what precision and forms, on how many threads.
struct Run {
  lab::ModelChoice choice;
  std::string precision = "bf16";
  std::vector<std::string> forms;
  std::size_t threads = 0;

  void add_to(CLI::App& command) {
    std::string shapes = "Synthetic weights of this shape instead:";
    for (const std::string& name : lab::shape_names()) shapes += " " + name;
    command.add_option("--model", choice.model,
                       "Run directory of a Kev checkpoint, its Hub id, or a GGUF file");
    command.add_option("--base", choice.base,
                       "Base model directory, where the run's own reference is not to be followed");
    command.add_option("--shape", choice.shape, shapes);
    command.add_option("--precision", precision, "Of the matrix products: fp32 or bf16")
        ->capture_default_str();
    command.add_option("--threads", threads, "Threads to use; 0 is one a core")->capture_default_str();
  }
  void add_forms_to(CLI::App& command) {
    command.add_option("--form", forms, "op=name: run this form of an op (see `assay forms`); repeatable");
  }
};

struct CeilingsArguments {
  lab::CeilingsOptions options;
  Output output;
};

void run_ceilings(const CeilingsArguments& arguments) {
  arguments.output.check_folder();
  const lab::Ceilings ceilings = lab::measure_ceilings(arguments.options, show_line);
  arguments.output.report(lab::ReceiptKind::ceilings, ceilings_subject(ceilings, arguments.options),
                          to_json(ceilings), to_table(ceilings));
}

void add_ceilings(CLI::App& lab) {
  const auto arguments = std::make_shared<CeilingsArguments>();
  CLI::App* command = lab.add_subcommand(
      "ceilings", "Measure what this machine can do at best: arithmetic by type, bandwidth by working set");
  command
      ->add_option("--threads", arguments->options.threads, "Measure 1 to this many; 0 is up to one a core")
      ->capture_default_str();
  command->add_option("--repetitions", arguments->options.repetitions, "Of every measurement")
      ->capture_default_str();
  arguments->output.add_to(*command);
  command->callback([arguments] { run_ceilings(*arguments); });
}

struct CallCostArguments {
  Run run;
  lab::CallCostOptions options;
  std::vector<std::string> curves;
  std::string plot;
  Output output;
};

/// "default" or "op=name,op=name".
ops::FormOverrides parse_curve(const std::string& text) {
  if (text == "default") return {};
  return parse_forms(CLI::detail::split(text, ','));
}

void write_plot(const std::string& file, const lab::CallCostReport& report) {
  write_file_atomically(
      file, std::filesystem::path(file).extension() == ".html" ? lab::to_html(report) : lab::to_svg(report));
}

void run_call_cost(CallCostArguments& arguments) {
  const std::string extension = std::filesystem::path(arguments.plot).extension();
  if (!arguments.plot.empty() && extension != ".svg" && extension != ".html") {
    throw Error(ErrorKind::invalid_argument,
                {"--plot", arguments.plot, "a file name that ends in .svg or .html"});
  }
  arguments.options.precision = parse_precision(arguments.run.precision);
  arguments.options.threads = arguments.run.threads;
  if (!arguments.curves.empty()) arguments.options.curves.clear();
  for (const std::string& curve : arguments.curves) arguments.options.curves.push_back(parse_curve(curve));
  arguments.output.check_folder();
  const lab::CallCostReport report =
      lab::measure_call_cost(arguments.run.choice, arguments.options, show_line);
  if (!arguments.plot.empty()) write_plot(arguments.plot, report);
  arguments.output.report(lab::ReceiptKind::call_cost, call_cost_subject(report), to_json(report),
                          to_table(report));
}

void add_call_cost(CLI::App& lab) {
  const auto arguments = std::make_shared<CallCostArguments>();
  CLI::App* command =
      lab.add_subcommand("call-cost", "Time one call over its tokens and fit what a call and a token cost");
  arguments->run.add_to(*command);
  command
      ->add_option("--forms", arguments->curves,
                   "op=name,…: a curve with these forms, `default` for none; repeatable, measured together")
      ->allow_extra_args(false);
  command->add_option("--lengths", arguments->options.lengths, "Tokens of the calls")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--rounds", arguments->options.rounds, "Timed calls of every length")
      ->capture_default_str();
  command->add_option("--plot", arguments->plot, "Write a drawing to this .svg or .html file");
  arguments->output.add_to(*command);
  command->callback([arguments] { run_call_cost(*arguments); });
}

struct FootprintArguments {
  Run run;
  lab::FootprintOptions options;
  lab::GrowthOptions growth;
  bool watch_growth = false;
  std::optional<std::size_t> calls;
  Output output;
};

void run_growth(FootprintArguments& arguments) {
  arguments.growth.longest = arguments.options.tokens;
  arguments.growth.calls = arguments.calls.value_or(arguments.growth.calls);
  Json subject;
  const lab::GrowthReport report = lab::measure_model_growth(arguments.options, arguments.growth, subject);
  arguments.output.report(lab::ReceiptKind::growth, std::move(subject), to_json(report), to_table(report));
  if (report.analysis.verdict != lab::GrowthVerdict::not_growing) throw CLI::RuntimeError(1);
}

void run_footprint(FootprintArguments& arguments) {
  arguments.options.choice = arguments.run.choice;
  arguments.options.precision = parse_precision(arguments.run.precision);
  arguments.options.forms = parse_forms(arguments.run.forms);
  arguments.options.threads = arguments.run.threads;
  arguments.output.check_folder();
  if (arguments.watch_growth) return run_growth(arguments);
  arguments.options.calls = arguments.calls.value_or(arguments.options.calls);
  const lab::FootprintReport report = lab::measure_footprint(arguments.options);
  arguments.output.report(lab::ReceiptKind::footprint, report.subject, to_json(report), to_table(report));
}

void add_footprint(CLI::App& lab) {
  const auto arguments = std::make_shared<FootprintArguments>();
  CLI::App* command = lab.add_subcommand(
      "footprint", "Bytes that a model takes: loaded, after first use, at the end, and at the most");
  arguments->run.add_to(*command);
  arguments->run.add_forms_to(*command);
  command->add_option("--tokens", arguments->options.tokens, "Of the longest call")->capture_default_str();
  command->add_option("--calls", arguments->calls, "Calls after the first: 8, or 200 measured for --growth");
  command->add_flag(
      "--growth", arguments->watch_growth,
      "Instead: does the process keep growing while call lengths keep changing? Status 1 unless "
      "it does not");
  command->add_option("--shortest", arguments->growth.shortest, "Tokens of --growth's shortest call")
      ->capture_default_str();
  command->add_option("--threshold", arguments->growth.threshold, "Bytes a call that --growth lets pass")
      ->capture_default_str();
  command->add_option("--seed", arguments->growth.seed, "Of the order of --growth's lengths")
      ->capture_default_str();
  arguments->output.add_to(*command);
  command->callback([arguments] { run_footprint(*arguments); });
}

/// The process that `footprint` measures. Not for people: it is in no help.
void add_footprint_process(CLI::App& lab) {
  const auto options = std::make_shared<std::string>();
  CLI::App* command = lab.add_subcommand("footprint-process", "")->group("");
  command->add_option("options", *options)->required();
  command->callback([options] {
    const lab::FootprintReport report = measure_footprint_here(lab::read_footprint_options(*options));
    print(Json{{"subject", report.subject}, {"result", to_json(report)}}.dump());
  });
}

struct ProfileArguments {
  Run run;
  lab::ProfileOptions options;
  std::string request;
  std::string ceilings;
  std::string trace;
  Output output;
};

void run_profile(ProfileArguments& arguments) {
  lab::ProfileOptions& options = arguments.options;
  options.choice = arguments.run.choice;
  options.precision = parse_precision(arguments.run.precision);
  options.forms = parse_forms(arguments.run.forms);
  options.threads = arguments.run.threads;
  if (!arguments.request.empty()) {
    options.request = read_text_file(arguments.request, kLargestRequest);
    options.request_name = arguments.request;
  }
  arguments.output.check_folder();
  lab::Ceilings ceilings;
  std::string source = "measured before";
  if (arguments.ceilings.empty()) {
    lab::CeilingsOptions measure;
    measure.threads = options.threads;
    measure.only = true;
    ceilings = lab::measure_ceilings(measure, show_line);
  } else {
    const lab::Receipt receipt = lab::read_receipt(arguments.ceilings);
    ceilings = lab::read_ceilings(receipt);
    source = receipt.sha256;
  }
  lab::ProfileReport report = lab::measure_profile(options, ceilings, show_line);
  report.subject["ceilings"] = source;
  if (!arguments.trace.empty()) {
    write_file_atomically(arguments.trace, to_chrome_trace(report).dump() + "\n");
  }
  arguments.output.report(lab::ReceiptKind::profile, report.subject, to_json(report), to_table(report));
}

void add_profile(CLI::App& lab) {
  const auto arguments = std::make_shared<ProfileArguments>();
  CLI::App* command = lab.add_subcommand(
      "profile", "Wall time by op, form and shape, each against the least that this machine would need");
  arguments->run.add_to(*command);
  arguments->run.add_forms_to(*command);
  command->add_option("--request", arguments->request, "Profile this decision request, a JSON file");
  command->add_option("--tokens", arguments->options.tokens, "Else: a call of so many tokens")
      ->capture_default_str();
  command->add_option("--passes", arguments->options.passes, "Timed passes")->capture_default_str();
  command->add_option("--ceilings", arguments->ceilings,
                      "A receipt of `assay lab ceilings`; without one they are measured first");
  command->add_option("--trace", arguments->trace, "Write the passes as a Chrome trace to this JSON file");
  arguments->output.add_to(*command);
  command->callback([arguments] { run_profile(*arguments); });
}

}  // namespace

void add_lab(CLI::App& app) {
  CLI::App* lab = app.add_subcommand("lab", "Measure what the machine can do and what a model costs on it");
  lab->require_subcommand(1);
  add_ceilings(*lab);
  add_call_cost(*lab);
  add_footprint(*lab);
  add_footprint_process(*lab);
  add_profile(*lab);
  add_select(*lab);
  add_report(*lab);
}

}  // namespace assay::cli
