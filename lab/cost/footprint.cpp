#include "lab/cost/footprint.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "device/thread_pool.hpp"
#include "lab/cost/fresh_process.hpp"
#include "lab/json_reader.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxTokens = 65'536;
constexpr std::size_t kMaxCalls = 10'000;
constexpr const char* kChild = "footprint process";

void require_range(std::string_view flag, std::size_t value, std::size_t low, std::size_t high) {
  if (value >= low && value <= high) return;
  throw Error(ErrorKind::invalid_argument,
              {std::string(flag), fmt::format("{}", value), fmt::format("{} to {}", low, high)});
}

void check(const FootprintOptions& options) {
  require_range("--tokens", options.tokens, 2, kMaxTokens);
  require_range("--calls", options.calls, 1, kMaxCalls);
}

void check_positions(const formats::ModelConfig& config, std::size_t tokens) {
  require_range("--tokens", tokens, 2, std::min(kMaxTokens, config.max_positions));
}

/// Lengths that keep changing, the i-th of them.
std::size_t changing_length(std::size_t i, std::size_t longest) {
  // 7919 is a prime: its multiples meet every length before one comes again, unless it divides the longest.
  return 1 + i * 7919 % longest;
}

double mib(std::size_t bytes) {
  return static_cast<double>(bytes) / (1024.0 * 1024.0);
}

Json forms_json(const ops::FormOverrides& forms) {
  Json json = Json::object();
  for (const auto& [op, name] : forms) json[op] = name;
  return json;
}

}  // namespace

FootprintReport measure_footprint_here(const FootprintOptions& options) {
  check(options);
  const ops::Selection forms = ops::select_forms(options.precision, options.forms);
  FootprintReport report;
  const auto stage = [&](std::string name) { report.stages.push_back({std::move(name), process_memory()}); };
  stage("start");
  device::ThreadPool threads(options.threads);
  std::unique_ptr<backbone::Backbone> backbone;
  {
    // What only loading needs goes before the model is counted as loaded.
    MeasuredModel model = open_model(options.choice);
    check_positions(model.config, options.tokens);
    report.subject = run_subject(model.description, options.precision, threads.size(), forms);
    backbone = std::make_unique<backbone::Backbone>(model.config, model.weights, forms, threads);
  }
  report.subject["tokens"] = options.tokens;
  report.subject["calls"] = options.calls;
  stage("loaded");
  const std::vector<std::int32_t> tokens = some_tokens(backbone->config(), options.tokens);
  run_one_call(*backbone, tokens);
  stage("first use");
  for (std::size_t i = 0; i < options.calls; ++i) {
    run_one_call(*backbone, std::span(tokens).first(changing_length(i, options.tokens)));
  }
  stage("end");
  report.peak = report.stages.back().memory.peak;
  const std::size_t before = report.stages[1].memory.anonymous;
  const std::size_t after = report.stages.back().memory.anonymous;
  report.devices.push_back({"cpu", backbone->weight_bytes(), after > before ? after - before : 0});
  return report;
}

FootprintReport measure_footprint(const FootprintOptions& options) {
  check(options);
  for (const std::string& path : {options.choice.model, options.choice.base}) {
    if (!find_invalid_utf8(path)) continue;
    throw Error(ErrorKind::unsupported, {"--model, --base", in_quotes(path), "a path in UTF-8",
                                         "the fresh process is told of it in JSON; use a link"});
  }
  return read_footprint_report(run_fresh_process({"lab", "footprint-process", to_json(options).dump()}));
}

Json to_json(const FootprintOptions& options) {
  return {{"model", options.choice.model},      {"base", options.choice.base},
          {"shape", options.choice.shape},      {"precision", ops::to_string(options.precision)},
          {"forms", forms_json(options.forms)}, {"threads", options.threads},
          {"tokens", options.tokens},           {"calls", options.calls}};
}

FootprintOptions read_footprint_options(std::string_view json) {
  JsonReader reader = parse_json_text(json, kChild).root;
  FootprintOptions options;
  options.choice.model = reader.required<std::string>("model");
  options.choice.base = reader.required<std::string>("base");
  options.choice.shape = reader.required<std::string>("shape");
  const auto precision = reader.required<std::string>("precision");
  options.precision = precision == "fp32" ? ops::Precision::fp32 : ops::Precision::bf16;
  if (precision != ops::to_string(options.precision)) {
    throw Error(ErrorKind::malformed, {reader.where("precision"), precision, "fp32 or bf16"});
  }
  for (const auto& [op, name] : reader.required<std::map<std::string, std::string>>("forms")) {
    options.forms.emplace(op, name);
  }
  options.threads = reader.required<std::uint64_t>("threads");
  options.tokens = reader.required<std::uint64_t>("tokens");
  options.calls = reader.required<std::uint64_t>("calls");
  reader.finish();
  return options;
}

