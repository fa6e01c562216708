#include <algorithm>
#include <cstddef>
#include <span>

#include "ops/attention/forms.hpp"

// Arrays of vectors need vectors of a size known at compile time.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/vector.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/attention/exp-inl.h"

// One work item is a tile: some queries of one segment with all heads that read one key-value head. A row of
// the tile is one query and head, query by query, so that the number of keys a row sees never falls. Rows lie
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
  Vector at[kSums][kVectors];
};

struct TileShape {
  std::size_t group;      ///< query heads of the key-value head
  std::size_t rows;       ///< queries · group, padded to whole panels
  std::size_t inherited;  ///< keys before the segment's own
  std::size_t first;
  std::size_t queries;

  /// Keys that a row sees; rows of padding see what the last row does.
  std::size_t keys(std::size_t row) const {
    return inherited + first + std::min(row / group, queries - 1) + 1;
  }
  std::size_t all_keys() const { return inherited + first + queries; }
  std::size_t score_rows() const { return round_up(all_keys(), kSums); }
};

/// Where each key's and value's part for this head is, over all runs in order; then the last again, up to a
/// whole tile of keys.
void find_keys(const Tile& tile, const TileShape& shape, std::size_t head_dim, const Scratch& scratch) {
  std::size_t key = 0;
  for (const KeyRun& run : tile.segment->runs) {
    const std::size_t count = std::min(run.length, shape.all_keys() - key);
    for (std::size_t i = 0; i < count; ++i, ++key) {
      scratch.k[key] = run.k.row(i) + tile.kv_head * head_dim;
      scratch.v[key] = run.v.row(i) + tile.kv_head * head_dim;
    }
  }
  for (; key < shape.score_rows(); ++key) scratch.k[key] = scratch.k[key - 1];
}

const float* query_row(const AttentionArgs& args, const Tile& tile, const TileShape& shape, std::size_t row) {
  const std::size_t head = tile.kv_head * shape.group + row % shape.group;
  return args.q.row(tile.segment->first + tile.first + row / shape.group) + head * args.q_head_stride;
}

/// Qᵀ of the tile, rows of padding zero.
void load_queries(const AttentionArgs& args, const Tile& tile, const TileShape& shape,
                  float* HWY_RESTRICT to) {
  for (std::size_t row = 0; row < shape.rows; ++row) {
    float* column = to + row / kWidth * kWidth * args.head_dim + row % kWidth;
    if (row < shape.queries * shape.group) {
      const float* q = query_row(args, tile, shape, row);
      for (std::size_t d = 0; d < args.head_dim; ++d) column[d * kWidth] = q[d];
    } else {
      for (std::size_t d = 0; d < args.head_dim; ++d) column[d * kWidth] = 0.0f;
    }
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
    const std::size_t end = std::min(block + kBlockKeys, shape.score_rows());
    for (std::size_t panel = 0; panel < shape.rows; panel += kWidth) {
      float* scores = scratch.scores + panel * shape.score_rows();
      for (std::size_t key = block; key < end; key += kSums) {
        score_keys(scratch.k + key, scratch.q + panel * args.head_dim, args.head_dim, args.scale,
                   scores + key * kWidth);
      }
    }
  }
}

/// Scores of one vector of rows to weights, in place; `seen` is the number of keys each lane sees, all see
/// the first `common`.
HWY_INLINE void softmax(float* HWY_RESTRICT scores, Vector seen, std::size_t common, std::size_t keys) {
  const Tag d;
  Vector maximum = hn::Load(d, scores);
  const auto sees = [d, seen](std::size_t key)
                        HWY_ATTR { return hn::Lt(hn::Set(d, static_cast<float>(key)), seen); };
  for (std::size_t key = 1; key < common; ++key)
    maximum = hn::Max(maximum, hn::Load(d, scores + key * kWidth));
  for (std::size_t key = common; key < keys; ++key) {
    const Vector score = hn::Load(d, scores + key * kWidth);
    maximum = hn::IfThenElse(sees(key), hn::Max(maximum, score), maximum);
  }
  Vector sum = hn::Zero(d);
  for (std::size_t key = 0; key < keys; ++key) {
    const Vector weight = exp_nonpositive(d, hn::Sub(hn::Load(d, scores + key * kWidth), maximum));
    sum = key < common ? hn::Add(sum, weight) : hn::IfThenElse(sees(key), hn::Add(sum, weight), sum);
    hn::Store(weight, d, scores + key * kWidth);
  }
  // Weights, not the output, are divided: a sum of undivided values could overflow.
  const Vector factor = hn::Div(hn::Set(d, 1.0f), sum);
  for (std::size_t key = 0; key < keys; ++key) {
    hn::Store(hn::Mul(factor, hn::Load(d, scores + key * kWidth)), d, scores + key * kWidth);
  }
}

