#pragma once

#include <algorithm>
#include <cstddef>

#include "ops/attention/attention.hpp"

namespace assay::ops::attention {

void run_reference(const Context& context, const AttentionArgs& args);
void run_vector(const Context& context, const AttentionArgs& args);

/// Throws Error(mismatch) unless kv_heads divides heads, no dimension is 0 and every segment has as many keys
/// as the mask asks for.
void check_shape(const AttentionArgs& args);

/// Keys in all runs of a segment.
inline std::size_t key_count(const AttentionSegment& segment) {
  std::size_t keys = 0;
  for (const KeyRun& run : segment.runs) keys += run.length;
  return keys;
}

/// Keys [begin, end) of a segment.
struct KeyRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
};

/// What a query of a segment with so many keys sees; never nothing in a segment that check_shape has passed,
/// and neither end falls from one query to the next.
inline KeyRange seen_keys(const AttentionArgs& args, const AttentionSegment& segment, std::size_t keys,
                          std::size_t query) {
  switch (args.mask) {
    case AttentionMask::causal:
      return {0, keys - segment.length + query + 1};
    case AttentionMask::full:
      return {0, keys};
    case AttentionMask::sliding:
      // Compared so that no window is too large to add up.
      return {query - std::min(query, args.window),
              args.window < keys - query ? query + args.window + 1 : keys};
  }
  return {};
}

}  // namespace assay::ops::attention
