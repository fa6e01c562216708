#include <array>
#include <span>

#include "ops/gated_delta_rule/forms.hpp"

// Arrays of vectors need vectors of a size known at compile time.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gated_delta_rule/vector.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/gated_delta_rule/panels-inl.h"

namespace assay::ops::gdn {
#ifndef ASSAY_OPS_GATED_DELTA_RULE_VECTOR_ONCE
#define ASSAY_OPS_GATED_DELTA_RULE_VECTOR_ONCE
/// Tokens whose keys are normalised at once: enough to make a panel's way into the cache cheap.
constexpr std::size_t kBlockTokens = 32;
#endif
}  // namespace assay::ops::gdn

HWY_BEFORE_NAMESPACE();
namespace assay::ops::gdn {
namespace HWY_NAMESPACE {
namespace {

/// Sᵀk̂ and Sᵀq̂ of one token for one panel, S before the token.
struct Reads {
  // GCC does not compile an implicit constructor for the target at hand.
  HWY_INLINE Reads() {}
  Vector k[kPanelVectors];
  Vector q[kPanelVectors];
};

HWY_INLINE Reads zero_reads() {
  Reads reads;
  HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) {
    reads.k[c] = hn::Zero(Tag());
    reads.q[c] = hn::Zero(Tag());
  }
  return reads;
}

HWY_INLINE Reads read(const float* HWY_RESTRICT state, std::size_t key_dim, const float* HWY_RESTRICT k,
                      const float* HWY_RESTRICT q) {
  const Tag d;
  Reads reads = zero_reads();
  for (std::size_t i = 0; i < key_dim; ++i) {
    const Vector ki = hn::Set(d, k[i]);
    const Vector qi = hn::Set(d, q[i]);
    HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) {
      const Vector s = hn::Load(d, state + i * kPanelWidth + c * kLanes);
      reads.k[c] = hn::MulAdd(ki, s, reads.k[c]);
      reads.q[c] = hn::MulAdd(qi, s, reads.q[c]);
    }
  }
  return reads;
}

/// S ← keep · S + k̂ ⊗ delta, and the next token's reads in the same pass: the state is touched once a token.
HWY_INLINE Reads update_and_read(float* HWY_RESTRICT state, std::size_t key_dim, float keep,
                                 const float* HWY_RESTRICT k, const Vector (&delta)[kPanelVectors],
                                 const float* HWY_RESTRICT next_k, const float* HWY_RESTRICT next_q) {
  const Tag d;
  const Vector keep_all = hn::Set(d, keep);
  Reads reads = zero_reads();
  for (std::size_t i = 0; i < key_dim; ++i) {
    const Vector ki = hn::Set(d, k[i]);
    const Vector next_ki = hn::Set(d, next_k[i]);
    const Vector next_qi = hn::Set(d, next_q[i]);
    HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) {
      float* at = state + i * kPanelWidth + c * kLanes;
      const Vector s = hn::MulAdd(ki, delta[c], hn::Mul(keep_all, hn::Load(d, at)));
      hn::Store(s, d, at);
      reads.k[c] = hn::MulAdd(next_ki, s, reads.k[c]);
      reads.q[c] = hn::MulAdd(next_qi, s, reads.q[c]);
    }
  }
  return reads;
}

