#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ops/conv1d/conv1d.hpp"
#include "ops/matmul/panels.hpp"

/// What the fast forms of `conv1d` and `conv_transpose1d` share: a product of matrices whose x is never
/// built.
///
/// A convolution is a sum over taps of products [positions, channels] · [channels, out], each tap's x the
/// same rows moved. So x is prepared once in a work item (through the input's snake, into the kernel's
/// element type), channels last, and a kernel reads a tap's row at its distance from the position's first. A
/// transposed convolution is one such product for each remainder of (output row + padding) by the stride, its
/// phase, each with the taps that exist; a plain one has one phase.
///
/// Weights are in the panels of `matmul` (32 output channels × steps): [phase][panel][tap][step].
namespace assay::ops::taps {

/// Output rows that have their taps at the same places: row position · row_step + first_row, where it is in
/// [0, rows).
struct Phase {
  std::size_t taps = 0;
  std::ptrdiff_t first_x = 0;    ///< row of x under the first tap of position 0
  std::ptrdiff_t first_row = 0;  ///< of y, at position 0
};

/// sums[row][column] = (resume ? sums[row][column] : 0) + Σ over taps, over steps, one after the other.
struct TileCall {
  const std::byte* x;     ///< prepared, the first row's, under the first tap, from the first step on
  std::size_t row_bytes;  ///< from one row of the tile to the next
  std::size_t tap_bytes;  ///< from one tap to the next
  const std::byte* w;     ///< the panel, from the first tap and step on
  std::size_t taps;
  std::size_t steps;  ///< of each tap
  std::size_t rows;   ///< of the tile, a multiple of Kernel::row_multiple
  float* sums;        ///< [rows][32], 64-byte aligned
  bool resume;
  panels::Ahead ahead;  ///< of w
};

/// What x is prepared as.
enum class Element { fp32, fp32_rounded_to_bf16, bf16 };

struct Kernel {
  const panels::Layout* layout;
  Element element;
  std::size_t max_rows;
  std::size_t row_multiple;
  std::size_t block_steps;  ///< after which sums rest in memory, so that a panel's part stays in the L1 cache
  void (*tile)(const TileCall& call);
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;
};

const Kernel& vector_kernel();
const Kernel& vector_bf16_kernel();
#if defined(__x86_64__)
const Kernel& avx512_bf16_kernel();
const Kernel& amx_bf16_kernel();
#endif

std::size_t packed_bytes(const panels::Layout& layout, const ConvShape& shape, std::span<const Phase> phases);
/// taps[p][i] is the kernel's index of tap i of phase p.
device::Buffer<std::byte> pack(const panels::Layout& layout, const ConvShape& shape,
                               std::span<const std::vector<std::size_t>> taps, const ConvRows& rows);

struct Call {
  Rows<const float> x = {};
  std::size_t length = 0;  ///< rows of x
  const std::byte* w = nullptr;
  std::size_t in_channels = 0;
  std::size_t out_channels = 0;
  std::span<const Phase> phases = {};
  std::size_t positions = 0;
  std::size_t x_step = 1;    ///< rows of x from one position to the next
  std::size_t tap_step = 1;  ///< rows of x from one tap to the next
  std::size_t row_step = 1;  ///< rows of y from one position to the next, in a phase
  std::size_t rows = 0;      ///< of y
  ConvFusion fusion = {};
  Rows<float> y = {};
};

void run(const Kernel& kernel, const Context& context, const Call& call);

/// One row of x', its channels past `channels` up to the end of `out` zeros; `x` null for a row of zeros.
struct PrepareCall {
  const float* x;
  std::size_t channels;
  SnakeChannels input;
  Element element;
  std::byte* out;
  std::size_t bytes;
};
void prepare_row(const PrepareCall& call);

/// y[0, columns) of one row from its sums; bias, snake and residual already at this row and column.
struct FinishCall {
  const float* sums;
  std::size_t columns;
  const float* bias;
  SnakeChannels output;
  const float* residual;
  float* y;
};
void finish_row(const FinishCall& call);

}  // namespace assay::ops::taps
