#pragma once

#include <cstddef>

#include "ops/matmul/panels.hpp"

namespace assay::ops::panels {

/// A tile register here always has 16 rows of 64 bytes: 16 × 16 fp32 of sums, 16 rows × 16 pairs of x, or
/// 16 pairs × 16 features of w.
inline constexpr std::size_t kTileRows = 16;
inline constexpr std::size_t kTileRowBytes = 64;

/// A kernel's tile (16 or 32 rows × 32 features) on tile registers: sums in 0 to 3, x in 4 and 5, w in 6 and
/// 7, so that each loaded tile is used twice. `Tiles` is the hardware or, for tests, plain loops:
///   zero<t>(), load<t>(from, bytes between rows), store<t>(to, bytes between rows),
///   multiply_add<sum, x, w>(): as TDPBF16PS.
template <class Tiles, bool both>
void amx_row_tiles(const TileCall& call) {
  float* lower_sums = call.sums + kTileRows * kColumns;
  if (call.resume) {
    Tiles::template load<0>(call.sums, kStepBytes);
    Tiles::template load<1>(call.sums + kTileRows, kStepBytes);
    if constexpr (both) {
      Tiles::template load<2>(lower_sums, kStepBytes);
      Tiles::template load<3>(lower_sums + kTileRows, kStepBytes);
    }
  } else {
    Tiles::template zero<0>();
    Tiles::template zero<1>();
    if constexpr (both) {
      Tiles::template zero<2>();
      Tiles::template zero<3>();
    }
  }
  const std::byte* x = call.x;
  const std::byte* w = call.w;
  for (std::size_t s = 0; s < call.steps; s += kTileRows) {
    Tiles::template load<4>(x, kTileRowBytes);
    Tiles::template load<6>(w, kStepBytes);
    Tiles::template load<7>(w + kTileRowBytes, kStepBytes);
    Tiles::template multiply_add<0, 4, 6>();
    Tiles::template multiply_add<1, 4, 7>();
    if constexpr (both) {
      Tiles::template load<5>(x + kTileRows * kTileRowBytes, kTileRowBytes);
      Tiles::template multiply_add<2, 5, 6>();
      Tiles::template multiply_add<3, 5, 7>();
    }
    prefetch(call.ahead_w, s, kTileRows);
    prefetch(call.ahead_x, s, kTileRows);
    x += call.rows * kTileRowBytes;
    w += kTileRows * kStepBytes;
  }
  Tiles::template store<0>(call.sums, kStepBytes);
  Tiles::template store<1>(call.sums + kTileRows, kStepBytes);
  if constexpr (both) {
    Tiles::template store<2>(lower_sums, kStepBytes);
    Tiles::template store<3>(lower_sums + kTileRows, kStepBytes);
  }
}

template <class Tiles>
void amx_tile(const TileCall& call) {
  if (call.rows > kTileRows) {
    amx_row_tiles<Tiles, true>(call);
  } else {
    amx_row_tiles<Tiles, false>(call);
  }
}

/// Rows are padded to whole tile registers: one configuration serves every shape. A block's w and x are 16
/// KiB each: a tile takes as much x as w, unlike the lower tiles of the vector kernels.
template <class Tiles>
inline constexpr Kernel kAmxKernel = {.layout = &kBf16Layout,
                                      .pack_x = tile_bf16_rows,
                                      .x_step_bytes = 4,
                                      .max_rows = 2 * kTileRows,
                                      .row_multiple = kTileRows,
                                      .block_steps = 128,
                                      .tile = amx_tile<Tiles>,
                                      .enter = Tiles::enter,
                                      .leave = Tiles::leave};

}  // namespace assay::ops::panels
