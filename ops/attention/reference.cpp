#include <algorithm>
#include <cmath>
#include <span>

#include "ops/attention/forms.hpp"

namespace assay::ops::attention {
namespace {

/// Calls body(index in `seen`, k, v) for the keys of the segment that are seen, in order.
template <class Body>
void for_each_key(const AttentionSegment& segment, const KeyRange& seen, const Body& body) {
  std::size_t run_begin = 0;
  for (const KeyRun& run : segment.runs) {
    const std::size_t begin = std::max(run_begin, seen.begin);
    const std::size_t end = std::min(run_begin + run.length, seen.end);
    for (std::size_t key = begin; key < end; ++key) {
      body(key - seen.begin, run.k.row(key - run_begin), run.v.row(key - run_begin));
    }
    run_begin += run.length;
  }
}

/// Scores to weights, in place.
void softmax(std::span<float> scores) {
  const float maximum = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) {
    score = std::exp(score - maximum);
    sum += score;
  }
  for (float& score : scores) score /= sum;
}

/// `storage` has room for all keys.
void run_query(const AttentionArgs& args, const AttentionSegment& segment, const KeyRange& seen,
               std::size_t query, std::size_t head, std::span<float> storage) {
  const std::span<float> scores = storage.first(seen.size());
  const std::size_t row = segment.first + query;
  const std::size_t kv_offset = head / (args.heads / args.kv_heads) * args.head_dim;
  const float* q = args.q.row(row) + head * args.q_head_stride;
  for_each_key(segment, seen, [&](std::size_t key, const float* k, const float*) {
    float dot = 0;
    for (std::size_t d = 0; d < args.head_dim; ++d) dot += q[d] * k[kv_offset + d];
    scores[key] = args.scale * dot;
  });
  softmax(scores);

  float* out = args.out.row(row) + head * args.head_dim;
  std::fill_n(out, args.head_dim, 0.0f);
  for_each_key(segment, seen, [&](std::size_t key, const float*, const float* v) {
    for (std::size_t d = 0; d < args.head_dim; ++d) out[d] += scores[key] * v[kv_offset + d];
  });
  if (args.gate.data == nullptr) return;
  const float* gate = args.gate.row(row) + head * args.gate_head_stride;
  for (std::size_t d = 0; d < args.head_dim; ++d) out[d] *= 1.0f / (1.0f + std::exp(-gate[d]));
}

}  // namespace

void run_reference(const Context& context, const AttentionArgs& args) {
  check_shape(args);
  std::size_t most_keys = 0;
  for (const AttentionSegment& segment : args.segments) most_keys = std::max(most_keys, key_count(segment));
  const device::Arena::Scope scope(context.arena);
  const std::span<float> storage = context.arena.allocate<float>(most_keys * context.threads.size());
  for (const AttentionSegment& segment : args.segments) {
    const std::size_t keys = key_count(segment);
    context.threads.parallel_for(segment.length * args.heads, [&](std::size_t item, std::size_t worker) {
      const std::size_t query = item / args.heads;
      run_query(args, segment, seen_keys(args, segment, keys, query), query, item % args.heads,
                storage.subspan(worker * most_keys, most_keys));
    });
  }
}

}  // namespace assay::ops::attention
