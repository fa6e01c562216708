#include "ops/conv1d/taps.hpp"

#include <algorithm>
#include <cstring>

namespace assay::ops::taps {
namespace {

using panels::kColumns;
using panels::kStepBytes;

std::size_t ceil_div(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}

// What a work item prepares of x stays in an L2 cache of 1 MiB beside the panels and sums.
constexpr std::size_t kPreparedBytes = std::size_t{768} << 10;
constexpr std::size_t kMostPositions = 512;
// A dilated kernel's reach is prepared again in each item: fewer positions than this would be mostly reach.
constexpr std::size_t kFewestPositions = 64;
constexpr std::size_t kItemsPerThread = 4;
// Rows of x whose distance is a multiple of half a page's cache lines meet in few sets of the L1 cache.
constexpr std::size_t kConflictBytes = 2048;
constexpr std::size_t kSpreadBytes = 5 * panels::kCacheLine;

std::size_t element_bytes(Element element) {
  return element == Element::bf16 ? 2 : 4;
}

struct Range {
  std::size_t begin;
  std::size_t end;
  std::size_t size() const { return end - begin; }
};

Range part(std::size_t count, std::size_t parts, std::size_t index) {
  return {index * count / parts, (index + 1) * count / parts};
}

/// Taps and steps that one call of the kernel goes over: several whole taps, or a part of one.
struct StepBlock {
  Range taps;
  Range steps;
};

std::vector<StepBlock> step_blocks(std::size_t taps, std::size_t steps, const Kernel& kernel) {
  std::vector<StepBlock> blocks;
  const std::size_t multiple = kernel.layout->step_multiple;
  if (steps <= kernel.block_steps) {
    const std::size_t count = ceil_div(taps * steps, kernel.block_steps);
    for (std::size_t b = 0; b < count; ++b) blocks.push_back({part(taps, count, b), {0, steps}});
    std::erase_if(blocks, [](const StepBlock& block) { return block.taps.size() == 0; });
  } else {
    const std::size_t count = ceil_div(steps, kernel.block_steps);
    for (std::size_t tap = 0; tap < taps; ++tap) {
      for (std::size_t b = 0; b < count; ++b) {
        const Range units = part(steps / multiple, count, b);
        blocks.push_back({{tap, tap + 1}, {units.begin * multiple, units.end * multiple}});
      }
    }
  }
  // A phase without taps still has its rows: sums of nothing.
  if (blocks.empty()) blocks.push_back({{0, 0}, {0, 0}});
  return blocks;
}

struct PhasePlan {
  Phase phase;
  const std::byte* w;
  std::vector<StepBlock> blocks;
};

class Convolution {
 public:
  Convolution(const Kernel& kernel, const Context& context, const Call& call)
      : kernel_(kernel),
        call_(call),
        steps_(panels::steps_of(*kernel.layout, call.in_channels)),
        panels_(ceil_div(call.out_channels, kColumns)) {
    const std::size_t used = steps_ * kernel.layout->values_per_step * element_bytes(kernel.element);
    row_bytes_ = used % kConflictBytes == 0 ? used + kSpreadBytes : used;
    plan_phases();
    plan_items(context.threads.size());
    const std::size_t padded = ceil_div(most_positions_, kernel.row_multiple) * kernel.row_multiple;
    prepared_size_ = ((padded - 1) * call.x_step + reach_) * row_bytes_;
    prepared_size_ = ceil_div(prepared_size_, panels::kCacheLine) * panels::kCacheLine;
    sums_size_ = padded * kColumns;
    prepared_ = context.arena.allocate<std::byte>(prepared_size_ * context.threads.size());
    sums_ = context.arena.allocate<float>(sums_size_ * context.threads.size());
  }

  void run(device::ThreadPool& threads) const {
    threads.parallel_for(blocks_ * groups_, [this](std::size_t item, std::size_t worker) {
      const Range positions = part(call_.positions, blocks_, item % blocks_);
      std::byte* prepared = prepared_.data() + worker * prepared_size_;
      prepare(positions, prepared);
      if (kernel_.enter != nullptr) kernel_.enter();
      for (const PhasePlan& phase : phases_) {
        const Range group = part(panels_, groups_, item / blocks_);
        for (std::size_t panel = group.begin; panel < group.end; ++panel) {
          run_panel(phase, panel, positions, prepared, sums_.data() + worker * sums_size_);
        }
      }
      if (kernel_.leave != nullptr) kernel_.leave();
    });
  }

