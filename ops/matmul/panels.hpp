#pragma once

#include <cstddef>

#include "ops/matmul/matmul.hpp"

/// What the fast forms of `matmul` share: one layout of w per element type, one blocked loop, one small
/// kernel per instruction set. The loop nest is that of Goto and van de Geijn, "Anatomy of High-Performance
/// Matrix Multiplication" (ACM TOMS 34, 2008), with the roles set for few rows of x and much w.
///
/// w is cut into panels of 32 output features. A panel is a list of steps; a step is 128 bytes, in which each
/// of the 32 features has 4 bytes: one fp32 of k, or two bf16 of consecutive k (the pair that VDPBF16PS and
/// TDPBF16PS multiply). Features past n and values past k are zeros.
///
/// x is copied once per run into tiles of up to `Kernel::max_rows` rows, in the order in which the kernel
/// reads it.
namespace assay::ops::panels {

inline constexpr std::size_t kColumns = 32;
inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kStepBytes = kColumns * 4;

/// Copies rows[0, count) × [0, k) to `out` in `steps` steps of `width` rows; what is past count or k is
/// zeros.
using Interleave = void (*)(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                            std::size_t steps, std::byte* out);

struct Layout {
  std::size_t values_per_step;  ///< of k
  std::size_t step_multiple;    ///< a panel has a multiple of so many steps
  Interleave interleave;        ///< makes a panel of 32 rows of w
};

/// [step][32] fp32.
extern const Layout kFloatLayout;
/// [step][32][2] bf16, a multiple of 16 steps: any 16 steps × 16 features are a B tile of TDPBF16PS (the VNNI
/// format of the Intel Architecture Instruction Set Extensions Programming Reference, chapter 3), 128 bytes
/// between its rows.
extern const Layout kBf16Layout;

/// x tiles as w is laid out, with as many columns as the tile has rows.
void interleave_floats(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                       std::size_t steps, std::byte* out);
void interleave_bf16_pairs(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                           std::size_t steps, std::byte* out);
/// x tiles [step][2][row] fp32, rounded to bf16.
void interleave_rounded_floats(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                               std::size_t steps, std::byte* out);
/// x tiles [step / 16][row][16][2] bf16: A tiles of TDPBF16PS, 64 bytes a row.
void tile_bf16_rows(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                    std::size_t steps, std::byte* out);

/// What is read after this: step s asks for the cache line at data + s · stride, so that memory gives it
/// while earlier tiles compute, and evenly: a burst of requests would hold up the tile's own loads.
struct Ahead {
  const std::byte* data;
  std::size_t stride;
};

/// sums[row][column] = (resume ? sums[row][column] : 0) + Σ over the steps, one step after the other.
struct TileCall {
  const std::byte* x;  ///< the tile, from its first step on
  const std::byte* w;  ///< the panel, from its first step on
  std::size_t steps;
  std::size_t rows;  ///< of the tile, a multiple of Kernel::row_multiple
  float* sums;       ///< [rows][32], 64-byte aligned
  bool resume;
  Ahead ahead_w;
  Ahead ahead_x;
};

/// Into the L2 cache: the L1 cache holds the current part of the panel. Inlined by force, as GCC drops a call
/// of a function that has no effect but this.
[[gnu::always_inline]] inline void prefetch(const Ahead& ahead, std::size_t step) {
  __builtin_prefetch(ahead.data + step * ahead.stride, 0, 2);
}

/// The same for `count` steps at once, a line at a time.
[[gnu::always_inline]] inline void prefetch(const Ahead& ahead, std::size_t step, std::size_t count) {
  const std::byte* line = ahead.data + step * ahead.stride;
  const std::byte* end = line + count * ahead.stride;
  for (; line < end; line += kCacheLine) __builtin_prefetch(line, 0, 2);
}

struct Kernel {
  const Layout* layout;
  Interleave pack_x;
  std::size_t x_step_bytes;  ///< that one row of x takes in a step
  std::size_t max_rows;
  std::size_t row_multiple;
  /// Steps after which sums rest in memory, so that what of a panel they take stays in the L1 cache.
  std::size_t block_steps;
  void (*tile)(const TileCall& call);
  void (*enter)() = nullptr;  ///< on each thread, before tiles: sets up its tile registers
  void (*leave)() = nullptr;  ///< after them
};

const Kernel& vector_kernel();
const Kernel& vector_bf16_kernel();
#if defined(__x86_64__)
const Kernel& avx512_bf16_kernel();
const Kernel& amx_bf16_kernel();
#endif

std::size_t steps_of(const Layout& layout, std::size_t k);
std::size_t packed_bytes(const Layout& layout, std::size_t n, std::size_t k);
/// As MatmulForm::pack; the caller sets the form.
MatmulWeight pack(const Layout& layout, std::size_t n, std::size_t k, const WeightRows& rows);
/// As MatmulForm::run.
void run(const Kernel& kernel, const Context& context, const MatmulArgs& args);

}  // namespace assay::ops::panels
