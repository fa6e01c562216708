#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "cli/result_output.hpp"
#include "lab/bench_decision.hpp"
#include "lab/bench_music.hpp"
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

struct MusicArguments {
  lab::MusicBenchOptions options;
  std::string precision = "bf16";
  std::vector<std::string> forms;
  ResultOutput output;
};

void run_music_bench(MusicArguments& arguments) {
  arguments.options.precision = parse_precision(arguments.precision);
  arguments.options.forms = parse_forms(arguments.forms);
  arguments.output.check_folder();
  const lab::MusicBenchReport report =
      lab::bench_music(arguments.options, [](std::string_view line) { show_progress("bench", line); });
  arguments.output.deliver(lab::to_json(report), lab::to_table(report), [&] {
    return std::vector{
        lab::make_receipt(lab::ReceiptKind::bench, bench_subject(report), lab::to_json(report))};
  });
}

void add_music_bench(CLI::App& bench) {
  const auto arguments = std::make_shared<MusicArguments>();
  lab::MusicBenchOptions& options = arguments->options;
  CLI::App* music = bench.add_subcommand("music", "Time and memory of a song's stages, by its duration");
  std::string shapes = "The model's shape:";
  for (const std::string& name : lab::music_shape_names()) shapes += " " + name;
  music->add_option("--shape", options.shape, shapes)->capture_default_str();
  music->add_option("--seconds", options.seconds, "Of music, one song each")
      ->delimiter(',')
      ->capture_default_str();
  music->add_option("--steps", options.steps, "Of the sampler")->capture_default_str();
  music->add_option("--text-tokens", options.text_tokens, "Of the prompt")->capture_default_str();
  music->add_option("--lyric-tokens", options.lyric_tokens, "Of the lyrics")->capture_default_str();
  music->add_option("--precision", arguments->precision, "fp32 or bf16")->capture_default_str();
  music->add_option("--threads", options.threads, "Threads; 0 for one per core")->capture_default_str();
  music->add_option("--form", arguments->forms, "op=form, for this run; may be given again");
  arguments->output.add_to(*music);
  music->callback([arguments] { run_music_bench(*arguments); });
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
  add_music_bench(*bench);
}

}  // namespace assay::cli
