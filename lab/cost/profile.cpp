#include "lab/cost/profile.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/sha256.hpp"
#include "decision/model.hpp"
#include "decision/request.hpp"
#include "device/thread_pool.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;
using backbone::OpCall;

constexpr std::size_t kMostTokens = 65'536;
constexpr std::size_t kMaxPasses = 100;

void check_range(std::string_view flag, std::size_t value, std::size_t low, std::size_t high) {
  if (value >= low && value <= high) return;
  throw Error(ErrorKind::invalid_argument,
              {std::string(flag), fmt::format("{}", value), fmt::format("{} to {}", low, high)});
}

std::string shape_text(const OpCall& call) {
  std::string text;
  for (const OpCall::Dimension& dimension : call.shape) {
    if (dimension.name.empty()) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", dimension.name, dimension.size);
  }
  return text;
}

double seconds_of(const OpCall& call) {
  return std::chrono::duration<double>(call.end - call.begin).count();
}

/// What a call would take at least.
class Floors {
 public:
  Floors(const Ceilings& ceilings, std::size_t threads, std::size_t weight_bytes)
      : ceilings_(ceilings),
        threads_(threads),
        weight_rate_(rate(MemoryAccess::read, static_cast<double>(weight_bytes))) {}

  double arithmetic(const OpCall& call) const {
    return call.operations == 0 ? 0 : call.operations / ceilings_.peak(call.precision, threads_);
  }
  double movement(const OpCall& call) const {
    return call.weight_bytes / weight_rate_ + call.data_bytes / rate(MemoryAccess::copy, call.data_bytes);
  }

 private:
  double rate(MemoryAccess access, double bytes) const {
    const MemoryLevel level = ceilings_.level_of(bytes, threads_);
    return ceilings_.bandwidth(level, access, threads_).bytes_per_second.max;
  }

  const Ceilings& ceilings_;
  std::size_t threads_;
  double weight_rate_;
};

void add_call(ProfileLine& line, const OpCall& call, const Floors& floors, double share) {
  const double arithmetic = floors.arithmetic(call);
  const double movement = floors.movement(call);
  line.calls += share;
  line.seconds += share * seconds_of(call);
  line.operations += share * call.operations;
  line.bytes += share * (call.weight_bytes + call.data_bytes);
  line.arithmetic += share * arithmetic;
  line.movement += share * movement;
  line.floor += share * std::max(arithmetic, movement);
  const std::string listed = "," + line.parts + ",";
  if (listed.find("," + std::string(call.part) + ",") != std::string::npos) return;
  line.parts += (line.parts.empty() ? "" : ",") + std::string(call.part);
}

struct Recorder final : backbone::OpObserver {
  std::vector<OpCall> calls;
  void on_call(const OpCall& call) override { calls.push_back(call); }
};

/// Runs a pass untimed, then as many as asked.
std::vector<ProfilePass> record(std::size_t passes, Recorder& recorder, const std::function<void()>& run,
                                const std::function<void(std::string_view)>& progress) {
  run();
  progress("warmed up");
  const std::size_t calls = recorder.calls.size();
  std::vector<ProfilePass> recorded(passes);
  for (std::size_t i = 0; i < passes; ++i) {
    recorder.calls.clear();
    recorder.calls.reserve(calls);
    recorded[i].begin = OpCall::Clock::now();
    run();
    recorded[i].end = OpCall::Clock::now();
    recorded[i].calls = std::move(recorder.calls);
    progress(fmt::format("pass {} of {}: {:.1f} ms", i + 1, passes, recorded[i].seconds() * 1e3));
  }
  return recorded;
}

ProfileReport profile_call(const ProfileOptions& options, const Ceilings& ceilings,
                           const std::function<void(std::string_view)>& progress) {
  const ops::Selection forms = ops::select_forms(options.precision, options.forms);
  const MeasuredModel model = open_model(options.choice);
  check_range("--tokens", options.tokens, 1, std::min(kMostTokens, model.config.max_positions));
  device::ThreadPool threads(options.threads);
  backbone::Backbone backbone(model.config, model.weights, forms, threads);
  const std::vector<std::int32_t> tokens = some_tokens(model.config, options.tokens);
  Recorder recorder;
  ProfileReport report = make_profile(
      record(
          options.passes, recorder, [&] { run_one_call(backbone, tokens, &recorder); }, progress),
      ceilings, threads.size(), backbone.weight_bytes());
  report.subject = run_subject(model.description, options.precision, threads.size(), forms);
  report.subject["passes"] = options.passes;
  report.subject["tokens"] = options.tokens;
  return report;
}

