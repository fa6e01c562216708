// Compiled for AMX, on x86-64 alone: nothing here may be an inline function that other files share.
#include <immintrin.h>

#include "lab/cost/peak_kernels.hpp"
#include "ops/matmul/amx_hardware.hpp"

namespace assay::lab {
namespace {

// Of a tile product: 16 rows by 16 columns by 32 factors, a multiply and an add each.
constexpr double kOperations = 2.0 * 16 * 16 * 32;
constexpr double kSums = 6;

}  // namespace

double run_bf16_tile(std::size_t rounds) {
  ops::panels::HardwareTiles::enter();
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
  ops::panels::HardwareTiles::leave();
  return kOperations * kSums * static_cast<double>(rounds);
}

}  // namespace assay::lab
