#include "lab/window/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kTickInterval = std::chrono::milliseconds(200);
constexpr std::size_t kTicksPerScan = 10;
constexpr double kSpanSeconds = 1;
constexpr std::size_t kTopProcesses = 5;
constexpr double kMebibyte = 1024.0 * 1024.0;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::uint64_t difference(std::uint64_t later, std::uint64_t earlier) {
  return later > earlier ? later - earlier : 0;
}

EnvironmentSpan span_between(const EnvironmentTick& a, const EnvironmentTick& b) {
  const std::uint64_t total = difference(b.cpu.total(), a.cpu.total());
  const std::uint64_t busy = difference(b.cpu.busy, a.cpu.busy);
  return {.start = a.seconds,
          .seconds = b.seconds - a.seconds,
          .other_cpu = share(difference(busy, difference(b.tree, a.tree)), total),
          .steal = share(difference(b.cpu.steal, a.cpu.steal), total),
          .load = b.load,
          .available_memory = std::min(a.available_memory, b.available_memory)};
}

Json to_json(const EnvironmentSpan& span) {
  return {{"start", span.start}, {"seconds", span.seconds}, {"other_cpu", span.other_cpu},
          {"steal", span.steal}, {"load", span.load},       {"available_memory", span.available_memory}};
}

Json to_json(const GpuState& gpu) {
  Json processes = Json::array();
  for (const GpuProcess& process : gpu.processes) {
    processes.push_back({{"pid", process.pid}, {"name", process.name}});
  }
  return {{"name", gpu.name},
          {"sm_megahertz", gpu.sm_megahertz},
          {"max_sm_megahertz", gpu.max_sm_megahertz},
          {"memory_megahertz", gpu.memory_megahertz},
          {"celsius", gpu.celsius},
          {"throttle_reasons", gpu.throttle_reasons},
          {"processes", std::move(processes)}};
}

Json to_json(const EnvironmentSnapshot& snapshot) {
  Json temperatures = Json::array();
  for (const auto& [zone, celsius] : snapshot.temperatures) {
    temperatures.push_back({{"zone", zone}, {"celsius", celsius}});
  }
  Json gpus = Json::array();
  for (const GpuState& gpu : snapshot.gpus.gpus) gpus.push_back(to_json(gpu));
  return {{"load", {snapshot.load.one_minute, snapshot.load.five_minutes, snapshot.load.fifteen_minutes}},
          {"available_memory", snapshot.available_memory},
          {"cpu_megahertz", snapshot.cpu_megahertz},
          {"temperatures", std::move(temperatures)},
          {"gpus", snapshot.gpus.absent.empty() ? std::move(gpus) : Json{{"absent", snapshot.gpus.absent}}}};
}

std::size_t machine_cores() {
  return static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

EnvironmentSnapshot take_snapshot(const ProcReader& proc) {
  return {.load = proc.load(),
          .available_memory = proc.available_memory(),
          .cpu_megahertz = proc.cpu_megahertz(),
          .temperatures = proc.temperatures(),
          .gpus = read_gpus()};
}

std::vector<EnvironmentSpan> join_ticks(const std::vector<EnvironmentTick>& ticks, double seconds) {
  std::vector<EnvironmentSpan> spans;
  std::size_t first = 0;
  std::size_t least_memory = ticks.empty() ? 0 : ticks[0].available_memory;
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    least_memory = std::min(least_memory, ticks[i].available_memory);
    if (ticks[i].seconds - ticks[first].seconds < seconds && i + 1 < ticks.size()) continue;
    spans.push_back(span_between(ticks[first], ticks[i]));
    spans.back().available_memory = least_memory;
    first = i;
    least_memory = ticks[i].available_memory;
  }
  return spans;
}

std::vector<std::string> find_contention(const EnvironmentRecord& record, const EnvironmentLimits& limits) {
  std::vector<std::string> reasons;
  const auto cores = static_cast<double>(record.cores);
  if (record.before.load.one_minute > limits.load_per_core * cores) {
    reasons.push_back(fmt::format("load average {:.2f} at the start, limit {:.2f} ({:g} a core)",
                                  record.before.load.one_minute, limits.load_per_core * cores,
                                  limits.load_per_core));
  }
  if (record.whole.other_cpu > limits.other_cpu) {
    reasons.push_back(fmt::format("other processes took {:.1f} % of the processors, limit {:.1f} %",
                                  100 * record.whole.other_cpu, 100 * limits.other_cpu));
  }
  if (record.whole.steal > limits.steal) {
    reasons.push_back(fmt::format("the hypervisor took {:.1f} % of the processors, limit {:.1f} %",
                                  100 * record.whole.steal, 100 * limits.steal));
  }
  const EnvironmentSpan* worst = nullptr;
  std::size_t memory = record.whole.available_memory;
  for (const EnvironmentSpan& span : record.seconds) {
    memory = std::min(memory, span.available_memory);
    // A last span much shorter than a second has too few clock ticks to say anything.
    if (span.seconds < 0.5 * kSpanSeconds) continue;
    if (worst == nullptr || span.other_cpu > worst->other_cpu) worst = &span;
  }
  if (worst != nullptr && worst->other_cpu > limits.other_cpu_second) {
    reasons.push_back(fmt::format(
        "other processes took {:.1f} % of the processors in the second from {:.1f} s, limit {:.1f} %",
        100 * worst->other_cpu, worst->start, 100 * limits.other_cpu_second));
  }
  if (memory < limits.available_memory_bytes) {
    reasons.push_back(fmt::format("{:.0f} MiB of memory were available, limit {:.0f} MiB",
                                  static_cast<double>(memory) / kMebibyte,
                                  static_cast<double>(limits.available_memory_bytes) / kMebibyte));
  }
  return reasons;
}