 private:
  void plan_phases() {
    first_x_ = call_.phases.front().first_x;
    for (const Phase& phase : call_.phases) first_x_ = std::min(first_x_, phase.first_x);
    reach_ = 1;
    const std::byte* w = call_.w;
    for (const Phase& phase : call_.phases) {
      phases_.push_back({phase, w, step_blocks(phase.taps, steps_, kernel_)});
      w += panels_ * phase.taps * steps_ * kStepBytes;
      const std::size_t behind = phase.taps == 0 ? 0 : (phase.taps - 1) * call_.tap_step;
      reach_ = std::max(reach_, static_cast<std::size_t>(phase.first_x - first_x_) + behind + 1);
    }
  }

  /// Blocks of positions × groups of panels. No result depends on it.
  void plan_items(std::size_t threads) {
    const std::size_t rows_that_fit = kPreparedBytes / row_bytes_;
    const std::size_t fit = rows_that_fit > reach_ ? (rows_that_fit - reach_) / call_.x_step + 1 : 1;
    const std::size_t most = std::clamp(fit, 2 * kernel_.max_rows, kMostPositions);
    const std::size_t wanted = threads == 1 ? 1 : kItemsPerThread * threads;
    const std::size_t fewest = std::max(kFewestPositions, 2 * kernel_.max_rows);
    blocks_ = std::max(ceil_div(call_.positions, most), std::min(wanted, ceil_div(call_.positions, fewest)));
    groups_ = blocks_ < wanted ? std::min(panels_, ceil_div(wanted, blocks_)) : 1;
    most_positions_ = ceil_div(call_.positions, blocks_);
  }

  /// The rows of x' that the taps of these positions reach.
  void prepare(const Range& positions, std::byte* prepared) const {
    const std::size_t count = (positions.size() - 1) * call_.x_step + reach_;
    const std::ptrdiff_t first = first_x_ + static_cast<std::ptrdiff_t>(positions.begin * call_.x_step);
    const std::size_t bytes = steps_ * kernel_.layout->values_per_step * element_bytes(kernel_.element);
    for (std::size_t r = 0; r < count; ++r) {
      const std::ptrdiff_t row = first + static_cast<std::ptrdiff_t>(r);
      const bool inside = row >= 0 && static_cast<std::size_t>(row) < call_.length;
      prepare_row({.x = inside ? call_.x.row(static_cast<std::size_t>(row)) : nullptr,
                   .channels = call_.in_channels,
                   .input = call_.fusion.input,
                   .element = kernel_.element,
                   .out = prepared + r * row_bytes_,
                   .bytes = bytes});
    }
  }

  void run_panel(const PhasePlan& plan, std::size_t panel, const Range& positions, const std::byte* prepared,
                 float* sums) const {
    const std::size_t units = ceil_div(positions.size(), kernel_.row_multiple);
    const std::size_t tiles = ceil_div(units * kernel_.row_multiple, kernel_.max_rows);
    for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
      for (std::size_t tile = 0; tile < tiles; ++tile) {
        const Range range = part(units, tiles, tile);
        const Range rows{range.begin * kernel_.row_multiple, range.end * kernel_.row_multiple};
        run_tile(plan, panel, b, rows, prepared, sums + rows.begin * kColumns, tiles, tile);
        if (b + 1 != plan.blocks.size()) continue;
        finish(plan.phase, panel,
               {positions.begin + rows.begin, std::min(positions.begin + rows.end, positions.end)},
               sums + rows.begin * kColumns);
      }
    }
  }

  void run_tile(const PhasePlan& plan, std::size_t panel, std::size_t block, const Range& rows,
                const std::byte* prepared, float* sums, std::size_t tiles, std::size_t tile) const {
    const StepBlock& here = plan.blocks[block];
    const std::size_t x_row = static_cast<std::size_t>(plan.phase.first_x - first_x_) +
                              rows.begin * call_.x_step + here.taps.begin * call_.tap_step;
    const std::size_t step_bytes = kernel_.layout->values_per_step * element_bytes(kernel_.element);
    const std::size_t steps = here.taps.size() * here.steps.size();
    // The panel's next part is as large as this one; the tiles share in fetching it.
    const std::size_t stride = ceil_div(kStepBytes, tiles);
    const std::byte* w = weights(plan, panel, here);
    kernel_.tile({.x = prepared + x_row * row_bytes_ + here.steps.begin * step_bytes,
                  .row_bytes = call_.x_step * row_bytes_,
                  .tap_bytes = call_.tap_step * row_bytes_,
                  .w = w,
                  .taps = here.taps.size(),
                  .steps = here.steps.size(),
                  .rows = rows.size(),
                  .sums = sums,
                  .resume = block != 0,
                  .ahead = {w + steps * kStepBytes + tile * steps * stride, stride}});
  }