ProfileReport profile_request(const ProfileOptions& options, const Ceilings& ceilings,
                              const std::function<void(std::string_view)>& progress) {
  if (options.choice.model.empty()) {
    throw Error(ErrorKind::invalid_argument, {"--request", "no checkpoint to ask", "--model with it",
                                              "--shape has no tokenizer and no head"});
  }
  const decision::Request request = decision::parse_request(*options.request, options.request_name);
  decision::ModelOptions model_options;
  model_options.precision = options.precision;
  model_options.forms = options.forms;
  model_options.threads = options.threads;
  std::optional<std::filesystem::path> base;
  if (!options.choice.base.empty()) base = options.choice.base;
  const auto model = decision::DecisionModel::load(options.choice.model, base, model_options);
  Recorder recorder;
  model->set_observer(&recorder);
  std::vector<ProfilePass> passes = record(
      options.passes, recorder, [&] { model->decide(request); }, progress);
  model->set_observer(nullptr);
  ProfileReport report = make_profile(std::move(passes), ceilings, model->threads(), model->weight_bytes());
  report.subject =
      run_subject({{"identity", model->identity()}}, options.precision, model->threads(), model->selection());
  report.subject["passes"] = options.passes;
  report.subject["request"] = sha256_hex(std::as_bytes(std::span(*options.request)));
  return report;
}

Json line_json(const ProfileLine& line, double wall) {
  return {{"op", line.op},
          {"form", line.form},
          {"shape", line.shape},
          {"parts", line.parts},
          {"calls", line.calls},
          {"milliseconds", line.seconds * 1e3},
          {"share", line.seconds / wall},
          {"operations", line.operations},
          {"bytes", line.bytes},
          {"floor_milliseconds", line.floor * 1e3},
          {"arithmetic_milliseconds", line.arithmetic * 1e3},
          {"movement_milliseconds", line.movement * 1e3},
          {"times_floor", line.floor > 0 ? Json(line.seconds / line.floor) : Json(nullptr)}};
}

/// Trace events of one thread, times from `origin`.
class TraceWriter {
 public:
  explicit TraceWriter(OpCall::Clock::time_point origin) : origin_(origin) {}

  void name(std::string_view what, std::string text) {
    events_.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", std::move(text)}}}});
  }
  void complete(std::string name, std::string_view category, OpCall::Clock::time_point begin,
                OpCall::Clock::time_point end, Json arguments) {
    events_.push_back({{"name", std::move(name)},
                       {"cat", category},
                       {"ph", "X"},
                       {"pid", 1},
                       {"tid", 1},
                       {"ts", microseconds(begin - origin_)},
                       {"dur", microseconds(end - begin)},
                       {"args", std::move(arguments)}});
  }
  Json take() { return std::move(events_); }

 private:
  static double microseconds(OpCall::Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  }
  OpCall::Clock::time_point origin_;
  Json events_ = Json::array();
};

void trace_op(TraceWriter& trace, const OpCall& call) {
  trace.complete(fmt::format("{} {}", call.op, call.part), "op", call.begin, call.end,
                 {{"op", call.op},
                  {"form", call.form},
                  {"layer", call.layer},
                  {"shape", shape_text(call)},
                  {"operations", call.operations},
                  {"weight_bytes", call.weight_bytes},
                  {"data_bytes", call.data_bytes}});
}

void trace_pass(TraceWriter& trace, const ProfilePass& pass, std::size_t number) {
  trace.complete(fmt::format("pass {}", number), "pass", pass.begin, pass.end, Json::object());
  for (auto first = pass.calls.begin(); first != pass.calls.end();) {
    const auto last =
        std::find_if(first, pass.calls.end(), [&](const OpCall& call) { return call.layer != first->layer; });
    if (first->layer >= 0) {
      trace.complete(fmt::format("layer {:02}", first->layer), "layer", first->begin, std::prev(last)->end,
                     Json::object());
    }
    std::for_each(first, last, [&](const OpCall& call) { trace_op(trace, call); });
    first = last;
  }
}

}  // namespace

