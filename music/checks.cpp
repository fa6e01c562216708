#include "music/checks.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace assay::music {

void check_finite(std::span<const float> values, const std::string& stage) {
  const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  if (bad == values.end()) return;
  throw Error(
      ErrorKind::non_finite,
      {.where = stage,
       .found = "a NaN or infinity at value " + std::to_string(bad - values.begin()) + " of " +
                std::to_string(values.size()),
       .advice =
           "the weights overflow in this precision: run with --precision fp32 or check the checkpoint"});
}

void StopPoint::check() const {
  if (token.stop_requested())
    throw Error(ErrorKind::cancelled, {.where = stage, .found = "stopped on request"});
}

}  // namespace assay::music
