#pragma once

#include <span>
#include <stop_token>
#include <string>

namespace assay::music {

/// Error(non_finite) that names the stage where any of the values is a NaN or infinity.
void check_finite(std::span<const float> values, const std::string& stage);

/// Where a long computation may be ended: looked at every tenth of a second or so.
struct StopPoint {
  std::stop_token token = {};
  const char* stage = "";

  /// Error(cancelled) that names the stage where a stop is requested.
  void check() const;
};

}  // namespace assay::music
