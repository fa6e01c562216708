#pragma once

#include <cstddef>

#include "ops/gated_delta_rule/gated_delta_rule.hpp"

namespace assay::ops::gdn {

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Where a worker keeps what it needs for one key head of one segment, in floats from the start of its
/// scratch: up to `rows` tokens at a time, and the states of the value heads that share the key head.
///
/// Columns of a state never mix, so state, v and o are held in panels of a few vectors' width: a panel of the
/// state stays in the first-level cache while the tokens pass. Panel p of a matrix with r rows is contiguous,
/// at p · r · panel width. Everything is padded with zeros to whole vectors, so that no kernel has
/// remainders.
struct Layout {
  /// Widest panel and tile of any instruction set here, in floats; every offset is a multiple of it.
  static constexpr std::size_t kAlignment = 64;

  Layout(const GatedDeltaRuleArgs& args, std::size_t rows, bool chunked)
      : rows(rows),
        key_stride(round_up(args.key_dim, 16)),
        value_stride(round_up(args.value_dim, kAlignment)),
        state_floats(key_stride * value_stride) {
    q = take(rows * key_stride);
    k = take(rows * key_stride);
    v = take(rows * value_stride);
    o = take(rows * value_stride);
    state = take(args.value_heads / args.key_heads * state_floats);
    const std::size_t square = chunked ? rows * rows : 0;
    k_columns = take(chunked ? rows * key_stride : 0);
    kk = take(square);
    qk = take(square);
    lower = take(square);
    scores = take(square);
    decays = take(rows);
  }

  std::size_t rows;
  std::size_t key_stride;    ///< of a row of q and k
  std::size_t value_stride;  ///< of all panels of one row of v, o and state
  std::size_t state_floats;
  std::size_t q, k;       ///< [rows, key_stride], normalised
  std::size_t v, o;       ///< [panel, rows, panel width]
  std::size_t state;      ///< [value heads of the key head, panel, key_stride, panel width]
  std::size_t k_columns;  ///< [key_stride, rows], k transposed
  std::size_t kk, qk;     ///< [rows, rows], k̂ᵢ·k̂ⱼ and q̂ᵢ·k̂ⱼ for j ≤ i
  std::size_t lower;      ///< [rows, rows], the unit lower triangular system without its diagonal
  std::size_t scores;     ///< [rows, rows], decayed q̂ᵢ·k̂ⱼ
  std::size_t decays;     ///< [rows], from each token to the one at hand
  std::size_t total = 0;

 private:
  std::size_t take(std::size_t count) {
    const std::size_t offset = total;
    total += round_up(count, kAlignment);
    return offset;
  }
};

}  // namespace assay::ops::gdn