FootprintReport read_footprint_report(std::string_view json) {
  const Json document = Json::parse(json, nullptr, false);
  if (!document.is_object()) {
    throw Error(ErrorKind::malformed, {kChild, "an answer that is no JSON object"});
  }
  JsonReader reader(JsonPlace(std::make_shared<nlohmann::json>(document), kChild, ""));
  FootprintReport report;
  reader.required<JsonReader>("subject");
  report.subject = document["subject"];
  auto result = reader.required<JsonReader>("result");
  reader.finish();
  auto process = result.required<JsonReader>("process");
  report.peak = process.required<std::uint64_t>("peak");
  const Json& stages = document["result"]["process"]["stages"];
  for (JsonReader& stage : process.required<std::vector<JsonReader>>("stages")) {
    const std::size_t index = report.stages.size();
    report.stages.push_back(
        {stage.required<std::string>("stage"), read_process_memory(stages[index], stage.where())});
  }
  process.finish();
  for (JsonReader& device : result.required<std::vector<JsonReader>>("devices")) {
    DeviceFootprint footprint;
    footprint.device = device.required<std::string>("device");
    footprint.weight_bytes = device.required<std::uint64_t>("weight_bytes");
    footprint.scratch_bytes = device.required<std::uint64_t>("scratch_bytes");
    device.finish();
    report.devices.push_back(std::move(footprint));
  }
  result.finish();
  return report;
}

Json to_json(const FootprintReport& report) {
  Json stages = Json::array();
  for (const FootprintStage& stage : report.stages) {
    Json row{{"stage", stage.name}};
    row.update(to_json(stage.memory));
    stages.push_back(std::move(row));
  }
  Json devices = Json::array();
  for (const DeviceFootprint& device : report.devices) {
    devices.push_back({{"device", device.device},
                       {"weight_bytes", device.weight_bytes},
                       {"scratch_bytes", device.scratch_bytes}});
  }
  return {{"process", {{"stages", std::move(stages)}, {"peak", report.peak}}},
          {"devices", std::move(devices)}};
}

std::string to_table(const FootprintReport& report) {
  fmt::memory_buffer out;
  const auto line = std::back_inserter(out);
  fmt::format_to(line, "{}\n\n{:<10} {:>12} {:>12} {:>12} {:>12} {:>10} {:>12}\n", report.subject.dump(),
                 "MiB", "resident", "pss", "anonymous", "file-mapped", "swapped", "peak");
  for (const FootprintStage& stage : report.stages) {
    fmt::format_to(line, "{:<10} {:>12.1f} {:>12.1f} {:>12.1f} {:>12.1f} {:>10.1f} {:>12.1f}\n", stage.name,
                   mib(stage.memory.resident), mib(stage.memory.proportional), mib(stage.memory.anonymous),
                   mib(stage.memory.file_mapped), mib(stage.memory.swapped), mib(stage.memory.peak));
  }
  for (const DeviceFootprint& device : report.devices) {
    fmt::format_to(line, "\n{}: weights {:.1f} MiB, kept by the calls {:.1f} MiB\n", device.device,
                   mib(device.weight_bytes), mib(device.scratch_bytes));
  }
  return fmt::to_string(out);
}

GrowthReport measure_model_growth(const FootprintOptions& options, const GrowthOptions& growth,
                                  Json& subject) {
  growth_lengths(growth);  // Options out of range are found before the model is loaded.
  const ops::Selection forms = ops::select_forms(options.precision, options.forms);
  const MeasuredModel model = open_model(options.choice);
  check_positions(model.config, growth.longest);
  device::ThreadPool threads(options.threads);
  backbone::Backbone backbone(model.config, model.weights, forms, threads);
  subject = run_subject(model.description, options.precision, threads.size(), forms);
  const std::vector<std::int32_t> tokens = some_tokens(model.config, growth.longest);
  const HeldBytes held;
  return measure_growth(
      growth, [&](std::size_t length) { run_one_call(backbone, std::span(tokens).first(length)); },
      [&] { return held(); });
}

}  // namespace assay::lab
