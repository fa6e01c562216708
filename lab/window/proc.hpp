#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// What Linux says of the machine under /proc and /sys (man proc(5)). Parsers take the files' text and throw
/// Error(malformed) naming the file where it is not what the kernel writes.
namespace assay::lab {

/// Time of all processors since the machine started, in clock ticks, each tick counted once.
struct CpuTicks {
  std::uint64_t busy = 0;   ///< user, nice, system, irq, softirq
  std::uint64_t idle = 0;   ///< idle, iowait
  std::uint64_t steal = 0;  ///< taken by the hypervisor
  std::uint64_t total() const { return busy + idle + steal; }
};
CpuTicks parse_cpu_ticks(std::string_view proc_stat);

struct LoadAverage {
  double one_minute = 0;
  double five_minutes = 0;
  double fifteen_minutes = 0;
};
LoadAverage parse_load(std::string_view proc_loadavg);

/// MemAvailable, in bytes.
std::size_t parse_available_memory(std::string_view proc_meminfo);

/// "cpu MHz" of every processor; none where the architecture does not say.
std::vector<double> parse_cpu_megahertz(std::string_view proc_cpuinfo);

struct ProcessTicks {
  int pid = 0;
  std::string name;            ///< as the kernel knows it: at most 15 bytes
  std::uint64_t own = 0;       ///< clock ticks in user and kernel mode
  std::uint64_t children = 0;  ///< of the children that it waited for
  std::uint64_t started = 0;   ///< ticks after the machine's start: with the pid, which process this is
};
/// One /proc/<pid>/stat; a name may hold spaces and parentheses.
ProcessTicks parse_process(std::string_view proc_pid_stat);

/// Readings of a running system. `proc` and `sys` stand for /proc and /sys.
class ProcReader {
 public:
  explicit ProcReader(std::filesystem::path proc = "/proc", std::filesystem::path sys = "/sys");

  CpuTicks cpu_ticks() const;
  LoadAverage load() const;
  std::size_t available_memory() const;
  /// Ticks of a process and the children it waited for; 0 once it is gone.
  std::uint64_t tree_ticks(int pid) const;
  /// Every process that can be seen from here, but for those that end meanwhile.
  std::vector<ProcessTicks> processes() const;
  /// Of every processor: cpufreq's scaling_cur_freq, else /proc/cpuinfo's.
  std::vector<double> cpu_megahertz() const;

  struct Temperature {
    std::string zone;
    double celsius = 0;
  };
  /// Of every thermal zone; none in most virtual machines.
  std::vector<Temperature> temperatures() const;

 private:
  std::filesystem::path proc_;
  std::filesystem::path sys_;
};

}  // namespace assay::lab