HWY_INLINE float dot(const float* HWY_RESTRICT x, const float* HWY_RESTRICT y, std::size_t count) {
  const Tag d;
  Vector sum = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += kLanes) {
    sum = hn::MulAdd(hn::Load(d, x + i), hn::Load(d, y + i), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// What the tokens of a block do, the same for every panel.
struct BlockGates {
  std::array<Gates, kBlockTokens> gates;
  std::array<float, kBlockTokens> qk;  ///< q̂·k̂ of each token
};

/// One panel of one value head through the tokens of a block. Since S_t = keep · S + k̂ ⊗ delta, the output
/// Sₜᵀq̂ is keep · Sᵀq̂ + (q̂·k̂) delta: both reads see the state before the token.
HWY_INLINE void run_panel(const GatedDeltaRuleArgs& args, const Layout& layout, const BlockGates& block,
                          std::size_t count, const float* q, const float* k, const float* v, float* o,
                          float* state) {
  const Tag d;
  Reads reads = read(state, args.key_dim, k, q);
  for (std::size_t t = 0; t < count; ++t) {
    const Vector keep = hn::Set(d, block.gates[t].keep);
    const Vector write = hn::Set(d, block.gates[t].write);
    const Vector qk = hn::Set(d, block.qk[t]);
    Vector delta[kPanelVectors];
    HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) {
      const std::size_t at = t * kPanelWidth + c * kLanes;
      delta[c] = hn::Mul(write, hn::NegMulAdd(keep, reads.k[c], hn::Load(d, v + at)));
      hn::Store(hn::MulAdd(qk, delta[c], hn::Mul(keep, reads.q[c])), d, o + at);
    }
    // The last token reads for itself again; nobody looks.
    const std::size_t next = std::min(t + 1, count - 1) * layout.key_stride;
    reads = update_and_read(state, args.key_dim, block.gates[t].keep, k + t * layout.key_stride, delta,
                            k + next, q + next);
  }
}

void run_head(const GatedDeltaRuleArgs& args, const Layout& layout, std::size_t first, std::size_t count,
              std::size_t head, float* scratch) {
  BlockGates block;
  for (std::size_t t = 0; t < count; ++t) {
    const std::size_t row = t * layout.key_stride;
    block.gates[t] = gates(args, first + t, head);
    block.qk[t] = dot(scratch + layout.q + row, scratch + layout.k + row, layout.key_stride);
  }
  const std::size_t column = head * args.value_dim;
  to_panels(args.v.row(first) + column, args.v.stride, count, args.value_dim, scratch + layout.v,
            layout.rows);
  const std::size_t member = head % (args.value_heads / args.key_heads);
  float* states = scratch + layout.state + member * layout.state_floats;
  for (std::size_t panel = 0; panel < panel_count(args.value_dim); ++panel) {
    const std::size_t rows = panel * layout.rows * kPanelWidth;
    run_panel(args, layout, block, count, scratch + layout.q, scratch + layout.k, scratch + layout.v + rows,
              scratch + layout.o + rows, states + panel * layout.key_stride * kPanelWidth);
  }
  from_panels(scratch + layout.o, layout.rows, args.o.row(first) + column, args.o.stride, count,
              args.value_dim);
}

void recur(const GatedDeltaRuleArgs& args, const Layout& layout, const SequenceSegment& segment,
           std::size_t key_head, float* scratch) {
  load_states(args, layout, segment.initial, key_head, scratch + layout.state);
  const std::size_t group = args.value_heads / args.key_heads;
  for (std::size_t t = 0; t < segment.length; t += kBlockTokens) {
    const std::size_t count = std::min(kBlockTokens, segment.length - t);
    load_keys(args, layout, segment.first + t, count, key_head, scratch);
    for (std::size_t member = 0; member < group; ++member) {
      run_head(args, layout, segment.first + t, count, key_head * group + member, scratch);
    }
  }
  store_states(args, layout, scratch + layout.state, key_head, segment.final);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace assay::ops::gdn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops::gdn {
namespace {
HWY_EXPORT(recur);
}  // namespace

void run_vector(const Context& context, const GatedDeltaRuleArgs& args) {
  check_shape(args);
  const device::Arena::Scope scope(context.arena);
  const Layout layout(args, kBlockTokens, /*chunked=*/false);
  float* storage = context.arena.allocate<float>(layout.total * context.threads.size()).data();
  const auto run = HWY_DYNAMIC_DISPATCH(recur);
  context.threads.parallel_for(args.segments.size() * args.key_heads,
                               [&](std::size_t item, std::size_t worker) {
                                 run(args, layout, args.segments[item / args.key_heads],
                                     item % args.key_heads, storage + worker * layout.total);
                               });
}

}  // namespace assay::ops::gdn
#endif  // HWY_ONCE