  const std::byte* weights(const PhasePlan& plan, std::size_t panel, const StepBlock& block) const {
    const std::size_t step = (panel * plan.phase.taps + block.taps.begin) * steps_ + block.steps.begin;
    return plan.w + step * kStepBytes;
  }

  void finish(const Phase& phase, std::size_t panel, const Range& positions, const float* sums) const {
    const std::size_t column = panel * kColumns;
    const ConvFusion& fusion = call_.fusion;
    for (std::size_t position = positions.begin; position < positions.end; ++position, sums += kColumns) {
      const std::ptrdiff_t signed_row =
          static_cast<std::ptrdiff_t>(position * call_.row_step) + phase.first_row;
      if (signed_row < 0 || static_cast<std::size_t>(signed_row) >= call_.rows) continue;
      const auto row = static_cast<std::size_t>(signed_row);
      finish_row({.sums = sums,
                  .columns = std::min(kColumns, call_.out_channels - column),
                  .bias = fusion.bias != nullptr ? fusion.bias + column : nullptr,
                  .output = fusion.output.from(column),
                  .residual = fusion.residual.data != nullptr ? fusion.residual.row(row) + column : nullptr,
                  .y = call_.y.row(row) + column});
    }
  }

  const Kernel& kernel_;
  const Call& call_;
  std::size_t steps_;  ///< of a tap
  std::size_t panels_;
  std::size_t row_bytes_ = 0;   ///< of x'
  std::ptrdiff_t first_x_ = 0;  ///< row of x under the earliest tap of position 0
  std::size_t reach_ = 1;       ///< rows of x from a position's earliest to its latest tap
  std::vector<PhasePlan> phases_;
  std::size_t blocks_ = 1;
  std::size_t groups_ = 1;
  std::size_t most_positions_ = 1;
  std::size_t prepared_size_ = 0;
  std::size_t sums_size_ = 0;
  std::span<std::byte> prepared_;
  std::span<float> sums_;
};

}  // namespace

std::size_t packed_bytes(const panels::Layout& layout, const ConvShape& shape,
                         std::span<const Phase> phases) {
  std::size_t taps = 0;
  for (const Phase& phase : phases) taps += phase.taps;
  return ceil_div(shape.out_channels, kColumns) * taps * panels::steps_of(layout, shape.in_channels) *
         kStepBytes;
}

device::Buffer<std::byte> pack(const panels::Layout& layout, const ConvShape& shape,
                               std::span<const std::vector<std::size_t>> taps, const ConvRows& rows) {
  const std::size_t steps = panels::steps_of(layout, shape.in_channels);
  const std::size_t count = ceil_div(shape.out_channels, kColumns);
  std::size_t all_taps = 0;
  for (const auto& phase : taps) all_taps += phase.size();
  device::Buffer<std::byte> data(count * all_taps * steps * kStepBytes);
  if (data.size() == 0) return data;
  std::vector<float> read(std::min(shape.out_channels, kColumns) * shape.row_size());
  for (std::size_t panel = 0; panel < count; ++panel) {
    const std::size_t first = panel * kColumns;
    const std::size_t columns = std::min(kColumns, shape.out_channels - first);
    rows(first, columns, std::span(read).first(columns * shape.row_size()));
    std::byte* phase_data = data.data();
    for (const auto& phase : taps) {
      for (std::size_t i = 0; i < phase.size(); ++i) {
        layout.interleave({read.data() + phase[i] * shape.in_channels, shape.row_size()}, columns, kColumns,
                          shape.in_channels, steps,
                          phase_data + (panel * phase.size() + i) * steps * kStepBytes);
      }
      phase_data += count * phase.size() * steps * kStepBytes;
    }
  }
  return data;
}

void run(const Kernel& kernel, const Context& context, const Call& call) {
  if (call.positions == 0 || call.rows == 0 || call.out_channels == 0) return;
  const device::Arena::Scope scope(context.arena);
  Convolution(kernel, context, call).run(context.threads);
}

}  // namespace assay::ops::taps
