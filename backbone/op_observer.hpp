#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/form.hpp"

namespace assay::backbone {

/// One call of an op, from the thread that asked for it. Texts live as long as the program.
struct OpCall {
  struct Dimension {
    std::string_view name = {};  ///< empty: no such dimension
    std::size_t size = 0;
  };
  using Clock = std::chrono::steady_clock;

  std::string_view op;
  std::string_view form;
  std::string_view part;  ///< what it does in its layer: "qkv", "down", "input_norm"
  ops::Precision precision = ops::Precision::fp32;  ///< of its products
  std::int32_t layer = -1;                          ///< −1: before the first layer or behind the last
  /// Products: m, n, k. Attention: tokens, keys (of all runs that its segments see), heads, head_dim.
  /// gated_delta_rule: tokens, heads (of values), key_dim, value_dim. causal_conv1d: tokens, channels, width.
  /// rms_norm: rows, groups, dim. rope: rows, heads, rotary_dim. swiglu: rows, dim. embed: tokens, dim.
  std::array<Dimension, 4> shape = {};
  /// By the mathematics of the op, whatever the form does: 2·m·n·k of a product; 4·heads·head_dim of every
  /// visible query-key pair; 7·key_dim·value_dim of every value head and token of the recurrence; 2·width of
  /// every channel and token of the convolution. 0 for norms, activations, rotations and look-ups.
  double operations = 0;
  double weight_bytes = 0;  ///< of parameters, as they lie in memory, each read once
  double data_bytes = 0;    ///< of activations and states: inputs read once, outputs written once
  Clock::time_point begin = {};
  Clock::time_point end = {};
};

/// Is told of every op call of a run, after it, on the run's thread. A run without one takes no times.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void on_call(const OpCall& call) = 0;

 protected:
  OpObserver() = default;
  OpObserver(const OpObserver&) = default;
  OpObserver& operator=(const OpObserver&) = default;
};

/// Wall time by op.
struct OpTimes final : OpObserver {
  struct Entry {
    std::string op;
    double seconds = 0;
    double operations = 0;  ///< as OpCall counts them
    std::size_t calls = 0;
  };
  std::vector<Entry> entries;
  void on_call(const OpCall& call) override;
};

}  // namespace assay::backbone
