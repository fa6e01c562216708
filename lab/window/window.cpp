#include "lab/window/window.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "lab/window/order.hpp"
#include "lab/window/work_set.hpp"
#include "lab/window/worker.hpp"

namespace assay::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBytesInMebibyte = 1024.0 * 1024.0;
constexpr double kMemoryReserve = 0.05;  // of what is available, for everything else

std::string new_window_id(const WindowPlan& plan, const std::string& started) {
  std::random_device random;
  const std::string text =
      fmt::format("{} {} {} {:x}{:x}", plan.sha256, started, ::getpid(), random(), random());
  return sha256_hex(std::as_bytes(std::span(text))).substr(0, 16);
}

std::string utc_now() {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", now);
}

std::vector<Stage> make_schedule(const WindowPlan& plan) {
  const WindowSize size{plan.items.size(), plan.forms.size(), plan.processes, plan.repetitions};
  switch (plan.alive) {
    case Alive::rounds:
      return rounds_schedule(size);
    case Alive::together:
      return together_schedule(size);
    case Alive::one:
      return one_schedule(size);
  }
  return {};
}

[[noreturn]] void refuse_memory(const WindowPlan& plan, double needed, std::size_t available,
                                std::size_t workers) {
  throw Error(
      ErrorKind::limit_exceeded,
      {.where = plan.file,
       .found = fmt::format("{} processes alive at once that hold {:.0f} MiB or more", workers,
                            needed / kBytesInMebibyte),
       .expected = fmt::format("at most {:.0f} MiB, what is available less {:.0f} %",
                               (1 - kMemoryReserve) * static_cast<double>(available) / kBytesInMebibyte,
                               100 * kMemoryReserve),
       .advice = plan.alive == Alive::one ? "end other programs, or use a smaller model"
                                          : "set \"alive\" to \"rounds\" or \"one\""});
}

/// The workers of a stage, which end with it.
struct Workers {
  explicit Workers(EnvironmentMonitor& m) : monitor(m) {}
  ~Workers() {
    for (auto& [key, worker] : by_key) monitor.forget(worker->pid(), [&worker = worker] { worker->end(); });
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  EnvironmentMonitor& monitor;
  std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<WorkerProcess>> by_key;  // by form, process
};

/// Runs a plan's stages. Its members end in reverse: the monitor before the lock.
class WindowRun {
 public:
  WindowRun(const WindowPlan& plan, const WindowOptions& options, const StopSignals& signals)
      : options_(options),
        signals_(signals),
        lock_(DeviceLock::acquire(plan.device, plan.name, with_signals(options.lock))),
        start_(Clock::now()) {
    report_.plan = plan;
    report_.started = utc_now();
    report_.id = new_window_id(plan, report_.started);
    report_.forms.resize(plan.forms.size());
    report_.items.resize(plan.items.size());
    for (ItemRun& item : report_.items) item.cost.resize(plan.forms.size());
  }

  WindowReport run() {
    const std::vector<Stage> stages = make_schedule(report_.plan);
    for (const Stage& stage : stages) total_ += stage.turns.size();
    for (const Stage& stage : stages) run_stage(stage);
    report_.environment = monitor_.finish();
    report_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    report_.contention = find_contention(report_.environment, report_.plan.limits);
    if (signals_.requested()) {
      throw Error(ErrorKind::cancelled, {.where = "window", .found = "stopped by a signal"});
    }
    judge_window(report_);
    return std::move(report_);
  }

 private:
  LockOptions with_signals(LockOptions lock) const {
    lock.cancelled = [this] { return signals_.requested(); };
    if (!lock.on_wait) lock.on_wait = options_.progress;
    return lock;
  }

  void say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

  void run_stage(const Stage& stage) {
    require_memory(stage);
    Workers workers(monitor_);
    for (const Stage::Worker& worker : stage.workers) {
      workers.by_key[{worker.form, worker.process}] = start_worker(worker, stage.workers.size());
    }
    say(fmt::format("timing {} of {} turns", stage.turns.size(), total_));
    for (const Turn& turn : stage.turns) run_turn(*workers.by_key.at({turn.form, turn.process}), turn);
  }

  void require_memory(const Stage& stage) const {
    double needed = 0;
    for (const Stage::Worker& worker : stage.workers) {
      needed += least_bytes(report_.plan, report_.plan.forms[worker.form]);
    }
    refuse_beyond_available(needed, stage.workers.size());
  }

  void refuse_beyond_available(double needed, std::size_t workers) const {
    const std::size_t available = proc_.available_memory();
    if (needed <= (1 - kMemoryReserve) * static_cast<double>(available)) return;
    refuse_memory(report_.plan, needed, available, workers);
  }

  std::unique_ptr<WorkerProcess> start_worker(const Stage::Worker& which, std::size_t alive) {
    const WindowForm& form = report_.plan.forms[which.form];
    FormRun& run = report_.forms[which.form];
    // What an earlier process of the form held is known by now.
    refuse_beyond_available(static_cast<double>(run.resident_bytes), alive);
    say(fmt::format("loading {} (process {} of {})", form.name, which.process + 1, report_.plan.processes));
    auto worker = std::make_unique<WorkerProcess>(
        WorkerOptions{.command = options_.worker_command,
                      .name = fmt::format("form {}, process {}", form.name, which.process),
                      .timeout_seconds = report_.plan.timeout_seconds,
                      .stop_descriptor = signals_.descriptor()});
    monitor_.track(worker->pid());
    const auto ready =
        worker->ask({{"plan", report_.plan.text}, {"file", report_.plan.file}, {"form", which.form}});
    note(ready, which.form);
    for (std::size_t item = 0; item < report_.plan.items.size(); ++item) {
      for (std::size_t i = 0; i < report_.plan.warm_ups; ++i) worker->ask({{"run", item}, {"timed", false}});
    }
    return worker;
  }

