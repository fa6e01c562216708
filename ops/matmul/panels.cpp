#include "ops/matmul/panels.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace assay::ops::panels {
namespace {

std::size_t ceil_div(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}

/// m rows cut into as few tiles as the kernel's height allows, as even as its row multiple allows: 13 rows
/// are 7 and 6, not 12 and 1, which would leave the multiply-adds' latency in the open.
class RowTiles {
 public:
  RowTiles(std::size_t m, const Kernel& kernel)
      : m_(m),
        multiple_(kernel.row_multiple),
        units_(ceil_div(m, multiple_)),
        tiles_(ceil_div(units_, kernel.max_rows / multiple_)) {}

  std::size_t size() const { return tiles_; }
  /// First row of a tile, also counted in padded rows; of tile size(): all padded rows.
  std::size_t begin(std::size_t tile) const { return tile * units_ / tiles_ * multiple_; }
  std::size_t padded_rows(std::size_t tile) const { return begin(tile + 1) - begin(tile); }
  /// Without padding.
  std::size_t rows(std::size_t tile) const { return std::min(m_, begin(tile + 1)) - begin(tile); }

 private:
  std::size_t m_;
  std::size_t multiple_;
  std::size_t units_;
  std::size_t tiles_;
};

/// The work items of a run: blocks of tiles × groups of panels. No result depends on it.
struct Partition {
  std::size_t blocks;
  std::size_t groups;
};

// A block's x over block_steps (192 rows of 1 KiB) and its sums for a group's panels stay in an L2 cache of
// 512 KiB or more, and w is read from memory once for each block.
constexpr std::size_t kBlockRows = 192;
constexpr std::size_t kGroupPanels = 4;
// The last items to finish leave threads idle: with so many a thread that is little.
constexpr std::size_t kItemsPerThread = 8;

Partition partition(const RowTiles& tiles, const Kernel& kernel, std::size_t panels, std::size_t threads) {
  Partition p = {ceil_div(tiles.size(), kBlockRows / kernel.max_rows), ceil_div(panels, kGroupPanels)};
  const std::size_t wanted = threads == 1 ? 1 : kItemsPerThread * threads;
  if (p.blocks * p.groups < wanted) p.groups = std::min(panels, ceil_div(wanted, p.blocks));
  if (p.blocks * p.groups < 2 * threads) p.blocks = std::min(tiles.size(), ceil_div(2 * threads, p.groups));
  return p;
}

struct Range {
  std::size_t begin;
  std::size_t end;
  std::size_t size() const { return end - begin; }
};

Range part(std::size_t count, std::size_t parts, std::size_t index) {
  return {index * count / parts, (index + 1) * count / parts};
}

class Product {
 public:
  Product(const Kernel& kernel, const Context& context, const MatmulArgs& args)
      : kernel_(kernel),
        args_(args),
        n_(args.w->n),
        steps_(steps_of(*kernel.layout, args.w->k)),
        tiles_(args.m, kernel),
        panels_(ceil_div(n_, kColumns)),
        partition_(partition(tiles_, kernel, panels_, context.threads.size())) {
    // One tile uses a panel once: nothing to keep in the cache, so its sums stay in registers to the end.
    const std::size_t tiles_per_block = ceil_div(tiles_.size(), partition_.blocks);
    const std::size_t step_blocks =
        tiles_per_block == 1 ? 1 : std::max<std::size_t>(1, ceil_div(steps_, kernel.block_steps));
    step_blocks_ = step_blocks;
    sums_size_ = tiles_per_block * kernel.max_rows * kColumns * ceil_div(panels_, partition_.groups);
    x_ = context.arena.allocate<std::byte>(tiles_.begin(tiles_.size()) * steps_ * kernel.x_step_bytes);
    sums_ = context.arena.allocate<float>(sums_size_ * context.threads.size());
  }

  void run(device::ThreadPool& threads) {
    threads.parallel_for(tiles_.size(), [this](std::size_t tile, std::size_t /*worker*/) { pack_x(tile); });
    // Neighbours in time share panels of w, which memory then gives once.
    threads.parallel_for(partition_.blocks * partition_.groups, [this](std::size_t item, std::size_t worker) {
      region(part(tiles_.size(), partition_.blocks, item % partition_.blocks),
             part(panels_, partition_.groups, item / partition_.blocks), sums_.data() + worker * sums_size_);
    });
  }

