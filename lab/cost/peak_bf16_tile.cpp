// Compiled for AMX, on x86-64 alone: nothing here may be an inline function that other files share.
#include <immintrin.h>

#include <cstdint>

#include "lab/cost/peak_kernels.hpp"

namespace assay::lab {
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

// Of a tile product: 16 rows by 16 columns by 32 factors, a multiply and an add each.
constexpr double kOperations = 2.0 * 16 * 16 * 32;
constexpr double kSums = 6;

}  // namespace

double run_bf16_tile(std::size_t rounds) {
  _tile_loadconfig(&kConfig);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (std::size_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_release();
  return kOperations * kSums * static_cast<double>(rounds);
}

}  // namespace assay::lab
