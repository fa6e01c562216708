#include "backbone/backbone.hpp"

namespace assay::backbone {

void OpTimes::add(std::string_view op, double seconds, double operations) {
  for (Entry& entry : entries) {
    if (entry.op != op) continue;
    entry.seconds += seconds;
    entry.operations += operations;
    ++entry.calls;
    return;
  }
  entries.push_back({std::string(op), seconds, operations, 1});
}

}  // namespace assay::backbone
