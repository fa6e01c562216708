#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/window/nvml.hpp"
#include "lab/window/proc.hpp"

namespace assay::lab {

/// What a window's surroundings may be for its times to count. Shares are of all processors of the machine.
struct EnvironmentLimits {
  double other_cpu = 0.05;         ///< processor time of other processes over the window
  double other_cpu_second = 0.25;  ///< and in any one second of it
  double load_per_core = 0.5;      ///< one-minute load average at the start
  double steal = 0.02;             ///< processor time that the hypervisor took
  std::size_t available_memory_bytes = std::size_t{256} << 20;  ///< at any time
};

/// The surroundings at one time.
struct EnvironmentSnapshot {
  LoadAverage load;
  std::size_t available_memory = 0;
  std::vector<double> cpu_megahertz;
  std::vector<ProcReader::Temperature> temperatures;
  GpuReading gpus;
};
EnvironmentSnapshot take_snapshot(const ProcReader& proc);

/// Running counts at one time.
struct EnvironmentTick {
  double seconds = 0;      ///< since the window began
  CpuTicks cpu;            ///< of the machine
  std::uint64_t tree = 0;  ///< ticks of this process and its workers
  double load = 0;         ///< one-minute average
  std::size_t available_memory = 0;
};

/// What happened between two ticks.
struct EnvironmentSpan {
  double start = 0;
  double seconds = 0;
  double other_cpu = 0;
  double steal = 0;
  double load = 0;                   ///< at its end
  std::size_t available_memory = 0;  ///< the least
};

/// Ticks joined to spans of at least `seconds`, the last one perhaps shorter. Shares are clamped at 0, for
/// the kernel counts the machine's time and a process's at slightly different moments.
std::vector<EnvironmentSpan> join_ticks(const std::vector<EnvironmentTick>& ticks, double seconds);

struct TopProcess {
  std::string name;
  double cpu = 0;  ///< share of the machine over the window
};

struct EnvironmentRecord {
  std::size_t cores = 0;  ///< of the machine
  EnvironmentSnapshot before;
  EnvironmentSnapshot after;
  std::vector<EnvironmentSpan> seconds;  ///< of about one second each
  EnvironmentSpan whole;
  std::vector<TopProcess> others;  ///< the busiest that could be seen from here, by name
};

/// Why the window is contended, each with what was found and the limit; none: it is clean.
std::vector<std::string> find_contention(const EnvironmentRecord& record, const EnvironmentLimits& limits);

nlohmann::ordered_json to_json(const EnvironmentRecord& record);
nlohmann::ordered_json to_json(const EnvironmentLimits& limits);

/// Watches the surroundings from a thread of its own. It reads /proc/stat, loadavg, meminfo and the stat of
/// this process and its workers five times a second, and every process's stat every two seconds, which
/// together take about one thousandth of one core.
class EnvironmentMonitor {
 public:
  explicit EnvironmentMonitor(ProcReader proc = ProcReader());
  ~EnvironmentMonitor();
  EnvironmentMonitor(const EnvironmentMonitor&) = delete;
  EnvironmentMonitor& operator=(const EnvironmentMonitor&) = delete;

  /// Counts a child of this process as the window's own until it is given to `forget`.
  void track(int pid);
  /// Waits for the child under the monitor's lock, so that its time is never counted nowhere or twice.
  /// `wait` reaps it.
  template <class Wait>
  void forget(int pid, const Wait& wait) {
    const std::lock_guard lock(mutex_);
    wait();
    std::erase(workers_, pid);
  }

  /// Ends the watch and says what was seen. Once.
  EnvironmentRecord finish();

 private:
  void watch();
  void tick();
  void scan_processes();
  std::vector<TopProcess> busiest(std::uint64_t machine_ticks) const;

  /// A process seen by the scans: what it had used when first seen, and lately.
  struct Seen {
    std::string name;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  using ProcessKey = std::pair<int, std::uint64_t>;  ///< pid and start, which no two processes share

  ProcReader proc_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  EnvironmentSnapshot before_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::vector<int> workers_;
  std::vector<int> ever_workers_;
  std::vector<EnvironmentTick> ticks_;
  std::map<ProcessKey, Seen> seen_;
  std::thread thread_;
};

}  // namespace assay::lab
