#include "lab/bench_decision.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "device/cpu_features.hpp"
#include "device/memory.hpp"
#include "lab/synthetic_row.hpp"
#include "lab/synthetic_weights.hpp"

namespace assay::lab {
namespace {

using formats::LayerType;
using formats::ModelConfig;

constexpr std::size_t kMaxRowTokens = 8192;
constexpr std::size_t kMaxQuestions = 255;
constexpr std::size_t kMaxRepeat = 1000;
constexpr std::uint64_t kSeed = 20;

void require_range(std::string_view flag, std::size_t value, std::size_t low, std::size_t high) {
  if (value >= low && value <= high) return;
  throw Error(ErrorKind::invalid_argument, {.where = std::string(flag),
                                            .found = std::to_string(value),
                                            .expected = fmt::format("{} to {}", low, high)});
}

void check(const DecisionBenchOptions& options) {
  for (const std::size_t rows : options.rows)
    require_range("--rows", rows, kQuestionTokens + 1, kMaxRowTokens);
  for (const std::size_t questions : options.questions)
    require_range("--questions", questions, 1, kMaxQuestions);
  require_range("--repeat", options.repeat, 1, kMaxRepeat);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::size_t count_parameters(const formats::TensorSource& weights) {
  std::size_t total = 0;
  for (const std::string& name : weights.names()) total += formats::element_count(*weights.find(name));
  return total;
}

std::vector<DecisionBenchCase> make_cases(const DecisionBenchOptions& options, const ModelConfig& config) {
  std::vector<DecisionBenchCase> cases;
  for (const std::size_t rows : options.rows) {
    for (const std::size_t questions : options.questions) {
      DecisionBenchCase bench_case;
      bench_case.row_tokens = rows;
      bench_case.questions = questions;
      bench_case.total_tokens = rows + kQuestionTokens * (questions - 1);
      bench_case.operations = count_operations(config, rows - kQuestionTokens, kQuestionTokens, questions);
      cases.push_back(std::move(bench_case));
    }
  }
  return cases;
}

void run_case(backbone::Backbone& model, DecisionBenchCase& bench_case) {
  const SyntheticRow row(model.config(), bench_case.row_tokens, bench_case.questions);
  backbone::RunOptions run;
  run.observer = &bench_case.op_times;
  const auto start = std::chrono::steady_clock::now();
  model.run(row.segments(), run);
  bench_case.seconds.push_back(seconds_since(start));
}

void run_cases(backbone::Backbone& model, const DecisionBenchOptions& options,
               std::vector<DecisionBenchCase>& cases, const std::function<void(std::string_view)>& progress) {
  for (DecisionBenchCase& bench_case : cases) {
    run_case(model, bench_case);
    progress(fmt::format("warm-up: {}, {}: {:.0f} ms", counted(bench_case.row_tokens, "token"),
                         counted(bench_case.questions, "question"), bench_case.seconds.back() * 1e3));
    bench_case.seconds.clear();
    bench_case.op_times = {};
  }
  for (std::size_t turn = 0; turn < options.repeat; ++turn) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      run_case(model, cases[turn % 2 == 0 ? i : cases.size() - 1 - i]);
    }
    progress(fmt::format("turn {} of {}", turn + 1, options.repeat));
  }
}

struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
};

Summary summarize(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t half = seconds.size() / 2;
  const double median = seconds.size() % 2 == 1 ? seconds[half] : 0.5 * (seconds[half - 1] + seconds[half]);
  return {median, seconds.front(), seconds.back()};
}

/// Op times of a case, the largest first.
std::vector<backbone::OpTimes::Entry> sorted_ops(const DecisionBenchCase& bench_case) {
  auto entries = bench_case.op_times.entries;
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return entries;
}

double total_seconds(const DecisionBenchCase& bench_case) {
  return std::accumulate(bench_case.seconds.begin(), bench_case.seconds.end(), 0.0);
}

double mib(std::size_t bytes) {
  return static_cast<double>(bytes) / (1024.0 * 1024.0);
}

