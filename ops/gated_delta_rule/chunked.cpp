#include <array>
#include <limits>
#include <span>

#include "ops/gated_delta_rule/forms.hpp"

// Arrays of vectors need vectors of a size known at compile time.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gated_delta_rule/chunked.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/gated_delta_rule/panels-inl.h"

// With Γᵢ = Π_{m ≤ i} keep_m and Dᵢⱼ = Π_{j < m ≤ i} keep_m over the tokens of a chunk, and S the state
// before it, the values uᵢ that the delta rule writes solve
//   uᵢ + Σ_{j < i} writeᵢ Dᵢⱼ (k̂ᵢ·k̂ⱼ) uⱼ = writeᵢ (vᵢ − Γᵢ Sᵀk̂ᵢ)
// and then
//   oᵢ = Γᵢ Sᵀq̂ᵢ + Σ_{j ≤ i} Dᵢⱼ (q̂ᵢ·k̂ⱼ) uⱼ,    S ← Γ_last S + Σⱼ D_last,ⱼ k̂ⱼ ⊗ uⱼ
// (Yang, Wang, Zhang, Shen, Kim, "Parallelizing Linear Transformers with the Delta Rule over Sequence
// Length", 2024, section 3; with decay, "Gated Delta Networks", section 3.3). The authors' kernels invert the
// triangular system first so that chunks need S only late (flash-linear-attention, fla/ops/gated_delta_rule;
// transformers, torch_chunk_gated_delta_rule). One worker here takes a head's chunks in order, so the system
// is solved against its right-hand side by forward substitution: fewer operations, and no inverse to round.
//
// D is built as products of gates, as the recurrence builds it, not as exp of differences of running sums:
// nothing can overflow, and a gate near 0 costs the later ones no digits.

HWY_BEFORE_NAMESPACE();
namespace assay::ops::gdn {
namespace HWY_NAMESPACE {
namespace {

/// Rows of a tile: with a panel's vectors that is 16 or 8 running sums, enough to hide the latency.
constexpr std::size_t kTileRows = 4;

/// kTileRows rows of one panel.
struct Tile {
  // GCC does not compile an implicit constructor for the target at hand.
  HWY_INLINE Tile() {}
  Vector at[kTileRows][kPanelVectors];
};

HWY_INLINE Tile load_tile(const float* HWY_RESTRICT panel) {
  Tile tile;
  HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
    HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) {
      tile.at[r][c] = hn::Load(Tag(), panel + r * kPanelWidth + c * kLanes);
    }
  }
  return tile;
}

HWY_INLINE void store_tile(const Tile& tile, float* HWY_RESTRICT panel) {
  HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
    HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) {
      hn::Store(tile.at[r][c], Tag(), panel + r * kPanelWidth + c * kLanes);
    }
  }
}

/// tile[r, ·] ± Σ_{j < count} x[r · row_stride + j · step] · panel[j, ·], j ascending.
template <bool kSubtract = false>
HWY_INLINE void accumulate(Tile& tile, const float* HWY_RESTRICT x, std::size_t row_stride, std::size_t step,
                           const float* HWY_RESTRICT panel, std::size_t count) {
  const Tag d;
  for (std::size_t j = 0; j < count; ++j) {
    Vector row[kPanelVectors];
    HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) {
      row[c] = hn::Load(d, panel + j * kPanelWidth + c * kLanes);
    }
    HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
      const Vector factor = hn::Set(d, x[r * row_stride + j * step]);
      HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) {
        tile.at[r][c] = kSubtract ? hn::NegMulAdd(factor, row[c], tile.at[r][c])
                                  : hn::MulAdd(factor, row[c], tile.at[r][c]);
      }
    }
  }
}

HWY_INLINE Tile zero_tile() {
  Tile tile;
  HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
    HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) tile.at[r][c] = hn::Zero(Tag());
  }
  return tile;
}

/// What the tokens of a chunk do to one head, rows past the last token doing nothing.
struct ChunkGates {
  std::array<float, kMaxChunk> keep;
  std::array<float, kMaxChunk> write;
  std::array<float, kMaxChunk> kept;  ///< Γ: of the state before the chunk, up to and with each token
};

