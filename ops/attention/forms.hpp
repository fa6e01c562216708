#pragma once

#include <cstddef>

#include "ops/attention/attention.hpp"

namespace assay::ops::attention {

void run_reference(const Context& context, const AttentionArgs& args);
void run_vector(const Context& context, const AttentionArgs& args);

/// Throws Error(mismatch) unless kv_heads divides heads, no dimension is 0 and every segment's last run is as
/// long as the segment.
void check_shape(const AttentionArgs& args);

/// Keys in all runs of a segment.
inline std::size_t key_count(const AttentionSegment& segment) {
  std::size_t keys = 0;
  for (const KeyRun& run : segment.runs) keys += run.length;
  return keys;
}

}  // namespace assay::ops::attention
