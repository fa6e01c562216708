// For files compiled for AMX, on x86-64 alone. The anonymous namespace keeps each file's copy its own: none
// may be shared with code that runs without AMX.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/matmul/amx_tiles.hpp"

namespace assay::ops::panels {
namespace {

/// LDTILECFG's operand, palette 1 (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2).
struct alignas(64) TileConfig {
  std::uint8_t palette;
  std::uint8_t start_row;
  std::uint8_t reserved[14];
  std::uint16_t row_bytes[16];
  std::uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

constexpr TileConfig kConfig = {.palette = 1,
                                .start_row = 0,
                                .reserved = {},
                                .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

// GCC 12's intrinsics paste the register's number into assembly text: it must be a literal, not a template
// parameter. Theirs for loads and products also tell the compiler nothing of memory, so no store that they
// must see may stand in the same function; TileCall is where the others' stores end.
#define ASSAY_TILE_SWITCH(tile, instruction) \
  static_assert((tile) < 8);                 \
  if constexpr ((tile) == 0) {               \
    instruction(0);                          \
  } else if constexpr ((tile) == 1) {        \
    instruction(1);                          \
  } else if constexpr ((tile) == 2) {        \
    instruction(2);                          \
  } else if constexpr ((tile) == 3) {        \
    instruction(3);                          \
  } else if constexpr ((tile) == 4) {        \
    instruction(4);                          \
  } else if constexpr ((tile) == 5) {        \
    instruction(5);                          \
  } else if constexpr ((tile) == 6) {        \
    instruction(6);                          \
  } else {                                   \
    instruction(7);                          \
  }

struct HardwareTiles {
  static void enter() { _tile_loadconfig(&kConfig); }
  static void leave() { _tile_release(); }

  template <int tile>
  static void zero() {
#define ASSAY_ZERO(t) _tile_zero(t)
    ASSAY_TILE_SWITCH(tile, ASSAY_ZERO)
#undef ASSAY_ZERO
  }

  template <int tile>
  static void load(const void* from, std::size_t stride) {
#define ASSAY_LOAD(t) _tile_loadd(t, from, stride)
    ASSAY_TILE_SWITCH(tile, ASSAY_LOAD)
#undef ASSAY_LOAD
  }

  template <int tile>
  static void store(void* to, std::size_t stride) {
#define ASSAY_STORE(t) _tile_stored(t, to, stride)
    ASSAY_TILE_SWITCH(tile, ASSAY_STORE)
#undef ASSAY_STORE
  }

  template <int sum, int x, int w>
  static void multiply_add() {
    static_assert(sum < 4 && (x == 4 || x == 5) && (w == 6 || w == 7) && sum == 2 * (x - 4) + (w - 6));
    if constexpr (sum == 0) {
      _tile_dpbf16ps(0, 4, 6);
    } else if constexpr (sum == 1) {
      _tile_dpbf16ps(1, 4, 7);
    } else if constexpr (sum == 2) {
      _tile_dpbf16ps(2, 5, 6);
    } else {
      _tile_dpbf16ps(3, 5, 7);
    }
  }
};

#undef ASSAY_TILE_SWITCH

}  // namespace
}  // namespace assay::ops::panels
