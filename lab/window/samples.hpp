#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace assay::lab {

/// One timed stretch.
struct Sample {
  std::size_t item = 0;
  std::size_t form = 0;
  std::size_t process = 0;
  std::size_t repetition = 0;
  std::size_t order = 0;                     ///< in the whole window, from 0
  double start = 0;                          ///< seconds since the window began
  double wall_seconds = 0;                   ///< of one call, the device waited for
  std::optional<double> event_seconds = {};  ///< by the device's own events; none on a CPU
  std::optional<double> megahertz = {};      ///< of the device's cores after it; none on a CPU
};

/// Removes every sample whose device ran below `share` of `starting_megahertz` (nvbench does so below 75 %,
/// docs/cli_help.md, --throttle-threshold) and gives the number removed. A sample without a clock stays.
std::size_t drop_throttled(std::vector<Sample>& samples, double starting_megahertz, double share = 0.75);

}  // namespace assay::lab
