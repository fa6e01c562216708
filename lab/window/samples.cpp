#include "lab/window/samples.hpp"

namespace assay::lab {

std::size_t drop_throttled(std::vector<Sample>& samples, double starting_megahertz, double share) {
  return std::erase_if(samples, [&](const Sample& sample) {
    return sample.megahertz && *sample.megahertz < share * starting_megahertz;
  });
}

}  // namespace assay::lab
