#include "lab/window/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/utf8.hpp"

namespace assay::lab {
namespace {

// The part of nvml.h that is used here; the numbers are the library's binary interface.
using Device = struct OpaqueDevice*;
using Status = int;
constexpr Status kSuccess = 0;
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
constexpr int kGpuTemperature = 0;
constexpr std::size_t kMostProcesses = 256;
struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_memory;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};
struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr std::array kReasons{Reason{0x1, "idle"},
                              Reason{0x2, "applications_clocks_setting"},
                              Reason{0x4, "sw_power_cap"},
                              Reason{0x8, "hw_slowdown"},
                              Reason{0x10, "sync_boost"},
                              Reason{0x20, "sw_thermal_slowdown"},
                              Reason{0x40, "hw_thermal_slowdown"},
                              Reason{0x80, "hw_power_brake_slowdown"},
                              Reason{0x100, "display_clock_setting"}};

class Library {
 public:
  explicit Library(const std::string& name)
      : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* handle) {
          if (handle != nullptr) ::dlclose(handle);
        }) {}

  explicit operator bool() const { return handle_ != nullptr; }

  /// Calls a function of the library; nothing where it lacks the function or the call fails.
  template <class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<Status (*)(Arguments...)>(::dlsym(handle_.get(), name));
    return function != nullptr && function(arguments...) == kSuccess;
  }

 private:
  std::unique_ptr<void, void (*)(void*)> handle_;
};

std::string name_of(std::uint32_t pid) {
  try {
    const std::string text = read_text_file("/proc/" + std::to_string(pid) + "/comm", 4096);
    return printable(text.substr(0, text.find('\n')));
  } catch (const Error&) {
    return {};
  }
}

std::vector<GpuProcess> read_processes(const Library& library, Device device) {
  std::array<ProcessInfo, kMostProcesses> infos{};
  unsigned int count = kMostProcesses;
  if (!library.call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, infos.data())) return {};
  std::vector<GpuProcess> processes;
  for (std::size_t i = 0; i < count && i < kMostProcesses; ++i) {
    processes.push_back({infos[i].pid, name_of(infos[i].pid)});
  }
  return processes;
}

std::vector<std::string> read_throttle_reasons(const Library& library, Device device) {
  unsigned long long bits = 0;
  if (!library.call("nvmlDeviceGetCurrentClocksEventReasons", device, &bits) &&
      !library.call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &bits)) {
    return {};
  }
  std::vector<std::string> reasons;
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) != 0) reasons.emplace_back(reason.name);
  }
  return reasons;
}

std::optional<GpuState> read_gpu(const Library& library, unsigned int index) {
  Device device = nullptr;
  if (!library.call("nvmlDeviceGetHandleByIndex_v2", index, &device)) return std::nullopt;
  GpuState gpu;
  std::array<char, 96> name{};
  if (library.call("nvmlDeviceGetName", device, name.data(), static_cast<unsigned int>(name.size() - 1))) {
    gpu.name = printable(name.data());
  }
  library.call("nvmlDeviceGetClockInfo", device, kSmClock, &gpu.sm_megahertz);
  library.call("nvmlDeviceGetMaxClockInfo", device, kSmClock, &gpu.max_sm_megahertz);
  library.call("nvmlDeviceGetClockInfo", device, kMemoryClock, &gpu.memory_megahertz);
  library.call("nvmlDeviceGetTemperature", device, kGpuTemperature, &gpu.celsius);
  gpu.throttle_reasons = read_throttle_reasons(library, device);
  gpu.processes = read_processes(library, device);
  return gpu;
}

}  // namespace

GpuReading read_gpus(const std::string& name) {
  const Library library(name);
  if (!library) return {.absent = name + " is not installed", .gpus = {}};
  if (!library.call("nvmlInit_v2")) return {.absent = name + " finds no driver", .gpus = {}};
  GpuReading reading;
  unsigned int count = 0;
  library.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned int index = 0; index < count; ++index) {
    if (auto gpu = read_gpu(library, index)) reading.gpus.push_back(std::move(*gpu));
  }
  library.call("nvmlShutdown");
  return reading;
}

}  // namespace assay::lab