void softmax_tile(const TileShape& shape, const Scratch& scratch) {
  const Tag d;
  for (std::size_t row = 0; row < shape.rows; row += kLanes) {
    HWY_ALIGN float seen[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) seen[lane] = static_cast<float>(shape.keys(row + lane));
    float* scores = scratch.scores + row / kWidth * kWidth * shape.score_rows() + row % kWidth;
    softmax(scores, hn::Load(d, seen), shape.keys(row), shape.keys(row + kLanes - 1));
  }
}

/// Values of keys [first, first + count) into panels, columns padded with zeros.
void load_values(const Scratch& scratch, std::size_t first, std::size_t count, std::size_t head_dim) {
  for (std::size_t column = 0; column < head_dim; column += kWidth) {
    const std::size_t columns = std::min(kWidth, head_dim - column);
    for (std::size_t key = 0; key < count; ++key) {
      float* to = scratch.values + column * kBlockKeys + key * kWidth;
      std::copy_n(scratch.v[first + key] + column, columns, to);
      std::fill(to + columns, to + kWidth, 0.0f);
    }
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

/// Adds one block of keys to kSums rows of one panel of the output.
HWY_INLINE void add_block(const TileShape& shape, std::size_t row, std::size_t first, std::size_t count,
                          const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values,
                          float* HWY_RESTRICT out) {
  const auto seen = [&](std::size_t r) {
    const std::size_t keys = shape.keys(r);
    return keys <= first ? 0 : std::min(keys - first, count);
  };
  const std::size_t common = seen(row);
  add_values(weights, values, common, out);
  for (std::size_t r = 0; r < kSums; ++r) {
    add_values_to_row(weights + r, values, common, seen(row + r), out + r * kWidth);
  }
}

void weigh_values(const AttentionArgs& args, const TileShape& shape, const Scratch& scratch) {
  const std::size_t columns = round_up(args.head_dim, kWidth);
  std::fill_n(scratch.out, columns * shape.rows, 0.0f);
  for (std::size_t first = 0; first < shape.all_keys(); first += kBlockKeys) {
    const std::size_t count = std::min(kBlockKeys, shape.all_keys() - first);
    load_values(scratch, first, count, args.head_dim);
    for (std::size_t column = 0; column < columns; column += kWidth) {
      for (std::size_t row = 0; row < shape.rows; row += kSums) {
        const float* weights = scratch.scores + row / kWidth * kWidth * shape.score_rows() + row % kWidth;
        add_block(shape, row, first, count, weights + first * kWidth, scratch.values + column * kBlockKeys,
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

void store_output(const AttentionArgs& args, const Tile& tile, const TileShape& shape,
                  const Scratch& scratch) {
  const Tag d;
  for (std::size_t row = 0; row < shape.queries * shape.group; ++row) {
    const std::size_t head = tile.kv_head * shape.group + row % shape.group;
    const std::size_t token = tile.segment->first + tile.first + row / shape.group;
    for (std::size_t column = 0; column < args.head_dim; column += kWidth) {
      float* from = scratch.out + column * shape.rows + row * kWidth;
      const std::size_t columns = std::min(kWidth, args.head_dim - column);
      if (args.gate.data != nullptr) {
        HWY_ALIGN float gate[kWidth] = {};
        std::copy_n(args.gate.row(token) + head * args.gate_head_stride + column, columns, gate);
        for (std::size_t c = 0; c < kWidth; c += kLanes) {
          hn::Store(hn::Mul(hn::Load(d, from + c), sigmoid(hn::Load(d, gate + c))), d, from + c);
        }
      }
      std::copy_n(from, columns, args.out.row(token) + head * args.head_dim + column);
    }
  }
}

void attend(const AttentionArgs& args, const Tile& tile, const Scratch& scratch) {
  const std::size_t group = args.heads / args.kv_heads;
  const TileShape shape{.group = group,
                        .rows = round_up(tile.queries * group, kWidth),
                        .inherited = key_count(*tile.segment) - tile.segment->length,
                        .first = tile.first,
                        .queries = tile.queries};
  find_keys(tile, shape, args.head_dim, scratch);
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

/// All tiles, a segment's last first: they see the most keys, and the longest items should not start last.
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
    keys = round_up(keys, kBlockKeys);
    const std::size_t rows = round_up(tile_queries(args) * (args.heads / args.kv_heads), kMaxPanelWidth);
    const std::size_t columns = round_up(args.head_dim, kMaxPanelWidth);
    keys_ = keys;
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
            .q = own,
            .scores = own + q_,
            .values = own + q_ + scores_,
            .out = own + q_ + scores_ + values_};
  }

 private:
  std::size_t floats_each() const { return q_ + scores_ + values_ + out_; }

  std::size_t keys_, q_, scores_, values_, out_;
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