  void note(const nlohmann::json& ready, std::size_t form) {
    FormRun& run = report_.forms[form];
    run.forms = ready.at("forms").get<std::string>();
    run.threads = ready.at("threads").get<std::size_t>();
    run.resident_bytes = std::max(run.resident_bytes, ready.at("resident_bytes").get<std::size_t>());
    for (std::size_t i = 0; i < report_.items.size(); ++i) {
      const nlohmann::json& item = ready.at("items").at(i);
      report_.items[i].model = item.at("model").get<std::string>();
      report_.items[i].cost[form] = {.fp32_operations = item.at("fp32_operations").get<double>(),
                                     .bf16_operations = item.at("bf16_operations").get<double>(),
                                     .bytes = item.at("bytes").get<double>()};
    }
  }

  void run_turn(WorkerProcess& worker, const Turn& turn) {
    const auto answer = worker.ask({{"run", turn.item}, {"timed", true}});
    const std::chrono::nanoseconds at(answer.at("start").get<std::int64_t>());
    report_.samples.push_back({.item = turn.item,
                               .form = turn.form,
                               .process = turn.process,
                               .repetition = turn.repetition,
                               .order = report_.samples.size(),
                               .start = std::chrono::duration<double>(at - start_.time_since_epoch()).count(),
                               .wall_seconds = answer.at("seconds").get<double>()});
  }

  const WindowOptions& options_;
  const StopSignals& signals_;
  ProcReader proc_;
  DeviceLock lock_;
  Clock::time_point start_;
  EnvironmentMonitor monitor_;
  WindowReport report_;
  std::size_t total_ = 0;
};

/// Wall times by item, form, process and repetition.
class WindowTimes {
 public:
  explicit WindowTimes(const std::vector<Sample>& samples) {
    for (const Sample& s : samples) by_place_[{s.item, s.form, s.process, s.repetition}] = s.wall_seconds;
  }

  std::vector<double> of(std::size_t item, std::size_t form) const {
    std::vector<double> times;
    for (auto it = by_place_.lower_bound({item, form, 0, 0});
         it != by_place_.end() && it->first[0] == item && it->first[1] == form; ++it) {
      times.push_back(it->second);
    }
    return times;
  }

  std::vector<MatchedPair> pairs(std::size_t item, std::size_t baseline, std::size_t candidate) const {
    std::vector<MatchedPair> pairs;
    for (const auto& [place, seconds] : by_place_) {
      if (place[0] != item || place[1] != baseline) continue;
      const auto other = by_place_.find({item, candidate, place[2], place[3]});
      if (other != by_place_.end()) pairs.push_back({place[2], seconds, other->second});
    }
    return pairs;
  }

 private:
  std::map<std::array<std::size_t, 4>, double> by_place_;
};

}  // namespace

WindowReport run_window(const WindowPlan& plan, const WindowOptions& options, const StopSignals& signals) {
  return WindowRun(plan, options, signals).run();
}

void judge_window(WindowReport& report) {
  const WindowTimes times(report.samples);
  const std::size_t cache = last_level_cache_bytes();
  for (std::size_t item = 0; item < report.plan.items.size(); ++item) {
    for (std::size_t form = 0; form < report.plan.forms.size(); ++form) {
      const std::vector<double> wall = times.of(item, form);
      if (wall.empty()) continue;
      Cell cell{.item = item, .form = form, .wall = summarize(wall)};
      cell.floor_seconds = floor_seconds(report.items[item].cost[form], report.plan.ceilings, cache);
      cell.suspicious = cell.wall.median < cell.floor_seconds;
      report.cells.push_back(cell);
    }
    for (std::size_t baseline = 0; baseline < report.plan.forms.size(); ++baseline) {
      for (std::size_t candidate = baseline + 1; candidate < report.plan.forms.size(); ++candidate) {
        const std::vector<MatchedPair> pairs = times.pairs(item, baseline, candidate);
        if (pairs.empty()) continue;
        report.pairs.push_back({item, baseline, candidate, compare_pairs(pairs, report.plan.rule)});
      }
    }
  }
}

void require_one_window(const Receipt& a, const Receipt& b) {
  const auto id = [](const Receipt& receipt) {
    if (receipt.kind != ReceiptKind::window) {
      throw Error(ErrorKind::mismatch, {.where = receipt.file.string(),
                                        .found = fmt::format("a {} receipt", to_string(receipt.kind)),
                                        .expected = "a window receipt"});
    }
    const auto& result = receipt.body.at("result");
    if (!result.contains("window") || !result["window"].is_object() || !result["window"].contains("id")) {
      throw Error(ErrorKind::malformed,
                  {.where = receipt.file.string(), .found = "no field result.window.id"});
    }
    return result["window"]["id"].dump() + " of " + receipt.body["made"].get<std::string>();
  };
  const std::string first = id(a);
  const std::string second = id(b);
  if (first == second) return;
  throw Error(ErrorKind::mismatch,
              {.where = a.file.string() + " and " + b.file.string(),
               .found = fmt::format("times of two windows, {} and {}", first, second),
               .expected = "one window",
               .advice = "times compare only inside one window: put both forms into one plan and run it"});
}

}  // namespace assay::lab
