#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::lab {

/// Another program on a GPU.
struct GpuProcess {
  std::uint32_t pid = 0;
  std::string name;  ///< empty where it cannot be seen from here
};

/// A GPU as NVML sees it; what a device does not report is left at its default.
struct GpuState {
  std::string name;
  std::uint32_t sm_megahertz = 0;
  std::uint32_t max_sm_megahertz = 0;
  std::uint32_t memory_megahertz = 0;
  std::uint32_t celsius = 0;
  std::vector<std::string> throttle_reasons;  ///< why the clocks are below what was asked for
  std::vector<GpuProcess> processes;
};

struct GpuReading {
  std::string absent;  ///< why there is nothing; empty where NVML answered
  std::vector<GpuState> gpus;
};

/// The machine's NVIDIA GPUs through the driver's own library, which is loaded when this is called and not
/// needed to run (NVML API reference, nvml.h). Takes up to a second: call it outside of timed stretches.
GpuReading read_gpus(const std::string& library = "libnvidia-ml.so.1");

}  // namespace assay::lab
