// Compiled for AVX-512 BF16, on x86-64 alone: nothing here may be an inline function that other files share.
#include <immintrin.h>

#include <cstddef>
#include <utility>

#include "ops/conv1d/taps.hpp"

namespace assay::ops::taps {
namespace {

// As in matmul/avx512_bf16.cpp: 24 sums, more than the latency of VDPBF16PS times its two a cycle.
constexpr std::size_t kMaxRows = 12;
constexpr std::size_t kLanes = 16;
constexpr std::size_t kColumns = panels::kColumns;

inline __m512bh load_pairs(const std::byte* pairs) {
  return reinterpret_cast<__m512bh>(_mm512_load_si512(pairs));
}

inline __m512bh broadcast_pair(const std::byte* pair) {
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(*reinterpret_cast<const int*>(pair)));
}

inline void add_row(const std::byte* x, __m512bh left_w, __m512bh right_w, __m512& left, __m512& right) {
  const __m512bh pair = broadcast_pair(x);
  left = _mm512_dpbf16_ps(left, left_w, pair);
  right = _mm512_dpbf16_ps(right, right_w, pair);
}

/// The rows are a parameter pack so that every sum is a register at any optimisation level that inlines.
template <std::size_t... R>
inline void tile_of(std::index_sequence<R...> /*rows*/, const TileCall& call) {
  constexpr std::size_t kRows = sizeof...(R);
  const std::size_t stride = call.row_bytes;
  const std::byte* w = call.w;
  __m512 left[kRows] = {(static_cast<void>(R), _mm512_setzero_ps())...};
  __m512 right[kRows] = {(static_cast<void>(R), _mm512_setzero_ps())...};
  if (call.resume) {
    ((left[R] = _mm512_load_ps(call.sums + R * kColumns)), ...);
    ((right[R] = _mm512_load_ps(call.sums + R * kColumns + kLanes)), ...);
  }
  std::size_t step = 0;
  for (std::size_t tap = 0; tap < call.taps; ++tap) {
    const std::byte* x = call.x + tap * call.tap_bytes;
    for (std::size_t s = 0; s < call.steps; ++s, ++step) {
      const __m512bh left_w = load_pairs(w);
      const __m512bh right_w = load_pairs(w + panels::kStepBytes / 2);
      (add_row(x + R * stride, left_w, right_w, left[R], right[R]), ...);
      panels::prefetch(call.ahead, step);
      x += 4;
      w += panels::kStepBytes;
    }
  }
  (_mm512_store_ps(call.sums + R * kColumns, left[R]), ...);
  (_mm512_store_ps(call.sums + R * kColumns + kLanes, right[R]), ...);
}

template <std::size_t rows>
void tile_of_rows(const TileCall& call) {
  tile_of(std::make_index_sequence<rows>(), call);
}

template <std::size_t... R>
void dispatch(std::index_sequence<R...> /*rows*/, const TileCall& call) {
  static constexpr void (*kTiles[])(const TileCall&) = {tile_of_rows<R + 1>...};
  kTiles[call.rows - 1](call);
}

void tile(const TileCall& call) {
  dispatch(std::make_index_sequence<kMaxRows>(), call);
}

}  // namespace

const Kernel& avx512_bf16_kernel() {
  static constexpr Kernel kernel = {.layout = &panels::kBf16Layout,
                                    .element = Element::bf16,
                                    .max_rows = kMaxRows,
                                    .row_multiple = 1,
                                    .block_steps = 256,
                                    .tile = tile};
  return kernel;
}

}  // namespace assay::ops::taps