ProfileReport make_profile(std::vector<ProfilePass> passes, const Ceilings& ceilings, std::size_t threads,
                           std::size_t weight_bytes) {
  if (passes.empty()) throw Error(ErrorKind::invalid_argument, {"profile", "no passes", "one or more"});
  const Floors floors(ceilings, threads, weight_bytes);
  const double share = 1.0 / static_cast<double>(passes.size());
  std::map<std::tuple<std::string_view, std::string_view, std::string>, ProfileLine> lines;
  ProfileReport report;
  report.threads = threads;
  report.ceilings = ceilings;
  for (const ProfilePass& pass : passes) {
    report.wall += share * pass.seconds();
    for (const OpCall& call : pass.calls) {
      ProfileLine& line = lines[{call.op, call.form, shape_text(call)}];
      line.op = call.op;
      line.form = call.form;
      line.shape = shape_text(call);
      add_call(line, call, floors, share);
    }
  }
  report.unaccounted = report.wall;
  for (auto& [key, line] : lines) {
    report.unaccounted -= line.seconds;
    report.lines.push_back(std::move(line));
  }
  std::sort(report.lines.begin(), report.lines.end(),
            [](const ProfileLine& a, const ProfileLine& b) { return a.seconds > b.seconds; });
  report.passes = std::move(passes);
  return report;
}

ProfileReport measure_profile(const ProfileOptions& options, const Ceilings& ceilings,
                              const std::function<void(std::string_view)>& progress) {
  check_range("--passes", options.passes, 1, kMaxPasses);
  check_range("--tokens", options.tokens, 1, kMostTokens);
  return options.request ? profile_request(options, ceilings, progress)
                         : profile_call(options, ceilings, progress);
}

Json to_json(const ProfileReport& report) {
  Json passes = Json::array();
  for (const ProfilePass& pass : report.passes) passes.push_back(pass.seconds() * 1e3);
  Json lines = Json::array();
  for (const ProfileLine& line : report.lines) lines.push_back(line_json(line, report.wall));
  return {{"wall_milliseconds", report.wall * 1e3},
          {"unaccounted_milliseconds", report.unaccounted * 1e3},
          {"passes_milliseconds", std::move(passes)},
          {"lines", std::move(lines)}};
}

std::string to_table(const ProfileReport& report) {
  fmt::memory_buffer out;
  const auto row = std::back_inserter(out);
  fmt::format_to(row, "{}\n\n{:<17} {:<13} {:<44} {:>6} {:>9} {:>6} {:>8} {:>8} {:>9} {:>7} {}\n",
                 report.subject.dump(), "op", "form", "shape", "calls", "ms", "share", "GFLOP", "MB",
                 "floor ms", "x floor", "parts");
  double floor = 0;
  for (const ProfileLine& line : report.lines) {
    floor += line.floor;
    fmt::format_to(
        row, "{:<17} {:<13} {:<44} {:>6.0f} {:>9.3f} {:>5.1f}% {:>8.3f} {:>8.2f} {:>8.3f}{} {:>7.2f} {}\n",
        line.op, line.form, line.shape, line.calls, line.seconds * 1e3, 100 * line.seconds / report.wall,
        line.operations * 1e-9, line.bytes * 1e-6, line.floor * 1e3,
        line.arithmetic >= line.movement ? 'a' : 'm', line.floor > 0 ? line.seconds / line.floor : 0.0,
        line.parts);
  }
  fmt::format_to(row, "{:<76} {:>6} {:>9.3f} {:>5.1f}%\n", "in no op", "", report.unaccounted * 1e3,
                 100 * report.unaccounted / report.wall);
  fmt::format_to(row, "{:<76} {:>6} {:>9.3f} 100.0% {:>8} {:>8} {:>8.3f}  {:>7.2f}\n", "wall", "",
                 report.wall * 1e3, "", "", floor * 1e3, floor > 0 ? report.wall / floor : 0.0);
  fmt::format_to(row,
                 "\na pass's average of {}, {}; floor: a where arithmetic bounds it, m where moving memory "
                 "does\n",
                 report.passes.size(), counted(report.threads, "thread"));
  return fmt::to_string(out);
}

Json to_chrome_trace(const ProfileReport& report) {
  TraceWriter trace(report.passes.empty() ? OpCall::Clock::time_point{} : report.passes.front().begin);
  trace.name("process_name", "assay");
  trace.name("thread_name", "caller of " + counted(report.threads, "thread"));
  for (std::size_t i = 0; i < report.passes.size(); ++i) trace_pass(trace, report.passes[i], i + 1);
  return {{"traceEvents", trace.take()}, {"displayTimeUnit", "ms"}, {"otherData", report.subject}};
}

}  // namespace assay::lab