double visible_pairs(double state, double question, double questions) {
  return state * (state + 1) / 2 + questions * (question * state + question * (question + 1) / 2);
}

/// Elements of a layer's product weights.
double product_elements(const ModelConfig& config, LayerType type) {
  const auto hidden = static_cast<double>(config.hidden_size);
  const double mlp = 3 * hidden * static_cast<double>(config.intermediate_size);
  if (type == LayerType::linear_attention) {
    const std::size_t in =
        config.conv_channels() + config.linear_value_size() + 2 * config.linear_value_heads;
    return mlp + hidden * static_cast<double>(in + config.linear_value_size());
  }
  const std::size_t gates = config.family == formats::Family::qwen3_5 ? 2 : 1;
  return mlp +
         hidden * static_cast<double>(((gates + 1) * config.heads + 2 * config.kv_heads) * config.head_dim);
}

nlohmann::ordered_json case_json(const DecisionBenchCase& bench_case) {
  const Summary time = summarize(bench_case.seconds);
  nlohmann::ordered_json ops = nlohmann::ordered_json::array();
  for (const auto& entry : sorted_ops(bench_case)) {
    ops.push_back({{"op", entry.op},
                   {"share", entry.seconds / total_seconds(bench_case)},
                   {"milliseconds", entry.seconds * 1e3 / static_cast<double>(bench_case.seconds.size())},
                   {"calls", entry.calls / bench_case.seconds.size()}});
  }
  nlohmann::ordered_json samples = nlohmann::ordered_json::array();
  for (const double seconds : bench_case.seconds) samples.push_back(seconds * 1e3);
  return {{"row_tokens", bench_case.row_tokens},
          {"questions", bench_case.questions},
          {"total_tokens", bench_case.total_tokens},
          {"milliseconds", {{"median", time.median * 1e3}, {"min", time.min * 1e3}, {"max", time.max * 1e3}}},
          {"tokens_per_second", static_cast<double>(bench_case.total_tokens) / time.median},
          {"tflops", bench_case.operations.total() / time.median * 1e-12},
          {"operations",
           {{"matmul", bench_case.operations.matmul},
            {"attention", bench_case.operations.attention},
            {"gated_delta_rule", bench_case.operations.gated_delta_rule},
            {"causal_conv1d", bench_case.operations.causal_conv1d}}},
          {"ops", std::move(ops)},
          {"samples_milliseconds", std::move(samples)}};
}

void append_shares(fmt::memory_buffer& out, const DecisionBenchCase& bench_case) {
  const double wall = total_seconds(bench_case);
  fmt::format_to(std::back_inserter(out), "  {:>5} x {:<3}", bench_case.row_tokens, bench_case.questions);
  double counted = 0;
  for (const auto& entry : sorted_ops(bench_case)) {
    counted += entry.seconds;
    fmt::format_to(std::back_inserter(out), " {} {:.1f}%", entry.op, 100 * entry.seconds / wall);
  }
  fmt::format_to(std::back_inserter(out), " between ops {:.1f}%\n",
                 100 * std::max(0.0, wall - counted) / wall);
}

}  // namespace

OperationCount count_operations(const ModelConfig& config, std::size_t state_tokens,
                                std::size_t question_tokens, std::size_t questions) {
  const auto tokens = static_cast<double>(state_tokens + question_tokens * questions);
  const double pairs = visible_pairs(static_cast<double>(state_tokens), static_cast<double>(question_tokens),
                                     static_cast<double>(questions));
  OperationCount count;
  for (const LayerType type : config.layers) {
    count.matmul += 2 * tokens * product_elements(config, type);
    if (type == LayerType::full_attention) {
      count.attention += 4 * pairs * static_cast<double>(config.heads * config.head_dim);
    } else {
      count.gated_delta_rule +=
          7 * tokens * static_cast<double>(config.linear_value_size() * config.linear_key_dim);
      count.causal_conv1d +=
          2 * tokens * static_cast<double>(config.conv_channels() * config.linear_conv_width);
    }
  }
  return count;
}