 private:
  void pack_x(std::size_t tile) {
    const std::size_t row = tiles_.begin(tile);
    kernel_.pack_x({args_.x.row(row), args_.x.stride}, tiles_.rows(tile), tiles_.padded_rows(tile),
                   args_.w->k, steps_, x_.data() + row * steps_ * kernel_.x_step_bytes);
  }

  void region(Range tiles, Range panels, float* sums) const {
    if (kernel_.enter != nullptr) kernel_.enter();
    for (std::size_t b = 0; b < step_blocks_; ++b) {
      for (std::size_t panel = panels.begin; panel < panels.end; ++panel) {
        float* panel_sums = sums + (panel - panels.begin) * rows_in(tiles) * kColumns;
        panel_block(tiles, panels, panel, b, panel_sums);
      }
    }
    if (kernel_.leave != nullptr) kernel_.leave();
  }

  void panel_block(Range tiles, Range panels, std::size_t panel, std::size_t block, float* sums) const {
    const Range steps = step_range(block);
    const std::span<const std::byte> ahead = next_block(panels, panel, block);
    for (std::size_t tile = tiles.begin; tile < tiles.end; ++tile) {
      const Range share = part(ahead.size() / kCacheLine, tiles.size(), tile - tiles.begin);
      for (std::size_t line = share.begin; line < share.end; ++line) {
        __builtin_prefetch(ahead.data() + line * kCacheLine, 0, 2);
      }
      const std::size_t row = tiles_.begin(tile);
      const std::size_t rows = tiles_.padded_rows(tile);
      float* tile_sums = sums + (row - tiles_.begin(tiles.begin)) * kColumns;
      kernel_.tile({.x = x_.data() + (row * steps_ + steps.begin * rows) * kernel_.x_step_bytes,
                    .w = weights(panel, steps.begin),
                    .steps = steps.size(),
                    .rows = rows,
                    .sums = tile_sums,
                    .resume = block != 0});
      if (block + 1 == step_blocks_) store(tile, panel, tile_sums);
    }
  }

  void store(std::size_t tile, std::size_t panel, const float* sums) const {
    const std::size_t column = panel * kColumns;
    const std::size_t columns = std::min(kColumns, n_ - column);
    for (std::size_t r = 0; r < tiles_.rows(tile); ++r) {
      const float* __restrict from = sums + r * kColumns;
      float* __restrict to = args_.y.row(tiles_.begin(tile) + r) + column;
      if (!args_.accumulate) {
        std::memcpy(to, from, columns * sizeof(float));
      } else if (columns == kColumns) {
        for (std::size_t c = 0; c < kColumns; ++c) to[c] += from[c];
      } else {
        for (std::size_t c = 0; c < columns; ++c) to[c] += from[c];
      }
    }
  }

  std::size_t rows_in(Range tiles) const { return tiles_.begin(tiles.end) - tiles_.begin(tiles.begin); }

  Range step_range(std::size_t block) const {
    const std::size_t multiple = kernel_.layout->step_multiple;
    const Range units = part(steps_ / multiple, step_blocks_, block);
    return {units.begin * multiple, units.end * multiple};
  }

  const std::byte* weights(std::size_t panel, std::size_t step) const {
    return args_.w->data.data() + (panel * steps_ + step) * kStepBytes;
  }

  /// What of w this region reads next: fetched while the tiles of the current block compute.
  std::span<const std::byte> next_block(Range panels, std::size_t panel, std::size_t block) const {
    if (++panel == panels.end) {
      panel = panels.begin;
      if (++block == step_blocks_) return {};
    }
    const Range steps = step_range(block);
    return {weights(panel, steps.begin), steps.size() * kStepBytes};
  }

  static constexpr std::size_t kCacheLine = 64;

  const Kernel& kernel_;
  const MatmulArgs& args_;
  std::size_t n_;
  std::size_t steps_;
  RowTiles tiles_;
  std::size_t panels_;
  Partition partition_;
  std::size_t step_blocks_;
  std::size_t sums_size_;
  std::span<std::byte> x_;
  std::span<float> sums_;
};

}  // namespace

void run(const Kernel& kernel, const Context& context, const MatmulArgs& args) {
  if (args.m == 0 || args.w->n == 0) return;
  const device::Arena::Scope scope(context.arena);
  Product(kernel, context, args).run(context.threads);
}

}  // namespace assay::ops::panels
