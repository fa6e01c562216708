#pragma once

#include <cstddef>

#include "ops/conv1d/taps.hpp"
#include "ops/matmul/amx_tiles.hpp"

namespace assay::ops::taps {

using panels::kStepBytes;
using panels::kTileRowBytes;
using panels::kTileRows;

/// As panels::amx_row_tiles, with the rows of x where the convolution has them and a loop over taps.
template <class Tiles, bool both>
void amx_row_tiles(const TileCall& call) {
  float* lower_sums = call.sums + kTileRows * panels::kColumns;
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
  const std::byte* w = call.w;
  for (std::size_t tap = 0; tap < call.taps; ++tap) {
    const std::byte* x = call.x + tap * call.tap_bytes;
    for (std::size_t s = 0; s < call.steps; s += kTileRows) {
      Tiles::template load<4>(x, call.row_bytes);
      Tiles::template load<6>(w, kStepBytes);
      Tiles::template load<7>(w + kTileRowBytes, kStepBytes);
      Tiles::template multiply_add<0, 4, 6>();
      Tiles::template multiply_add<1, 4, 7>();
      if constexpr (both) {
        Tiles::template load<5>(x + kTileRows * call.row_bytes, call.row_bytes);
        Tiles::template multiply_add<2, 5, 6>();
        Tiles::template multiply_add<3, 5, 7>();
      }
      panels::prefetch(call.ahead, tap * call.steps + s, kTileRows);
      x += kTileRowBytes;
      w += kTileRows * kStepBytes;
    }
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

template <class Tiles>
inline constexpr Kernel kAmxKernel = {.layout = &panels::kBf16Layout,
                                      .element = Element::bf16,
                                      .max_rows = 2 * kTileRows,
                                      .row_multiple = kTileRows,
                                      .block_steps = 128,
                                      .tile = amx_tile<Tiles>,
                                      .enter = Tiles::enter,
                                      .leave = Tiles::leave};

}  // namespace assay::ops::taps