Json to_json(const EnvironmentLimits& limits) {
  return {{"other_cpu", limits.other_cpu},
          {"other_cpu_second", limits.other_cpu_second},
          {"load_per_core", limits.load_per_core},
          {"steal", limits.steal},
          {"available_memory_bytes", limits.available_memory_bytes}};
}

Json to_json(const EnvironmentRecord& record) {
  Json seconds = Json::array();
  for (const EnvironmentSpan& span : record.seconds) seconds.push_back(to_json(span));
  Json others = Json::array();
  for (const TopProcess& process : record.others) {
    others.push_back({{"name", process.name}, {"cpu", process.cpu}});
  }
  return {{"cores", record.cores},
          {"before", to_json(record.before)},
          {"after", to_json(record.after)},
          {"whole", to_json(record.whole)},
          {"other_processes", std::move(others)},
          {"seconds", std::move(seconds)}};
}

EnvironmentMonitor::EnvironmentMonitor(ProcReader proc)
    : proc_(std::move(proc)), before_(take_snapshot(proc_)) {
  tick();
  scan_processes();
  thread_ = std::thread([this] { watch(); });
}

EnvironmentMonitor::~EnvironmentMonitor() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void EnvironmentMonitor::track(int pid) {
  const std::lock_guard lock(mutex_);
  workers_.push_back(pid);
  ever_workers_.push_back(pid);
}

void EnvironmentMonitor::watch() {
  std::unique_lock lock(mutex_);
  for (std::size_t round = 1; !wake_.wait_for(lock, kTickInterval, [this] { return stopping_; }); ++round) {
    try {
      tick();
      if (round % kTicksPerScan == 0) scan_processes();
    } catch (const Error& error) {
      // The next tick spans the gap; a /proc that stays unreadable fails `finish`.
      log().warn("environment: {}", error.what());
    }
  }
}

void EnvironmentMonitor::tick() {
  EnvironmentTick tick;
  // Own time is read after the machine's, so that a busy window is never taken for somebody else's.
  tick.cpu = proc_.cpu_ticks();
  tick.tree = proc_.tree_ticks(::getpid());
  for (const int pid : workers_) tick.tree += proc_.tree_ticks(pid);
  tick.load = proc_.load().one_minute;
  tick.available_memory = proc_.available_memory();
  tick.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  ticks_.push_back(tick);
}

void EnvironmentMonitor::scan_processes() {
  for (const ProcessTicks& process : proc_.processes()) {
    const bool own = process.pid == ::getpid() || std::find(ever_workers_.begin(), ever_workers_.end(),
                                                            process.pid) != ever_workers_.end();
    if (own) continue;
    // One that began after the first scan has used nothing before the window.
    const bool new_process = !seen_.empty() && ticks_.size() > 1;
    const auto [entry, first_time] = seen_.try_emplace(
        {process.pid, process.started}, Seen{process.name, new_process ? 0 : process.own, process.own});
    entry->second.last = process.own;
  }
}

std::vector<TopProcess> EnvironmentMonitor::busiest(std::uint64_t machine_ticks) const {
  std::map<std::string, std::uint64_t> by_name;
  for (const auto& [key, process] : seen_) by_name[process.name] += difference(process.last, process.first);
  std::vector<TopProcess> top;
  for (const auto& [name, ticks] : by_name) {
    if (ticks > 0) top.push_back({name, share(ticks, machine_ticks)});
  }
  std::stable_sort(top.begin(), top.end(), [](const auto& a, const auto& b) { return a.cpu > b.cpu; });
  top.resize(std::min(top.size(), kTopProcesses));
  return top;
}

EnvironmentRecord EnvironmentMonitor::finish() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  tick();
  scan_processes();
  EnvironmentRecord record;
  record.cores = machine_cores();
  record.before = std::move(before_);
  record.whole = span_between(ticks_.front(), ticks_.back());
  record.seconds = join_ticks(ticks_, kSpanSeconds);
  record.others = busiest(difference(ticks_.back().cpu.total(), ticks_.front().cpu.total()));
  for (const EnvironmentSpan& span : record.seconds) {
    record.whole.available_memory = std::min(record.whole.available_memory, span.available_memory);
  }
  record.after = take_snapshot(proc_);
  return record;
}

}  // namespace assay::lab
