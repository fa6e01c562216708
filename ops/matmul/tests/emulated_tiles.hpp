#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "base/dtype.hpp"
#include "ops/matmul/amx_tiles.hpp"

namespace assay::ops::panels {

/// Eight tile registers in memory, and what the AMX instructions do to them, element by element (Intel
/// Architecture Instruction Set Extensions Programming Reference, TDPBF16PS). Subnormals are not flushed.
/// Like the hardware's, the registers exist between enter and leave only.
struct EmulatedTiles {
  using Tile = std::array<std::array<std::byte, kTileRowBytes>, kTileRows>;

  static void enter() {
    entered = true;
    for (Tile& tile : tiles) tile = {};
  }
  static void leave() { entered = false; }

  template <int t>
  static void zero() {
    at(t) = {};
  }

  template <int t>
  static void load(const void* from, std::size_t stride) {
    for (std::size_t r = 0; r < kTileRows; ++r) {
      std::memcpy(at(t)[r].data(), static_cast<const std::byte*>(from) + r * stride, kTileRowBytes);
    }
  }

  template <int t>
  static void store(void* to, std::size_t stride) {
    for (std::size_t r = 0; r < kTileRows; ++r) {
      std::memcpy(static_cast<std::byte*>(to) + r * stride, at(t)[r].data(), kTileRowBytes);
    }
  }

  template <int sum, int x, int w>
  static void multiply_add() {
    for (std::size_t m = 0; m < kTileRows; ++m) {
      for (std::size_t pair = 0; pair < kTileRowBytes / 4; ++pair) {
        for (std::size_t n = 0; n < kTileRowBytes / 4; ++n) {
          float total = get<float>(sum, m, n);
          for (std::size_t j = 0; j < 2; ++j) {
            total += bf16_to_float(get<std::uint16_t>(x, m, 2 * pair + j)) *
                     bf16_to_float(get<std::uint16_t>(w, pair, 2 * n + j));
          }
          std::memcpy(at(sum)[m].data() + n * sizeof total, &total, sizeof total);
        }
      }
    }
  }

 private:
  static Tile& at(int t) {
    if (!entered) throw std::logic_error("tile registers used without a configuration");
    return tiles[static_cast<std::size_t>(t)];
  }

  template <class T>
  static T get(int t, std::size_t row, std::size_t index) {
    T value;
    std::memcpy(&value, at(t)[row].data() + index * sizeof value, sizeof value);
    return value;
  }

  static inline thread_local bool entered = false;
  static inline thread_local std::array<Tile, 8> tiles{};
};

}  // namespace assay::ops::panels
