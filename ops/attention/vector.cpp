#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

#include "ops/attention/forms.hpp"

// Arrays of vectors need vectors of a size known at compile time.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/vector.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/attention/exp-inl.h"

// One work item is a tile: some queries of one segment with all heads that read one key-value head. A row of
// the tile is one query and head, query by query, so that neither end of what a row sees ever falls. Rows lie
// in the lanes of vectors: scores = K · Qᵀ takes K as it is stored, one key element against a vector of rows,
// and softmax runs along the keys in every lane at once, with no sums across lanes. So each row's arithmetic
// is one chain over d, then over the keys in their order, whatever its neighbours, the tile or the vector's
// length; masked scores are computed with the others and never read.
namespace assay::ops::attention {
#ifndef ASSAY_OPS_ATTENTION_VECTOR_ONCE
#define ASSAY_OPS_ATTENTION_VECTOR_ONCE

/// Rows of a tile, when the queries and grouped heads allow: K and V are read once a tile.
constexpr std::size_t kTileRows = 128;
/// Keys whose values are gathered at once: one panel of them stays in the first-level cache.
constexpr std::size_t kBlockKeys = 64;
/// Widest panel of any instruction set here, in floats; every offset in a worker's scratch is a multiple.
constexpr std::size_t kMaxPanelWidth = 32;

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

struct Tile {
  const AttentionSegment* segment;
  std::size_t first;  ///< query in its segment
  std::size_t queries;
  std::size_t kv_head;
};

/// A worker's scratch. Matrices are in panels as wide as two vectors, one after the other.
struct Scratch {
  const float** k;  ///< [keys]
  const float** v;  ///< [keys]
  float* begin;     ///< [rows], the first key of the tile that each row sees
  float* end;       ///< [rows], one after the last
  float* q;         ///< [panel of rows, head_dim, width]
  float* scores;    ///< [panel of rows, keys, width]
  float* values;    ///< [panel of head_dim, kBlockKeys, width]
  float* out;       ///< [panel of head_dim, rows, width]
};

#endif
}  // namespace assay::ops::attention

HWY_BEFORE_NAMESPACE();
namespace assay::ops::attention {
namespace HWY_NAMESPACE {
namespace {

using Tag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Tag>;
constexpr std::size_t kLanes = hn::MaxLanes(Tag());
constexpr std::size_t kVectors = 2;
constexpr std::size_t kWidth = kVectors * kLanes;
static_assert(kMaxPanelWidth % kWidth == 0);

// Rows of sums held in registers: 16 vectors of 32 registers, 8 of 16. A panel holds whole tiles of them.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr std::size_t kSums = 8;
#else
constexpr std::size_t kSums = std::min<std::size_t>(4, kWidth);
#endif
static_assert(kWidth % kSums == 0);

struct Sums {
  // GCC does not compile an implicit constructor for the target at hand.
  HWY_INLINE Sums() {}
  Vector at[kSums][kVectors];
};

struct TileShape {
  std::size_t group;  ///< query heads of the key-value head
  std::size_t rows;   ///< queries · group, padded to whole panels
  std::size_t queries;
  KeyRange keys;  ///< of the segment, that some row sees; a tile counts its keys from keys.begin