/// k̂ᵢ·k̂ⱼ and q̂ᵢ·k̂ⱼ for j ≤ i (and some beyond, in the same vector). Value heads share them.
HWY_INLINE void dot_keys(const Layout& layout, std::size_t count, float* scratch) {
  const Tag d;
  const float* k = scratch + layout.k;
  const float* q = scratch + layout.q;
  for (std::size_t i = 0; i < count; i += kTileRows) {
    for (std::size_t j = 0; j < i + kTileRows; j += kLanes) {
      Vector kk[kTileRows], qk[kTileRows];
      HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) kk[r] = qk[r] = hn::Zero(d);
      for (std::size_t x = 0; x < layout.key_stride; ++x) {
        const Vector column = hn::Load(d, scratch + layout.k_columns + x * layout.rows + j);
        HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
          kk[r] = hn::MulAdd(hn::Set(d, k[(i + r) * layout.key_stride + x]), column, kk[r]);
          qk[r] = hn::MulAdd(hn::Set(d, q[(i + r) * layout.key_stride + x]), column, qk[r]);
        }
      }
      HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
        hn::Store(kk[r], d, scratch + layout.kk + (i + r) * layout.rows + j);
        hn::Store(qk[r], d, scratch + layout.qk + (i + r) * layout.rows + j);
      }
    }
  }
}

/// Keys of the chunk, row by row and column by column, rows up to a whole tile zero; and their products.
void load_chunk(const GatedDeltaRuleArgs& args, const Layout& layout, std::size_t first, std::size_t count,
                std::size_t key_head, float* scratch) {
  load_keys(args, layout, first, count, key_head, scratch);
  const std::size_t rows = round_up(count, std::max(kTileRows, kLanes));
  const std::size_t padding = (rows - count) * layout.key_stride;
  std::fill_n(scratch + layout.q + count * layout.key_stride, padding, 0.0f);
  std::fill_n(scratch + layout.k + count * layout.key_stride, padding, 0.0f);
  for (std::size_t t = 0; t < rows; ++t) {
    for (std::size_t x = 0; x < layout.key_stride; ++x) {
      scratch[layout.k_columns + x * layout.rows + t] = scratch[layout.k + t * layout.key_stride + x];
    }
  }
  dot_keys(layout, count, scratch);
}

/// The triangular system and the decayed scores of one value head; leaves D_last in layout.decays.
HWY_INLINE void decay_products(const Layout& layout, const ChunkGates& chunk, std::size_t count,
                               float* scratch) {
  const Tag d;
  const Vector least = hn::Set(d, std::numeric_limits<float>::min());
  float* decays = scratch + layout.decays;
  std::fill_n(decays, layout.rows, 0.0f);
  for (std::size_t i = 0; i < count; ++i) {
    const Vector keep = hn::Set(d, chunk.keep[i]);
    const Vector write = hn::Set(d, chunk.write[i]);
    const std::size_t row = i * layout.rows;
    for (std::size_t j = 0; j <= i; j += kLanes) {
      // Subnormal products are slow on some processors and change nothing; NaN is kept.
      Vector decay = hn::Mul(hn::Load(d, decays + j), keep);
      decay = hn::IfThenZeroElse(hn::Lt(decay, least), decay);
      const Vector index = hn::Iota(d, static_cast<float>(j));
      decay = hn::IfThenElse(hn::Eq(index, hn::Set(d, static_cast<float>(i))), hn::Set(d, 1.0f), decay);
      hn::Store(decay, d, decays + j);
      const Vector kk = hn::Load(d, scratch + layout.kk + row + j);
      const Vector qk = hn::Load(d, scratch + layout.qk + row + j);
      hn::Store(hn::Mul(write, hn::Mul(decay, kk)), d, scratch + layout.lower + row + j);
      hn::Store(hn::Mul(decay, qk), d, scratch + layout.scores + row + j);
    }
  }
  const std::size_t padding = (round_up(count, kTileRows) - count) * layout.rows;
  std::fill_n(scratch + layout.lower + count * layout.rows, padding, 0.0f);
  std::fill_n(scratch + layout.scores + count * layout.rows, padding, 0.0f);
}

