#include "backbone/op_observer.hpp"

#include <algorithm>

namespace assay::backbone {

void OpTimes::on_call(const OpCall& call) {
  auto entry = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.op == call.op; });
  if (entry == entries.end()) entry = entries.insert(entry, {std::string(call.op)});
  entry->seconds += std::chrono::duration<double>(call.end - call.begin).count();
  entry->operations += call.operations;
  ++entry->calls;
}

}  // namespace assay::backbone
