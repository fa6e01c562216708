#include "lab/window/plan.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "base/utf8.hpp"
#include "device/cpu_features.hpp"
#include "lab/json_reader.hpp"
#include "lab/synthetic_row.hpp"
#include "lab/synthetic_weights.hpp"
#include "lab/window/op_work.hpp"
#include "lab/window/order.hpp"

namespace assay::lab {
namespace {

constexpr std::string_view kSchema = "assay.window-plan/1";
constexpr std::size_t kLargestPlan = std::size_t{1} << 20;
constexpr std::size_t kMostSamples = 100'000;
constexpr std::size_t kMostRowTokens = 8192;
constexpr std::size_t kMostQuestions = 255;
constexpr std::size_t kMostThreads = 1024;

[[noreturn]] void refuse_plan(std::string where, std::string found, std::string expected,
                              std::string advice = {}) {
  throw Error(ErrorKind::invalid_argument, {.where = std::move(where),
                                            .found = std::move(found),
                                            .expected = std::move(expected),
                                            .advice = std::move(advice)});
}

std::size_t read_count(JsonReader& reader, const char* name, std::size_t otherwise, std::size_t low,
                       std::size_t high) {
  const std::size_t value = reader.optional<std::uint64_t>(name).value_or(otherwise);
  if (value < low || value > high) {
    refuse_plan(reader.where(name), std::to_string(value), fmt::format("{} to {}", low, high));
  }
  return value;
}

double read_number(JsonReader& reader, const char* name, double otherwise, double low, double high) {
  const double value = reader.optional<double>(name).value_or(otherwise);
  if (!(value >= low && value <= high)) {
    refuse_plan(reader.where(name), fmt::format("{:g}", value), fmt::format("{:g} to {:g}", low, high));
  }
  return value;
}

std::string read_name(JsonReader& reader, const char* name) {
  auto value = reader.required<std::string>(name);
  if (value.empty() || value.size() > 100 || value.find_first_of("\n\t") != std::string::npos) {
    refuse_plan(reader.where(name), in_quotes(value), "a name of 1 to 100 characters on one line");
  }
  return value;
}

template <class Named>
void refuse_same_names(const std::vector<Named>& list, const std::string& where) {
  std::set<std::string> names;
  for (const Named& entry : list) {
    if (!names.insert(entry.name).second) {
      refuse_plan(where, "two of the name " + in_quotes(entry.name), "different names");
    }
  }
}

/// Paths stand in a plan relative to its folder, so that a plan means the same from wherever it is run.
std::filesystem::path read_path(JsonReader& reader, const char* name, const std::filesystem::path& folder) {
  const auto text = reader.required<std::string>(name);
  if (text.empty()) refuse_plan(reader.where(name), "\"\"", "a path");
  const std::filesystem::path path(text);
  std::filesystem::path full = path.is_absolute() ? path : (folder / path).lexically_normal();
  if (!path_exists(full)) {
    throw Error(ErrorKind::missing, {.where = reader.where(name), .found = "nothing at " + full.string()});
  }
  return full;
}

void read_op(JsonReader& reader, WindowItem& item) {
  item.op = reader.required<std::string>("op");
  for (const auto& [name, value] : reader.required<std::map<std::string, std::uint64_t>>("sizes")) {
    item.sizes[name] = value;
  }
  check_op(item.op, item.sizes, reader.where("sizes"));
}

void read_shape(JsonReader& reader, WindowItem& item) {
  item.shape = reader.required<std::string>("shape");
  shape_config(item.shape);
  item.row_tokens = read_count(reader, "row_tokens", 0, kQuestionTokens + 1, kMostRowTokens);
  item.questions = read_count(reader, "questions", 1, 1, kMostQuestions);
}

WindowItem read_item(JsonReader reader, const std::filesystem::path& folder) {
  WindowItem item;
  item.name = read_name(reader, "name");
  const int kinds =
      (reader.has("model") ? 1 : 0) + (reader.has("shape") ? 1 : 0) + (reader.has("op") ? 1 : 0);
  if (kinds != 1) {
    refuse_plan(reader.where(), fmt::format("{} of 'model', 'shape' and 'op'", kinds), "exactly one of them");
  }
  if (reader.has("op")) {
    read_op(reader, item);
  } else if (reader.has("shape")) {
    read_shape(reader, item);
  } else {
    item.model = read_path(reader, "model", folder);
    if (reader.has("base")) item.base = read_path(reader, "base", folder);
    item.request = read_path(reader, "request", folder);
  }
  item.settling_runs = read_count(reader, "settling_runs", item.op.empty() ? 0 : 1, 0, 1000);
  item.calls = read_count(reader, "calls", 1, 1, 1'000'000);
  reader.finish();
  return item;
}

ops::Precision read_precision(JsonReader& reader) {
  const std::string text = reader.optional<std::string>("precision").value_or("bf16");
  for (const ops::Precision precision : {ops::Precision::fp32, ops::Precision::bf16}) {
    if (text == ops::to_string(precision)) return precision;
  }
  refuse_plan(reader.where("precision"), in_quotes(text), "fp32 or bf16");
}

WindowForm read_form(JsonReader reader) {
  WindowForm form;
  form.name = read_name(reader, "name");
  form.precision = read_precision(reader);
  for (const auto& [op, name] : reader.optional<std::map<std::string, std::string>>("ops").value_or(
           std::map<std::string, std::string>{})) {
    form.forms[op] = name;
  }
  form.threads = read_count(reader, "threads", 0, 0, kMostThreads);
  form.call_tokens = read_count(reader, "call_tokens", form.call_tokens, 1, 1u << 20);
  reader.finish();
  try {
    ops::select_forms(form.precision, form.forms);
  } catch (const Error& error) {
    Error::Parts parts = error.parts();
    parts.where = reader.where() + ", " + parts.where;
    throw Error(error.kind(), std::move(parts));
  }
  return form;
}

/// Limits and rule can be tightened, not loosened: what others read as "clean" and "faster" has to mean the
/// same in every receipt.
EnvironmentLimits read_limits(JsonReader reader) {
  EnvironmentLimits limits;
  limits.other_cpu = read_number(reader, "other_cpu", limits.other_cpu, 0, limits.other_cpu);
  limits.other_cpu_second =
      read_number(reader, "other_cpu_second", limits.other_cpu_second, 0, limits.other_cpu_second);
  limits.load_per_core = read_number(reader, "load_per_core", limits.load_per_core, 0, limits.load_per_core);
  limits.steal = read_number(reader, "steal", limits.steal, 0, limits.steal);
  limits.available_memory_bytes = read_count(reader, "available_memory_bytes", limits.available_memory_bytes,
                                             limits.available_memory_bytes, std::size_t{1} << 50);
  reader.finish();
  return limits;
}

PairRule read_rule(JsonReader reader) {
  PairRule rule;
  rule.confidence = read_number(reader, "confidence", rule.confidence, rule.confidence, 0.9999);
  rule.min_wins = read_number(reader, "min_wins", rule.min_wins, rule.min_wins, 1);
  rule.min_ratio = read_number(reader, "min_ratio", rule.min_ratio, rule.min_ratio, 100);
  rule.min_pairs = read_count(reader, "min_pairs", rule.min_pairs, rule.min_pairs, kMostSamples);
  rule.suspicious_ratio =
      read_number(reader, "suspicious_ratio", rule.suspicious_ratio, 1, rule.suspicious_ratio);
  rule.resamples = read_count(reader, "resamples", rule.resamples, 100, 1'000'000);
  rule.seed = reader.optional<std::uint64_t>("seed").value_or(rule.seed);
  reader.finish();
  return rule;
}

StatedCeilings read_ceilings(JsonReader reader, const std::filesystem::path& folder) {
  if (reader.has("receipt")) {
    const std::filesystem::path file = read_path(reader, "receipt", folder);
    reader.finish();
    return ceilings_of(read_receipt(file));
  }
  StatedCeilings ceilings;
  const auto read = [&](const char* name, std::optional<double>& value) {
    if (reader.has(name)) value = read_number(reader, name, 0, 1, 1e18);
  };
  read("fp32_flops", ceilings.fp32_flops);
  read("bf16_flops", ceilings.bf16_flops);
  read("bytes_per_second", ceilings.bytes_per_second);
  reader.finish();
  return ceilings;
}

Alive read_alive(JsonReader& reader) {
  const std::string text =
      reader.optional<std::string>("alive").value_or(std::string(to_string(Alive::rounds)));
  for (const Alive alive : {Alive::rounds, Alive::together, Alive::one}) {
    if (text == to_string(alive)) return alive;
  }
  refuse_plan(reader.where("alive"), in_quotes(text), "rounds, together or one");
}

void require_cpu(JsonReader& reader, WindowPlan& plan) {
  plan.device = reader.required<std::string>("device");
  if (plan.device == "cpu") return;
  throw Error(ErrorKind::unsupported, {.where = reader.where("device"),
                                       .found = in_quotes(plan.device),
                                       .expected = "\"cpu\"",
                                       .advice = "this program has no forms for other devices"});
}

void read_lists(JsonReader& reader, WindowPlan& plan, const std::filesystem::path& folder) {
  for (JsonReader& item : reader.required<std::vector<JsonReader>>("items")) {
    plan.items.push_back(read_item(std::move(item), folder));
  }
  for (JsonReader& form : reader.required<std::vector<JsonReader>>("forms")) {
    plan.forms.push_back(read_form(std::move(form)));
  }
  if (plan.items.empty()) refuse_plan(reader.where("items"), "no item", "one or more");
  if (plan.forms.empty()) refuse_plan(reader.where("forms"), "no form", "one or more");
  refuse_same_names(plan.items, reader.where("items"));
  refuse_same_names(plan.forms, reader.where("forms"));
}

void check_order(JsonReader& reader, const WindowPlan& plan) {
  const std::size_t cycle = order_cycle(plan.forms.size());
  if (plan.repetitions % cycle != 0) {
    refuse_plan(reader.where("repetitions"), std::to_string(plan.repetitions),
                fmt::format("a multiple of {}, the balanced order of {} forms", cycle, plan.forms.size()),
                fmt::format("use {}", (plan.repetitions / cycle + 1) * cycle));
  }
  const double samples = static_cast<double>(plan.items.size()) * static_cast<double>(plan.forms.size()) *
                         static_cast<double>(plan.processes * plan.repetitions);
  if (samples > static_cast<double>(kMostSamples)) {
    refuse_plan(reader.where(), fmt::format("{:.0f} samples", samples),
                fmt::format("at most {}", kMostSamples));
  }
}

}  // namespace

std::string_view to_string(Alive alive) {
  switch (alive) {
    case Alive::rounds:
      return "rounds";
    case Alive::together:
      return "together";
    case Alive::one:
      return "one";
  }
  return "";
}

WindowPlan parse_window_plan(std::string_view text, const std::string& file) {
  if (find_invalid_utf8(file))
    refuse_plan(printable(file), "a path that is not UTF-8", "one that JSON can hold");
  JsonFile json = parse_json_text(text, file);
  JsonReader& reader = json.root;
  WindowPlan plan;
  plan.file = file;
  plan.sha256 = json.sha256;
  plan.text = text;
  if (const auto schema = reader.required<std::string>("schema"); schema != kSchema) {
    throw Error(ErrorKind::unsupported,
                {.where = reader.where("schema"), .found = schema, .expected = std::string(kSchema)});
  }
  plan.name = read_name(reader, "name");
  require_cpu(reader, plan);
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  read_lists(reader, plan, folder);
  plan.processes = read_count(reader, "processes", plan.processes, 2, 64);
  plan.repetitions = read_count(reader, "repetitions", plan.repetitions, 1, kMostSamples);
  plan.warm_ups = read_count(reader, "warm_ups", plan.warm_ups, 0, 1000);
  plan.alive = read_alive(reader);
  plan.timeout_seconds = read_number(reader, "timeout_seconds", plan.timeout_seconds, 0.01, 86400);
  if (reader.has("limits")) plan.limits = read_limits(reader.required<JsonReader>("limits"));
  if (reader.has("rule")) plan.rule = read_rule(reader.required<JsonReader>("rule"));
  if (reader.has("ceilings")) plan.ceilings = read_ceilings(reader.required<JsonReader>("ceilings"), folder);
  reader.finish();
  check_order(reader, plan);
  return plan;
}

WindowPlan read_window_plan(const std::filesystem::path& file) {
  return parse_window_plan(read_text_file(file, kLargestPlan), file.string());
}

}  // namespace assay::lab