/// tile[r] += Σ factors[r, j] · rows[j] inside a tile on the diagonal, j < r or j ≤ r. Above the diagonal
/// nothing is multiplied by zero, so that no token sees a later one, were it NaN.
template <bool kWithDiagonal>
HWY_INLINE void accumulate_triangle(Tile& tile, const float* HWY_RESTRICT factors, std::size_t stride,
                                    const Tile& rows) {
  HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
    HWY_UNROLL(4) for (std::size_t j = 0; j < (kWithDiagonal ? r + 1 : r); ++j) {
      const Vector factor = hn::Set(Tag(), factors[r * stride + j]);
      HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) {
        tile.at[r][c] = kWithDiagonal ? hn::MulAdd(factor, rows.at[j][c], tile.at[r][c])
                                      : hn::NegMulAdd(factor, rows.at[j][c], tile.at[r][c]);
      }
    }
  }
}

/// u of kTileRows tokens from token i on: v holds v from row i on and u before it.
HWY_INLINE Tile solve_tile(const Layout& layout, const ChunkGates& chunk, std::size_t key_dim, std::size_t i,
                           const float* scratch, const float* HWY_RESTRICT state,
                           const float* HWY_RESTRICT v) {
  const Tag d;
  Tile u = zero_tile();
  accumulate(u, scratch + layout.k + i * layout.key_stride, layout.key_stride, 1, state, key_dim);
  HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
    const Vector kept = hn::Set(d, chunk.kept[i + r]);
    const Vector write = hn::Set(d, chunk.write[i + r]);
    HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) {
      const Vector value = hn::Load(d, v + (i + r) * kPanelWidth + c * kLanes);
      u.at[r][c] = hn::Mul(write, hn::NegMulAdd(kept, u.at[r][c], value));
    }
  }
  const float* lower = scratch + layout.lower + i * layout.rows;
  accumulate<true>(u, lower, layout.rows, 1, v, i);
  accumulate_triangle<false>(u, lower + i, layout.rows, u);
  return u;
}

/// o of the same tokens; u are their new values, v holds u before token i.
HWY_INLINE Tile output_tile(const Layout& layout, const ChunkGates& chunk, std::size_t key_dim, std::size_t i,
                            const float* scratch, const float* HWY_RESTRICT state,
                            const float* HWY_RESTRICT v, const Tile& u) {
  Tile o = zero_tile();
  accumulate(o, scratch + layout.q + i * layout.key_stride, layout.key_stride, 1, state, key_dim);
  HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
    const Vector kept = hn::Set(Tag(), chunk.kept[i + r]);
    HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) o.at[r][c] = hn::Mul(kept, o.at[r][c]);
  }
  const float* scores = scratch + layout.scores + i * layout.rows;
  accumulate(o, scores, layout.rows, 1, v, i);
  accumulate_triangle<true>(o, scores + i, layout.rows, u);
  return o;
}

/// S ← Γ_last S + Σⱼ k̂ⱼ ⊗ D_last,ⱼ uⱼ; scales u in place.
HWY_INLINE void advance_state(const Layout& layout, float kept, std::size_t key_dim, std::size_t count,
                              const float* scratch, float* HWY_RESTRICT u, float* HWY_RESTRICT state) {
  const Tag d;
  for (std::size_t j = 0; j < count; ++j) {
    const Vector decay = hn::Set(d, scratch[layout.decays + j]);
    for (std::size_t c = 0; c < kPanelWidth; c += kLanes) {
      float* at = u + j * kPanelWidth + c;
      hn::Store(hn::Mul(decay, hn::Load(d, at)), d, at);
    }
  }
  for (std::size_t x = 0; x < key_dim; x += kTileRows) {
    Tile tile = load_tile(state + x * kPanelWidth);
    HWY_UNROLL(4) for (std::size_t r = 0; r < kTileRows; ++r) {
      HWY_UNROLL(4) for (std::size_t c = 0; c < kPanelVectors; ++c) {
        tile.at[r][c] = hn::Mul(hn::Set(d, kept), tile.at[r][c]);
      }
    }
    accumulate(tile, scratch + layout.k + x, 1, layout.key_stride, u, count);
    store_tile(tile, state + x * kPanelWidth);
  }
}

