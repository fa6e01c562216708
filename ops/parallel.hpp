#pragma once

#include <algorithm>
#include <cstddef>

#include "device/thread_pool.hpp"

namespace assay::ops {

/// Elements that one work item handles at least: a few microseconds, against the pool's fraction of one.
inline constexpr std::size_t kElementsPerItem = 8192;

/// Runs body(first, last) over disjoint ranges that cover [0, count), in parallel; `elements` is the work in
/// each of the count. The ranges do not depend on the number of threads.
template <class Body>
void parallel_ranges(device::ThreadPool& threads, std::size_t count, std::size_t elements, const Body& body) {
  const std::size_t grain = std::max<std::size_t>(1, kElementsPerItem / std::max<std::size_t>(1, elements));
  threads.parallel_for((count + grain - 1) / grain, [&](std::size_t index, std::size_t /*worker*/) {
    body(index * grain, std::min(count, (index + 1) * grain));
  });
}

}  // namespace assay::ops
