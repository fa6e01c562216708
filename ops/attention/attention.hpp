#pragma once

#include <cstddef>
#include <span>

#include "ops/form.hpp"

/// Op `attention`: scaled dot-product attention of segments over runs of keys, grouped heads, fp32.
///
/// A segment's query i (row first + i) sees a stretch of its keys, which are those of its runs one after the
/// other; `mask` says which. Query head h reads key-value head h / (heads / kv_heads).
/// out = softmax(scale · q·k) · v over that stretch; with `gate`, out · sigmoid(gate) (Qwen3.5).
///
/// Numbers. |out − exact| ≤ (2 e + (2 keys + 32) · 2⁻²⁴) · Σ w |v|, with w the weights and e the largest
/// error of a score, (head_dim + 3) · 2⁻²⁴ · scale · Σ |q k|; tested as such.
///
/// Same bits. A query's result depends on its own row and on the keys it sees in their order; where one run
/// ends and the next begins, what other queries there are, and the number of threads change nothing.
namespace assay::ops {

/// `length` keys and values, rows of kv_heads · head_dim.
struct KeyRun {
  Rows<const float> k = {};
  Rows<const float> v = {};
  std::size_t length = 0;
};

struct AttentionSegment {
  std::size_t first = 0;              ///< row of its first query in q, gate and out
  std::size_t length = 0;             ///< queries
  std::span<const KeyRun> runs = {};  ///< ancestors' keys first, its own tokens last
};

/// Which of its segment's keys query i sees.
enum class AttentionMask {
  causal,   ///< every key of each run but the last, and the first i + 1 of the last, which has one a query
  full,     ///< every key, of which there is at least one: both directions, or another sequence's (cross)
  sliding,  ///< keys i − window to i + window, both of them too; the segment has as many keys as queries
};

struct AttentionArgs {
  std::size_t heads = 0;
  std::size_t kv_heads = 0;  ///< divides heads
  std::size_t head_dim = 0;
  float scale = 0;
  AttentionMask mask = AttentionMask::causal;
  std::size_t window = 0;       ///< keys to either side that a query of a sliding mask sees
  Rows<const float> q = {};     ///< [tokens, heads · head_dim]
  Rows<const float> gate = {};  ///< [tokens, heads · head_dim], or null data for none
  /// Distance between heads inside a row of q and gate, in elements, at least head_dim: Qwen3.5's q
  /// projection interleaves query and gate head by head.
  std::size_t q_head_stride = 0;
  std::size_t gate_head_stride = 0;
  Rows<float> out = {};  ///< [tokens, heads · head_dim]; may not overlap the inputs
  std::span<const AttentionSegment> segments = {};
};

struct AttentionForm {
  FormInfo info;
  void (*run)(const Context& context, const AttentionArgs& args);
};

std::span<const AttentionForm> attention_forms();

}  // namespace assay::ops