void run_panel(const GatedDeltaRuleArgs& args, const Layout& layout, const ChunkGates& chunk,
               std::size_t count, std::size_t panel, const float* scratch, float* v, float* o, float* state) {
  v += panel * layout.rows * kPanelWidth;
  o += panel * layout.rows * kPanelWidth;
  state += panel * layout.key_stride * kPanelWidth;
  for (std::size_t i = 0; i < count; i += kTileRows) {
    const Tile u = solve_tile(layout, chunk, args.key_dim, i, scratch, state, v);
    store_tile(u, v + i * kPanelWidth);
    store_tile(output_tile(layout, chunk, args.key_dim, i, scratch, state, v, u), o + i * kPanelWidth);
  }
  advance_state(layout, chunk.kept[count - 1], args.key_dim, count, scratch, v, state);
}

ChunkGates load_gates(const GatedDeltaRuleArgs& args, std::size_t first, std::size_t count,
                      std::size_t head) {
  ChunkGates chunk;
  float kept = 1.0f;
  for (std::size_t t = 0; t < count; ++t) {
    const Gates gate = gates(args, first + t, head);
    kept *= gate.keep;
    if (kept < std::numeric_limits<float>::min()) kept = 0.0f;
    chunk.keep[t] = gate.keep;
    chunk.write[t] = gate.write;
    chunk.kept[t] = kept;
  }
  for (std::size_t t = count; t < round_up(count, kTileRows); ++t) chunk.write[t] = chunk.kept[t] = 0.0f;
  return chunk;
}

void run_head(const GatedDeltaRuleArgs& args, const Layout& layout, std::size_t first, std::size_t count,
              std::size_t head, float* scratch) {
  const ChunkGates chunk = load_gates(args, first, count, head);
  decay_products(layout, chunk, count, scratch);
  float* v = scratch + layout.v;
  float* o = scratch + layout.o;
  const std::size_t column = head * args.value_dim;
  const std::size_t padding = (round_up(count, kTileRows) - count) * kPanelWidth;
  to_panels(args.v.row(first) + column, args.v.stride, count, args.value_dim, v, layout.rows);
  const std::size_t member = head % (args.value_heads / args.key_heads);
  float* states = scratch + layout.state + member * layout.state_floats;
  for (std::size_t panel = 0; panel < panel_count(args.value_dim); ++panel) {
    std::fill_n(v + (panel * layout.rows + count) * kPanelWidth, padding, 0.0f);
    run_panel(args, layout, chunk, count, panel, scratch, v, o, states);
  }
  from_panels(o, layout.rows, args.o.row(first) + column, args.o.stride, count, args.value_dim);
}

void scan(const GatedDeltaRuleArgs& args, const Layout& layout, const SequenceSegment& segment,
          std::size_t key_head, float* scratch) {
  load_states(args, layout, segment.initial, key_head, scratch + layout.state);
  const std::size_t group = args.value_heads / args.key_heads;
  for (std::size_t t = 0; t < segment.length; t += layout.rows) {
    const std::size_t count = std::min(layout.rows, segment.length - t);
    load_chunk(args, layout, segment.first + t, count, key_head, scratch);
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
HWY_EXPORT(scan);
}  // namespace

void run_chunked(const Context& context, const GatedDeltaRuleArgs& args, std::size_t chunk) {
  check_shape(args);
  const device::Arena::Scope scope(context.arena);
  const Layout layout(args, chunk, /*chunked=*/true);
  float* storage = context.arena.allocate<float>(layout.total * context.threads.size()).data();
  const auto run = HWY_DYNAMIC_DISPATCH(scan);
  context.threads.parallel_for(args.segments.size() * args.key_heads,
                               [&](std::size_t item, std::size_t worker) {
                                 run(args, layout, args.segments[item / args.key_heads],
                                     item % args.key_heads, storage + worker * layout.total);
                               });
}

}  // namespace assay::ops::gdn
#endif  // HWY_ONCE