  std::size_t score_rows() const { return round_up(keys.size(), kSums); }
};

/// Where each key's and value's part for this head is, over all runs in order; then the last again, up to a
/// whole tile of keys.
void find_keys(const Tile& tile, const TileShape& shape, std::size_t head_dim, const Scratch& scratch) {
  std::size_t key = 0;
  std::size_t run_begin = 0;
  for (const KeyRun& run : tile.segment->runs) {
    const std::size_t begin = std::max(run_begin, shape.keys.begin);
    const std::size_t end = std::min(run_begin + run.length, shape.keys.end);
    for (std::size_t i = begin; i < end; ++i, ++key) {
      scratch.k[key] = run.k.row(i - run_begin) + tile.kv_head * head_dim;
      scratch.v[key] = run.v.row(i - run_begin) + tile.kv_head * head_dim;
    }
    run_begin += run.length;
  }
  for (; key < shape.score_rows(); ++key) scratch.k[key] = scratch.k[key - 1];
}

/// Rows of padding see what the last row does.
void find_seen_keys(const AttentionArgs& args, const Tile& tile, const TileShape& shape,
                    const Scratch& scratch) {
  const std::size_t keys = key_count(*tile.segment);
  for (std::size_t row = 0; row < shape.rows; ++row) {
    const std::size_t query = std::min(row / shape.group, shape.queries - 1);
    const KeyRange seen = seen_keys(args, *tile.segment, keys, tile.first + query);
    scratch.begin[row] = static_cast<float>(seen.begin - shape.keys.begin);
    scratch.end[row] = static_cast<float>(seen.end - shape.keys.begin);
  }
}

/// Keys of the tile that some of the rows [row, row + count) see.
HWY_INLINE KeyRange seen_by_any(const Scratch& scratch, std::size_t row, std::size_t count) {
  return {static_cast<std::size_t>(scratch.begin[row]),
          static_cast<std::size_t>(scratch.end[row + count - 1])};
}

/// Those that all of them see: empty, at the end of what any sees, where there are none.
HWY_INLINE KeyRange seen_by_all(const Scratch& scratch, std::size_t row, std::size_t count) {
  const std::size_t begin = static_cast<std::size_t>(scratch.begin[row + count - 1]);
  const std::size_t end = static_cast<std::size_t>(scratch.end[row]);
  if (begin < end) return {begin, end};
  const std::size_t last = static_cast<std::size_t>(scratch.end[row + count - 1]);
  return {last, last};
}

const float* query_row(const AttentionArgs& args, const Tile& tile, const TileShape& shape, std::size_t row) {
  const std::size_t head = tile.kv_head * shape.group + row % shape.group;
  return args.q.row(tile.segment->first + tile.first + row / shape.group) + head * args.q_head_stride;
}

/// Four rows into four neighbouring lanes of the columns of `to`; returns how many elements of each were
/// done.
HWY_INLINE std::size_t transpose_four([[maybe_unused]] const float* const (&rows)[4],
                                      [[maybe_unused]] std::size_t count,
                                      [[maybe_unused]] float* HWY_RESTRICT to) {
  std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  for (; done + 4 <= count; done += 4) {
    const auto a = hn::LoadU(d, rows[0] + done), b = hn::LoadU(d, rows[1] + done);
    const auto c = hn::LoadU(d, rows[2] + done), e = hn::LoadU(d, rows[3] + done);
    const auto ab_low = hn::InterleaveLower(d, a, b), ab_high = hn::InterleaveUpper(d, a, b);
    const auto ce_low = hn::InterleaveLower(d, c, e), ce_high = hn::InterleaveUpper(d, c, e);
    hn::Store(hn::ConcatLowerLower(d, ce_low, ab_low), d, to + done * kWidth);
    hn::Store(hn::ConcatUpperUpper(d, ce_low, ab_low), d, to + (done + 1) * kWidth);
    hn::Store(hn::ConcatLowerLower(d, ce_high, ab_high), d, to + (done + 2) * kWidth);
    hn::Store(hn::ConcatUpperUpper(d, ce_high, ab_high), d, to + (done + 3) * kWidth);
  }
#endif
  return done;
}

/// Qᵀ of the tile, rows of padding zero.
void load_queries(const AttentionArgs& args, const Tile& tile, const TileShape& shape,
                  float* HWY_RESTRICT to) {
  const std::size_t used = shape.queries * shape.group;
  std::size_t done = 0;  // elements of the four rows at hand
  for (std::size_t row = 0; row < shape.rows; ++row) {
    float* column = to + row / kWidth * kWidth * args.head_dim + row % kWidth;
    const float* q = row < used ? query_row(args, tile, shape, row) : nullptr;
    if (row % 4 == 0) {
      done = 0;
      if (row + 4 <= used) {
        done = transpose_four({q, query_row(args, tile, shape, row + 1),
                               query_row(args, tile, shape, row + 2), query_row(args, tile, shape, row + 3)},
                              args.head_dim, column);
      }
    }
    for (std::size_t d = done; d < args.head_dim; ++d) column[d * kWidth] = q != nullptr ? q[d] : 0.0f;
  }
}

/// Scores of kSums keys against one panel of rows.
HWY_INLINE void score_keys(const float* const* HWY_RESTRICT keys, const float* HWY_RESTRICT q,
                           std::size_t head_dim, float scale, float* HWY_RESTRICT scores) {
  const Tag tag;
  Sums sums;
  HWY_UNROLL(8) for (std::size_t r = 0; r < kSums; ++r) {
    HWY_UNROLL(2) for (std::size_t c = 0; c < kVectors; ++c) sums.at[r][c] = hn::Zero(tag);
  }
  const float* k[kSums];
  HWY_UNROLL(8) for (std::size_t r = 0; r < kSums; ++r) k[r] = keys[r];
  for (std::size_t d = 0; d < head_dim; ++d) {
    Vector row[kVectors];
    HWY_UNROLL(2)
    for (std::size_t c = 0; c < kVectors; ++c) row[c] = hn::Load(tag, q + d * kWidth + c * kLanes);
    HWY_UNROLL(8) for (std::size_t r = 0; r < kSums; ++r) {
      const Vector factor = hn::Set(tag, k[r][d]);
      HWY_UNROLL(2) for (std::size_t c = 0; c < kVectors; ++c) {
        sums.at[r][c] = hn::MulAdd(factor, row[c], sums.at[r][c]);
      }
    }
  }
  HWY_UNROLL(8) for (std::size_t r = 0; r < kSums; ++r) {
    HWY_UNROLL(2) for (std::size_t c = 0; c < kVectors; ++c) {
      hn::Store(hn::Mul(hn::Set(tag, scale), sums.at[r][c]), tag, scores + r * kWidth + c * kLanes);
    }
  }
}

void score_tile(const AttentionArgs& args, const TileShape& shape, const Scratch& scratch) {
  // A block of keys meets every panel of rows while it is in the second-level cache.
  for (std::size_t block = 0; block < shape.score_rows(); block += kBlockKeys) {
    for (std::size_t panel = 0; panel < shape.rows; panel += kWidth) {
      const KeyRange seen = seen_by_any(scratch, panel, kWidth);
      const std::size_t begin = std::max(block, seen.begin / kSums * kSums);
      const std::size_t end = std::min(block + kBlockKeys, round_up(seen.end, kSums));
      float* scores = scratch.scores + panel * shape.score_rows();
      for (std::size_t key = begin; key < end; key += kSums) {
        score_keys(scratch.k + key, scratch.q + panel * args.head_dim, args.head_dim, args.scale,
                   scores + key * kWidth);
      }
    }
  }
}

/// What the lanes of one vector of rows see.
struct SeenByLanes {
  Vector begin;
  Vector end;
  KeyRange any;
  KeyRange all;
};

/// Calls body(key, which lanes see it) for the keys that some lane sees and others do not, in order, and
/// whole(key) for those that all see.
template <class Body, class Whole>
HWY_INLINE void for_each_seen_key(const SeenByLanes& seen, const Body& body, const Whole& whole) {
  const Tag d;
  const auto sees = [d, &seen](std::size_t key) HWY_ATTR {
    const Vector at = hn::Set(d, static_cast<float>(key));
    return hn::And(hn::Ge(at, seen.begin), hn::Lt(at, seen.end));
  };
  for (std::size_t key = seen.any.begin; key < seen.all.begin; ++key) body(key, sees(key));
  for (std::size_t key = seen.all.begin; key < seen.all.end; ++key) whole(key);
  for (std::size_t key = seen.all.end; key < seen.any.end; ++key) body(key, sees(key));
}

/// Scores of one vector of rows to weights, in place.
HWY_INLINE void softmax(float* HWY_RESTRICT scores, const SeenByLanes& seen) {
  const Tag d;
  using Mask = hn::Mask<Tag>;
  Vector maximum = hn::Set(d, -std::numeric_limits<float>::infinity());
  for_each_seen_key(
      seen,
      [&](std::size_t key, Mask sees) HWY_ATTR {
        const Vector score = hn::Load(d, scores + key * kWidth);
        maximum = hn::IfThenElse(sees, hn::Max(maximum, score), maximum);
      },
      [&](std::size_t key) HWY_ATTR { maximum = hn::Max(maximum, hn::Load(d, scores + key * kWidth)); });
  Vector sum = hn::Zero(d);
  const auto weigh = [&](std::size_t key) HWY_ATTR {
    const Vector weight = exp_nonpositive(d, hn::Sub(hn::Load(d, scores + key * kWidth), maximum));
    hn::Store(weight, d, scores + key * kWidth);
    return weight;
  };
  for_each_seen_key(
      seen,
      [&](std::size_t key, Mask sees) HWY_ATTR { sum = hn::IfThenElse(sees, hn::Add(sum, weigh(key)), sum); },
      [&](std::size_t key) HWY_ATTR { sum = hn::Add(sum, weigh(key)); });
  // Weights, not the output, are divided: a sum of undivided values could overflow.
  const Vector factor = hn::Div(hn::Set(d, 1.0f), sum);
  for (std::size_t key = seen.any.begin; key < seen.any.end; ++key) {
    hn::Store(hn::Mul(factor, hn::Load(d, scores + key * kWidth)), d, scores + key * kWidth);
  }
}

void softmax_tile(const TileShape& shape, const Scratch& scratch) {
  const Tag d;
  for (std::size_t row = 0; row < shape.rows; row += kLanes) {
    softmax(scratch.scores + row / kWidth * kWidth * shape.score_rows() + row % kWidth,
            {.begin = hn::Load(d, scratch.begin + row),
             .end = hn::Load(d, scratch.end + row),
             .any = seen_by_any(scratch, row, kLanes),
             .all = seen_by_all(scratch, row, kLanes)});
  }
}

/// Values of keys [first, first + count) into panels, columns padded with zeros.
void load_values(const Scratch& scratch, std::size_t first, std::size_t count, std::size_t head_dim) {
  const Tag d;
  const std::size_t whole = head_dim / kWidth * kWidth;
  for (std::size_t key = 0; key < count; ++key) {
    const float* v = scratch.v[first + key];
    float* to = scratch.values + key * kWidth;
    for (std::size_t column = 0; column < whole; column += kWidth) {
      for (std::size_t c = 0; c < kWidth; c += kLanes) {
        hn::Store(hn::LoadU(d, v + column + c), d, to + column * kBlockKeys + c);
      }
    }
    if (whole == head_dim) continue;
    std::copy_n(v + whole, head_dim - whole, to + whole * kBlockKeys);
    std::fill_n(to + whole * kBlockKeys + head_dim - whole, whole + kWidth - head_dim, 0.0f);
  }
}

/// out[r, ·] += Σ weights[key, r] · values[key, ·] over `count` keys, for kSums rows.
HWY_INLINE void add_values(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values,
                           std::size_t count, float* HWY_RESTRICT out) {
  const Tag d;
  Sums sums;
  HWY_UNROLL(8) for (std::size_t r = 0; r < kSums; ++r) {
    HWY_UNROLL(2)
    for (std::size_t c = 0; c < kVectors; ++c) sums.at[r][c] = hn::Load(d, out + r * kWidth + c * kLanes);
  }
  for (std::size_t key = 0; key < count; ++key) {
    Vector row[kVectors];
    HWY_UNROLL(2)
    for (std::size_t c = 0; c < kVectors; ++c) row[c] = hn::Load(d, values + key * kWidth + c * kLanes);
    HWY_UNROLL(8) for (std::size_t r = 0; r < kSums; ++r) {
      const Vector factor = hn::Set(d, weights[key * kWidth + r]);
      HWY_UNROLL(2) for (std::size_t c = 0; c < kVectors; ++c) {
        sums.at[r][c] = hn::MulAdd(factor, row[c], sums.at[r][c]);
      }
    }
  }
  HWY_UNROLL(8) for (std::size_t r = 0; r < kSums; ++r) {
    HWY_UNROLL(2)
    for (std::size_t c = 0; c < kVectors; ++c) hn::Store(sums.at[r][c], d, out + r * kWidth + c * kLanes);
  }
}

/// The same for one row: the keys that some rows of a tile see and others do not. Those are left out, not
/// multiplied by zero, so that no query sees a later one, were it NaN.
HWY_INLINE void add_values_to_row(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values,
                                  std::size_t begin, std::size_t end, float* HWY_RESTRICT out) {
  const Tag d;
  for (std::size_t key = begin; key < end; ++key) {
    const Vector factor = hn::Set(d, weights[key * kWidth]);
    for (std::size_t c = 0; c < kWidth; c += kLanes) {
      hn::Store(hn::MulAdd(factor, hn::Load(d, values + key * kWidth + c), hn::Load(d, out + c)), d, out + c);
    }
  }
}

/// What of the keys [0, count) after `first` is in a range of the tile's keys.
HWY_INLINE KeyRange in_block(const KeyRange& keys, std::size_t first, std::size_t count) {
  const auto clip = [&](std::size_t key) { return std::min(key - std::min(key, first), count); };
  return {clip(keys.begin), clip(keys.end)};
}

/// Adds a block of keys from `first` on to the kSums rows from `row` on in one panel of the output.
HWY_INLINE void add_block(const Scratch& scratch, std::size_t row, std::size_t first, std::size_t count,
                          const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values,
                          float* HWY_RESTRICT out) {
  const KeyRange any = in_block(seen_by_any(scratch, row, kSums), first, count);
  const KeyRange all = in_block(seen_by_all(scratch, row, kSums), first, count);
  const auto add_rows = [&](std::size_t begin, std::size_t end) HWY_ATTR {
    if (begin == end) return;
    for (std::size_t r = 0; r < kSums; ++r) {
      const KeyRange own = in_block(seen_by_any(scratch, row + r, 1), first, count);
      add_values_to_row(weights + r, values, std::max(begin, own.begin), std::min(end, own.end),
                        out + r * kWidth);
    }
  };
  add_rows(any.begin, all.begin);
  if (all.size() > 0) {
    add_values(weights + all.begin * kWidth, values + all.begin * kWidth, all.size(), out);
  }
  add_rows(all.end, any.end);
}

void weigh_values(const AttentionArgs& args, const TileShape& shape, const Scratch& scratch) {
  const std::size_t columns = round_up(args.head_dim, kWidth);
  std::fill_n(scratch.out, columns * shape.rows, 0.0f);
  for (std::size_t first = 0; first < shape.keys.size(); first += kBlockKeys) {
    const std::size_t count = std::min(kBlockKeys, shape.keys.size() - first);
    load_values(scratch, first, count, args.head_dim);
    for (std::size_t column = 0; column < columns; column += kWidth) {
      for (std::size_t row = 0; row < shape.rows; row += kSums) {
        const float* weights = scratch.scores + row / kWidth * kWidth * shape.score_rows() + row % kWidth;
        add_block(scratch, row, first, count, weights + first * kWidth, scratch.values + column * kBlockKeys,
                  scratch.out + column * shape.rows + row * kWidth);
      }
    }
  }
}

/// 1 / (1 + e⁻ˣ), by the exponential of −|x|, which cannot overflow.
HWY_INLINE Vector sigmoid(Vector x) {
  const Tag d;
  const Vector one = hn::Set(d, 1.0f);
  const Vector e = exp_nonpositive(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

/// One panel of one row of the output, gated where there is a gate.
HWY_INLINE void store_panel(const float* HWY_RESTRICT from, const float* HWY_RESTRICT gate,
                            float* HWY_RESTRICT to) {
  const Tag d;
  for (std::size_t c = 0; c < kWidth; c += kLanes) {
    const Vector value = hn::Load(d, from + c);
    hn::StoreU(gate == nullptr ? value : hn::Mul(value, sigmoid(hn::LoadU(d, gate + c))), d, to + c);
  }
}

void store_output(const AttentionArgs& args, const Tile& tile, const TileShape& shape,
                  const Scratch& scratch) {
  const std::size_t whole = args.head_dim / kWidth * kWidth;
  for (std::size_t row = 0; row < shape.queries * shape.group; ++row) {
    const std::size_t head = tile.kv_head * shape.group + row % shape.group;
    const std::size_t token = tile.segment->first + tile.first + row / shape.group;
    const float* from = scratch.out + row * kWidth;
    const float* gate =
        args.gate.data == nullptr ? nullptr : args.gate.row(token) + head * args.gate_head_stride;
    float* to = args.out.row(token) + head * args.head_dim;
    for (std::size_t column = 0; column < whole; column += kWidth) {
      store_panel(from + column * shape.rows, gate == nullptr ? nullptr : gate + column, to + column);
    }
    if (whole == args.head_dim) continue;
    HWY_ALIGN float last_gate[kWidth] = {};
    HWY_ALIGN float last[kWidth];
    if (gate != nullptr) std::copy(gate + whole, gate + args.head_dim, last_gate);
    store_panel(from + whole * shape.rows, gate == nullptr ? nullptr : last_gate, last);
    std::copy_n(last, args.head_dim - whole, to + whole);
  }
}

void attend(const AttentionArgs& args, const Tile& tile, const Scratch& scratch) {
  const std::size_t group = args.heads / args.kv_heads;
  const std::size_t keys = key_count(*tile.segment);
  const TileShape shape{.group = group,
                        .rows = round_up(tile.queries * group, kWidth),
                        .queries = tile.queries,
                        .keys = {seen_keys(args, *tile.segment, keys, tile.first).begin,
                                 seen_keys(args, *tile.segment, keys, tile.first + tile.queries - 1).end}};
  find_keys(tile, shape, args.head_dim, scratch);
  find_seen_keys(args, tile, shape, scratch);
  load_queries(args, tile, shape, scratch.q);
  score_tile(args, shape, scratch);
  softmax_tile(shape, scratch);
  weigh_values(args, shape, scratch);
  store_output(args, tile, shape, scratch);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace assay::ops::attention
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops::attention {
namespace {

HWY_EXPORT(attend);

std::size_t tile_queries(const AttentionArgs& args) {
  return std::max<std::size_t>(1, kTileRows / (args.heads / args.kv_heads));
}

/// All tiles, a segment's last first: under a causal mask they see the most keys, and the longest items
/// should not start last.
std::span<const Tile> make_tiles(const AttentionArgs& args, device::Arena& arena) {
  const std::size_t step = tile_queries(args);
  std::size_t count = 0;
  for (const AttentionSegment& segment : args.segments)
    count += (segment.length + step - 1) / step * args.kv_heads;
  const std::span<Tile> tiles = arena.allocate<Tile>(count);
  std::size_t next = 0;
  for (const AttentionSegment& segment : args.segments) {
    for (std::size_t end = round_up(segment.length, step); end != 0; end -= step) {
      const std::size_t first = end - step;
      const std::size_t queries = std::min(step, segment.length - first);
      for (std::size_t kv_head = 0; kv_head < args.kv_heads; ++kv_head)
        tiles[next++] = {&segment, first, queries, kv_head};
    }
  }
  return tiles;
}

class Workers {
 public:
  Workers(const AttentionArgs& args, const Context& context) {
    std::size_t keys = 0;
    for (const AttentionSegment& segment : args.segments) keys = std::max(keys, key_count(segment));
    // Compared so that no window is too large to add up.
    if (args.mask == AttentionMask::sliding && args.window < keys) {
      keys = std::min(keys, tile_queries(args) + 2 * args.window);
    }
    keys = round_up(keys, kBlockKeys);
    const std::size_t rows = round_up(tile_queries(args) * (args.heads / args.kv_heads), kMaxPanelWidth);
    const std::size_t columns = round_up(args.head_dim, kMaxPanelWidth);
    keys_ = keys;
    rows_ = rows;
    q_ = rows * columns;
    scores_ = rows * keys;
    values_ = kBlockKeys * columns;
    out_ = rows * columns;
    pointers_ = context.arena.allocate<const float*>(2 * keys * context.threads.size()).data();
    floats_ = context.arena.allocate<float>(floats_each() * context.threads.size()).data();
  }

  Scratch scratch(std::size_t worker) const {
    float* own = floats_ + worker * floats_each();
    const float** pointers = pointers_ + worker * 2 * keys_;
    return {.k = pointers,
            .v = pointers + keys_,
            .begin = own,
            .end = own + rows_,
            .q = own + 2 * rows_,
            .scores = own + 2 * rows_ + q_,
            .values = own + 2 * rows_ + q_ + scores_,
            .out = own + 2 * rows_ + q_ + scores_ + values_};
  }

 private:
  std::size_t floats_each() const { return 2 * rows_ + q_ + scores_ + values_ + out_; }

  std::size_t keys_, rows_, q_, scores_, values_, out_;
  const float** pointers_;
  float* floats_;
};

}  // namespace

void run_vector(const Context& context, const AttentionArgs& args) {
  check_shape(args);
  const device::Arena::Scope scope(context.arena);
  const std::span<const Tile> tiles = make_tiles(args, context.arena);
  const Workers workers(args, context);
  const auto run = HWY_DYNAMIC_DISPATCH(attend);
  context.threads.parallel_for(tiles.size(), [&](std::size_t item, std::size_t worker) {
    run(args, tiles[item], workers.scratch(worker));
  });
}

}  // namespace assay::ops::attention
#endif  // HWY_ONCE
