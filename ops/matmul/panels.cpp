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
constexpr std::size_t kGroupPanels = 8;
// How far ahead of its use a w that passes once is fetched: some 500 ns at 30 GB/s.
constexpr std::size_t kStreamDistance = 16384;
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
    threads.parallel_for(tiles_.size(), [this](std::size_t tile, std::size_t /*worker*/) {
      for (std::size_t block = 0; block < step_blocks_; ++block) pack_x(tile, block);
    });
    const std::size_t regions = partition_.blocks * partition_.groups;
    threads.parallel_for(regions, [&](std::size_t index, std::size_t worker) {
      const std::size_t probably_next = std::min(index + threads.size(), regions - 1);
      run_region(region(index), region(probably_next), sums_.data() + worker * sums_size_);
    });
  }

 private:
  /// A work item.
  struct Region {
    Range tiles;
    Range panels;
  };

  /// Neighbours share panels of w, which memory then gives once.
  Region region(std::size_t index) const {
    return {part(tiles_.size(), partition_.blocks, index % partition_.blocks),
            part(panels_, partition_.groups, index / partition_.blocks)};
  }

  void pack_x(std::size_t tile, std::size_t block) {
    const std::size_t row = tiles_.begin(tile);
    const Range steps = step_range(block);
    const std::size_t k = args_.w->k;
    const std::size_t begin = std::min(k, steps.begin * kernel_.layout->values_per_step);
    const std::size_t end = std::min(k, steps.end * kernel_.layout->values_per_step);
    kernel_.pack_x({args_.x.row(row) + begin, args_.x.stride}, tiles_.rows(tile), tiles_.padded_rows(tile),
                   end - begin, steps.size(), x_block(tile, block));
  }

  void run_region(const Region& here, const Region& next, float* sums) const {
    if (kernel_.enter != nullptr) kernel_.enter();
    for (std::size_t b = 0; b < step_blocks_; ++b) {
      for (std::size_t panel = here.panels.begin; panel < here.panels.end; ++panel) {
        run_panel(here, next, b, panel, sums + (panel - here.panels.begin) * rows_in(here.tiles) * kColumns);
      }
    }
    if (kernel_.leave != nullptr) kernel_.leave();
  }

  void run_panel(const Region& here, const Region& next, std::size_t block, std::size_t panel,
                 float* sums) const {
    const std::size_t steps = step_range(block).size();
    const bool last = block + 1 == step_blocks_;
    const Next reads = next_reads(here, next, block, panel);
    for (std::size_t tile = here.tiles.begin; tile < here.tiles.end; ++tile) {
      const std::size_t steps_before = (tile - here.tiles.begin) * steps;
      if (last) prefetch_y(tile, panel);
      float* tile_sums = sums + (tiles_.begin(tile) - tiles_.begin(here.tiles.begin)) * kColumns;
      kernel_.tile({.x = x_block(tile, block),
                    .w = weights(panel, block),
                    .steps = steps,
                    .rows = tiles_.padded_rows(tile),
                    .sums = tile_sums,
                    .resume = block != 0,
                    .ahead_w = {reads.w.data + steps_before * reads.w.stride, reads.w.stride},
                    .ahead_x = {reads.x.data + steps_before * reads.x.stride, reads.x.stride}});
      if (last) store(tile, panel, tile_sums);
    }
  }

  /// What the tiles of this panel fetch for later.
  struct Next {
    Ahead w;
    Ahead x;
  };

  Next next_reads(const Region& here, const Region& next, std::size_t block, std::size_t panel) const {
    const bool last = block + 1 == step_blocks_;
    if (here.tiles.size() == 1) {
      // w passes once and x stays: both fetch the stream of w, the two cache lines of a step.
      const std::byte* stream = weights(panel, block) + kStreamDistance;
      return {{stream, kStepBytes}, {stream + kStepBytes / 2, kStepBytes}};
    }
    const bool last_panel = panel + 1 == here.panels.end;
    const std::byte* w = !last_panel ? weights(panel + 1, block)
                         : !last     ? weights(here.panels.begin, block + 1)
                                     : weights(next.panels.begin, 0);
    const std::byte* x = last ? x_block(next.tiles.begin, 0) : x_block(here.tiles.begin, block + 1);
    // The next blocks are as large as these, near enough. The tiles of this panel share that of w, those of
    // all the region's panels that of x.
    const std::size_t w_stride = ceil_div(kStepBytes, here.tiles.size());
    const std::size_t calls = here.tiles.size() * here.panels.size();
    const std::size_t x_stride = ceil_div(rows_in(here.tiles) * kernel_.x_step_bytes, calls);
    const std::size_t calls_before = (panel - here.panels.begin) * here.tiles.size();
    return {{w, w_stride}, {x + calls_before * step_range(block).size() * x_stride, x_stride}};
  }

  /// The tile's part of y, each row of it on another page, on its way while the last steps compute.
  void prefetch_y(std::size_t tile, std::size_t panel) const {
    for (std::size_t r = 0; r < tiles_.rows(tile); ++r) {
      const float* row = args_.y.row(tiles_.begin(tile) + r) + panel * kColumns;
      __builtin_prefetch(row, 1);
      __builtin_prefetch(row + kColumns / 2, 1);
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

  /// All tiles' x of one block of steps lie together: what a region reads next to each other.
  std::byte* x_block(std::size_t tile, std::size_t block) const {
    const Range steps = step_range(block);
    const std::size_t rows = tiles_.begin(tiles_.size());
    return x_.data() + (steps.begin * rows + tiles_.begin(tile) * steps.size()) * kernel_.x_step_bytes;
  }

  std::size_t rows_in(Range tiles) const { return tiles_.begin(tiles.end) - tiles_.begin(tiles.begin); }

  Range step_range(std::size_t block) const {
    const std::size_t multiple = kernel_.layout->step_multiple;
    const Range units = part(steps_ / multiple, step_blocks_, block);
    return {units.begin * multiple, units.end * multiple};
  }

  const std::byte* weights(std::size_t panel, std::size_t block) const {
    // With k = 0 nothing is packed; a kernel still steps from a place that it does not read.
    alignas(64) static constexpr std::byte kNothing[kStepBytes] = {};
    if (args_.w->data.size() == 0) return kNothing;
    return args_.w->data.data() + (panel * steps_ + step_range(block).begin) * kStepBytes;
  }

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
