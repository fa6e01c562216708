#pragma once

#include <cstddef>
#include <string>

namespace assay::device {

/// Cores that this process may use (sched_getaffinity), at least 1.
std::size_t usable_cores();

/// Names what times are true of: "cpu-" and a slug of the processor's name, its instruction sets that forms
/// ask about, and `usable_cores()`. Lower-case letters, digits and hyphens.
std::string cpu_id();

}  // namespace assay::device