DecisionBenchReport bench_decision(const DecisionBenchOptions& options,
                                   const std::function<void(std::string_view)>& progress) {
  check(options);
  const ModelConfig config = shape_config(options.shape);
  const ops::Selection selection = ops::select_forms(options.precision, options.forms);
  device::ThreadPool threads(options.threads);
  DecisionBenchReport report;
  report.options = options;
  report.cpu = device::cpu_model_name();
  report.selection = ops::describe(selection);
  report.threads = threads.size();
  report.cases = make_cases(options, config);

  const auto start = std::chrono::steady_clock::now();
  const auto weights = synthetic_weights(config, kSeed);
  report.parameters = count_parameters(*weights);
  backbone::Backbone model(config, weights, selection, threads, [&](std::size_t done, std::size_t total) {
    progress(fmt::format("weights of layer {} of {}", done, total));
  });
  report.load_seconds = seconds_since(start);
  report.weight_bytes = model.weight_bytes();

  run_cases(model, options, report.cases, progress);
  report.peak_bytes = device::footprint().peak;
  return report;
}

nlohmann::ordered_json bench_subject(const DecisionBenchReport& report) {
  return {{"bench", "decision"},
          {"model", {{"shape", report.options.shape}, {"seed", kSeed}}},
          {"precision", ops::to_string(report.options.precision)},
          {"threads", report.threads},
          {"forms", report.selection},
          {"repeat", report.options.repeat}};
}

nlohmann::ordered_json to_json(const DecisionBenchReport& report) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const DecisionBenchCase& bench_case : report.cases) cases.push_back(case_json(bench_case));
  return {{"bench", "decision"},
          {"shape", report.options.shape},
          {"weights", "synthetic"},
          {"parameters", report.parameters},
          {"precision", ops::to_string(report.options.precision)},
          {"forms", report.selection},
          {"cpu", report.cpu},
          {"threads", report.threads},
          {"repeat", report.options.repeat},
          {"load_seconds", report.load_seconds},
          {"weight_bytes", report.weight_bytes},
          {"peak_bytes", report.peak_bytes},
          {"cases", std::move(cases)}};
}

std::string to_table(const DecisionBenchReport& report) {
  fmt::memory_buffer out;
  const auto write = [&](auto format, const auto&... values) {
    fmt::format_to(std::back_inserter(out), format, values...);
  };
  write(FMT_STRING("{}: {:.2f} G parameters, synthetic weights, {}, {} on {}\n"), report.options.shape,
        static_cast<double>(report.parameters) * 1e-9, ops::to_string(report.options.precision),
        counted(report.threads, "thread"), report.cpu);
  write(FMT_STRING("forms: {}\n"), report.selection);
  write(FMT_STRING("weights {:.0f} MiB, peak memory {:.0f} MiB, made and packed in {:.1f} s; timed "
                   "passes a case: {}\n\n"),
        mib(report.weight_bytes), mib(report.peak_bytes), report.load_seconds, report.options.repeat);
  write(FMT_STRING("{:>7} {:>10} {:>8} {:>12} {:>10} {:>8} {:>10} {:>9}\n"), "row", "questions", "tokens",
        "median ms", "min ms", "spread", "tokens/s", "TFLOP/s");
  for (const DecisionBenchCase& bench_case : report.cases) {
    const Summary time = summarize(bench_case.seconds);
    write(FMT_STRING("{:>7} {:>10} {:>8} {:>12.1f} {:>10.1f} {:>7.1f}% {:>10.0f} {:>9.3f}\n"),
          bench_case.row_tokens, bench_case.questions, bench_case.total_tokens, time.median * 1e3,
          time.min * 1e3, 100 * (time.max - time.min) / time.median,
          static_cast<double>(bench_case.total_tokens) / time.median,
          bench_case.operations.total() / time.median * 1e-12);
  }
  write(FMT_STRING("\nshare of wall time by op (row x questions):\n"));
  for (const DecisionBenchCase& bench_case : report.cases) append_shares(out, bench_case);
  return fmt::to_string(out);
}

}  // namespace assay::lab
