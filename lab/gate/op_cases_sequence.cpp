// Ops along the tokens of segments: gated_delta_rule, causal_conv1d, attention.

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "lab/gate/op_case_values.hpp"

namespace assay::lab {
namespace {

using Cases = std::vector<std::unique_ptr<OpCase>>;

struct DeltaShape {
  std::size_t key_heads, value_heads, key_dim, value_dim;
  std::size_t state_size() const { return value_heads * key_dim * value_dim; }
};

/// How a case's gates are set.
enum class Gates { ordinary, keep_all, forget_all, forget_now_and_then };
constexpr std::array<std::string_view, 4> kGateNames{"", " keeps all", " forgets all",
                                                     " forgets now and then"};

/// Two segments: the first starts from a state, the second from zeros.
class GatedDeltaRuleCase final : public OpCase {
 public:
  GatedDeltaRuleCase(Draw& draw, const DeltaShape& shape, std::size_t first, std::size_t second, Fill fill,
                     Gates gates)
      : shape_(shape), lengths_{first, second}, fill_(fill), gates_(gates) {
    const std::size_t tokens = first + second;
    q_ = draw.values(tokens * shape.key_heads * shape.key_dim, Fill::ordinary);
    k_ = draw.values(tokens * shape.key_heads * shape.key_dim, Fill::ordinary);
    v_ = draw.values(tokens * shape.value_heads * shape.value_dim, fill);
    a_ = draw.uniform(tokens * shape.value_heads, -4, 4);
    b_ = draw.uniform(tokens * shape.value_heads, -4, 4);
    for (std::size_t i = 0; i < a_.size(); ++i) set_gates(i);
    decay_ = draw.uniform(shape.value_heads, -2, -0.01);
    dt_bias_ = draw.uniform(shape.value_heads, -4, 1);
    initial_ = draw.values(shape.state_size(), fill);
  }

  std::string name() const override {
    return fmt::format("heads={}/{} dims={}x{} tokens={}+{} {}{}", shape_.key_heads, shape_.value_heads,
                       shape_.key_dim, shape_.value_dim, lengths_[0], lengths_[1], to_string(fill_),
                       kGateNames[static_cast<std::size_t>(gates_)]);
  }

  Answer exact() const override {
    std::vector<double> o(v_.size());
    std::array<std::vector<double>, 2> states;
    states[0].assign(initial_.begin(), initial_.end());
    states[1].assign(shape_.state_size(), 0);
    for (std::size_t t = 0; t < lengths_[0] + lengths_[1]; ++t) {
      for (std::size_t h = 0; h < shape_.value_heads; ++h) step(t, h, states[t < lengths_[0] ? 0 : 1], o);
    }
    return answer(std::move(o), std::move(states[0]), std::move(states[1]));
  }

  Answer run(const ops::Selection& selection, const ops::Context& context) const override {
    std::vector<float> o(v_.size());
    std::array<std::vector<float>, 2> states;
    for (auto& state : states) state.resize(shape_.state_size());
    const std::array<ops::SequenceSegment, 2> segments{
        ops::SequenceSegment{0, lengths_[0], initial_.data(), states[0].data()},
        ops::SequenceSegment{lengths_[0], lengths_[1], nullptr, states[1].data()}};
    const std::size_t keys = shape_.key_heads * shape_.key_dim;
    const std::size_t values = shape_.value_heads * shape_.value_dim;
    selection.gated_delta_rule->run(context, {.key_heads = shape_.key_heads,
                                              .value_heads = shape_.value_heads,
                                              .key_dim = shape_.key_dim,
                                              .value_dim = shape_.value_dim,
                                              .q = {q_.data(), keys},
                                              .k = {k_.data(), keys},
                                              .v = {v_.data(), values},
                                              .a = {a_.data(), shape_.value_heads},
                                              .b = {b_.data(), shape_.value_heads},
                                              .decay = decay_.data(),
                                              .dt_bias = dt_bias_.data(),
                                              .o = {o.data(), values},
                                              .segments = segments});
    return answer(std::move(o), std::move(states[0]), std::move(states[1]));
  }

 private:
  void set_gates(std::size_t index) {
    const std::size_t token = index / shape_.value_heads;
    if (gates_ == Gates::keep_all) a_[index] = -1e4f, b_[index] = 1e4f;
    if (gates_ == Gates::forget_all) a_[index] = 1e4f;
    if (gates_ == Gates::forget_now_and_then) a_[index] = token % 9 == 4 ? 3e4f : -3.0f;
  }

  /// One token of one head, as the contract writes it (gated_delta_rule.hpp).
  void step(std::size_t t, std::size_t h, std::vector<double>& state, std::vector<double>& o) const {
    const std::size_t dk = shape_.key_dim, dv = shape_.value_dim;
    const std::size_t key_head = h / (shape_.value_heads / shape_.key_heads);
    const std::vector<double> k = normalised(k_, (t * shape_.key_heads + key_head) * dk);
    const std::vector<double> q = normalised(q_, (t * shape_.key_heads + key_head) * dk);
    const double a = static_cast<double>(a_[t * shape_.value_heads + h]) + static_cast<double>(dt_bias_[h]);
    const double softplus = a > 30 ? a : std::log1p(std::exp(a));
    const double keep = std::exp(static_cast<double>(decay_[h]) * softplus);
    const double write = exact_sigmoid(b_[t * shape_.value_heads + h]);
    double* s = state.data() + h * dk * dv;
    const std::size_t out = (t * shape_.value_heads + h) * dv;
    for (std::size_t j = 0; j < dv; ++j) {
      double read = 0;
      for (std::size_t i = 0; i < dk; ++i) read += (s[i * dv + j] *= keep) * k[i];
      const double written = write * (static_cast<double>(v_[out + j]) - read);
      for (std::size_t i = 0; i < dk; ++i) {
        s[i * dv + j] += k[i] * written;
        o[out + j] += s[i * dv + j] * q[i] / std::sqrt(static_cast<double>(dk));
      }
    }
  }

  std::vector<double> normalised(const std::vector<float>& values, std::size_t first) const {
    std::vector<double> y(shape_.key_dim);
    double squares = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i] = values[first + i];
      squares += y[i] * y[i];
    }
    for (double& value : y) value /= std::sqrt(squares + 1e-6);
    return y;
  }

  Answer answer(Values o, Values first_state, Values second_state) const {
    const std::size_t tokens = lengths_[0] + lengths_[1];
    Answer answer = one_array({tokens, shape_.value_heads, shape_.value_dim}, std::move(o));
    const std::vector<std::size_t> shape{shape_.value_heads, shape_.key_dim, shape_.value_dim};
    answer.arrays.push_back({.name = "state0", .shape = shape, .values = std::move(first_state)});
    answer.arrays.push_back({.name = "state1", .shape = shape, .values = std::move(second_state)});
    return answer;
  }

  DeltaShape shape_;
  std::array<std::size_t, 2> lengths_;
  Fill fill_;
  Gates gates_;
  std::vector<float> q_, k_, v_, a_, b_, decay_, dt_bias_, initial_;
};

class CausalConv1dCase final : public OpCase {
 public:
  CausalConv1dCase(Draw& draw, std::size_t channels, std::size_t width, std::size_t first, std::size_t second,
                   Fill fill)
      : channels_(channels), width_(width), lengths_{first, second}, fill_(fill) {
    x_ = draw.values((first + second) * channels, fill);
    w_ = draw.values(width * channels, Fill::ordinary);
    initial_ = draw.values((width - 1) * channels, fill);
  }

  std::string name() const override {
    return fmt::format("channels={} width={} tokens={}+{} {}", channels_, width_, lengths_[0], lengths_[1],
                       to_string(fill_));
  }

  Answer exact() const override {
    std::vector<double> y(x_.size());
    for (std::size_t t = 0; t < lengths_[0] + lengths_[1]; ++t) {
      for (std::size_t c = 0; c < channels_; ++c) {
        double sum = 0;
        for (std::size_t j = 0; j < width_; ++j) {
          sum += static_cast<double>(w_[j * channels_ + c]) * input(t, width_ - 1 - j, c);
        }
        y[t * channels_ + c] = sum * exact_sigmoid(sum);
      }
    }
    return answer(std::move(y), final_state<double>(0), final_state<double>(1));
  }

  Answer run(const ops::Selection& selection, const ops::Context& context) const override {
    std::vector<float> y(x_.size());
    std::array<std::vector<float>, 2> states;
    for (auto& state : states) state.resize(initial_.size());
    const std::array<ops::SequenceSegment, 2> segments{
        ops::SequenceSegment{0, lengths_[0], initial_.data(), states[0].data()},
        ops::SequenceSegment{lengths_[0], lengths_[1], nullptr, states[1].data()}};
    selection.causal_conv1d->run(context, {.channels = channels_,
                                           .width = width_,
                                           .w = w_.data(),
                                           .x = {x_.data(), channels_},
                                           .y = {y.data(), channels_},
                                           .segments = segments});
    return answer(std::move(y), std::move(states[0]), std::move(states[1]));
  }

 private:
  /// x `back` tokens before token t of its own segment, from the initial state or zero before that.
  double input(std::size_t t, std::size_t back, std::size_t channel) const {
    const bool second = t >= lengths_[0];
    const std::size_t own = second ? t - lengths_[0] : t;
    if (back <= own) return x_[(t - back) * channels_ + channel];
    return second ? 0 : initial_[(width_ - 1 - (back - own)) * channels_ + channel];
  }

  template <class T>
  std::vector<T> final_state(std::size_t segment) const {
    const std::size_t end = segment == 0 ? lengths_[0] : lengths_[0] + lengths_[1];
    std::vector<T> state(initial_.size());
    for (std::size_t i = 0; i + 1 < width_; ++i) {
      for (std::size_t c = 0; c < channels_; ++c) {
        state[i * channels_ + c] = static_cast<T>(input(end - 1, width_ - 2 - i, c));
      }
    }
    return state;
  }

  Answer answer(Values y, Values first_state, Values second_state) const {
    Answer answer = one_array({lengths_[0] + lengths_[1], channels_}, std::move(y));
    const std::vector<std::size_t> shape{width_ - 1, channels_};
    answer.arrays.push_back({.name = "state0", .shape = shape, .values = std::move(first_state)});
    answer.arrays.push_back({.name = "state1", .shape = shape, .values = std::move(second_state)});
    return answer;
  }

  std::size_t channels_, width_;
  std::array<std::size_t, 2> lengths_;
  Fill fill_;
  std::vector<float> x_, w_, initial_;
};

/// One segment of queries over a run of its parent's keys and its own; which of them each sees is the mask's.
class AttentionCase final : public OpCase {
 public:
  struct Shape {
    std::size_t heads, kv_heads, dim, parent, own;
    ops::AttentionMask mask = ops::AttentionMask::causal;
    std::size_t window = 0;
  };
  AttentionCase(Draw& draw, const Shape& shape, double sharpness, bool gated)
      : shape_(shape), sharpness_(sharpness) {
    const std::size_t keys = shape.parent + shape.own;
    q_ = draw.uniform(shape.own * shape.heads * shape.dim, -sharpness, sharpness);
    k_ = draw.values(keys * shape.kv_heads * shape.dim, Fill::ordinary);
    v_ = draw.values(keys * shape.kv_heads * shape.dim, Fill::ordinary);
    if (gated) gate_ = draw.uniform(q_.size(), -20, 20);
  }

  std::string name() const override {
    return fmt::format("heads={}/{} dim={} keys={}+{} |q|<{}{}{}", shape_.heads, shape_.kv_heads, shape_.dim,
                       shape_.parent, shape_.own, sharpness_, gate_.empty() ? "" : " gated", mask_name());
  }

  Answer exact() const override {
    std::vector<double> out(q_.size());
    for (std::size_t t = 0; t < shape_.own; ++t) {
      for (std::size_t h = 0; h < shape_.heads; ++h) attend(t, h, out);
    }
    return one_array({shape_.own, shape_.heads, shape_.dim}, std::move(out));
  }

  Answer run(const ops::Selection& selection, const ops::Context& context) const override {
    const std::size_t width = shape_.kv_heads * shape_.dim;
    const float* own_k = k_.data() + shape_.parent * width;
    const float* own_v = v_.data() + shape_.parent * width;
    std::vector<ops::KeyRun> runs;
    if (shape_.parent > 0) runs.push_back({{k_.data(), width}, {v_.data(), width}, shape_.parent});
    runs.push_back({{own_k, width}, {own_v, width}, shape_.own});
    const std::array<ops::AttentionSegment, 1> segments{ops::AttentionSegment{0, shape_.own, runs}};
    std::vector<float> out(q_.size());
    const std::size_t stride = shape_.heads * shape_.dim;
    selection.attention->run(context, {.heads = shape_.heads,
                                       .kv_heads = shape_.kv_heads,
                                       .head_dim = shape_.dim,
                                       .scale = scale(),
                                       .mask = shape_.mask,
                                       .window = shape_.window,
                                       .q = {q_.data(), stride},
                                       .gate = {gate_.empty() ? nullptr : gate_.data(), stride},
                                       .q_head_stride = shape_.dim,
                                       .gate_head_stride = shape_.dim,
                                       .out = {out.data(), stride},
                                       .segments = segments});
    return one_array({shape_.own, shape_.heads, shape_.dim}, std::move(out));
  }

 private:
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.dim)); }

  std::string mask_name() const {
    switch (shape_.mask) {
      case ops::AttentionMask::causal:
        return "";
      case ops::AttentionMask::full:
        return " full";
      case ops::AttentionMask::sliding:
        return fmt::format(" window={}", shape_.window);
    }
    return "";
  }

  bool sees(std::size_t t, std::size_t key) const {
    switch (shape_.mask) {
      case ops::AttentionMask::causal:
        return key <= shape_.parent + t;
      case ops::AttentionMask::full:
        return true;
      case ops::AttentionMask::sliding:
        return key + shape_.window >= t && key <= t + shape_.window;
    }
    return false;
  }

  void attend(std::size_t t, std::size_t h, std::vector<double>& out) const {
    const std::size_t kv = h / (shape_.heads / shape_.kv_heads);
    const std::size_t place = (t * shape_.heads + h) * shape_.dim;
    std::vector<std::size_t> keys;
    for (std::size_t key = 0; key < shape_.parent + shape_.own; ++key) {
      if (sees(t, key)) keys.push_back(key);
    }
    std::vector<double> weights(keys.size());
    for (std::size_t j = 0; j < keys.size(); ++j) {
      for (std::size_t i = 0; i < shape_.dim; ++i) {
        weights[j] += static_cast<double>(q_[place + i]) *
                      static_cast<double>(k_[(keys[j] * shape_.kv_heads + kv) * shape_.dim + i]);
      }
      weights[j] *= static_cast<double>(scale());
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double total = 0;
    for (double& weight : weights) total += weight = std::exp(weight - largest);
    for (std::size_t i = 0; i < shape_.dim; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < keys.size(); ++j) {
        sum += weights[j] * static_cast<double>(v_[(keys[j] * shape_.kv_heads + kv) * shape_.dim + i]);
      }
      out[place + i] = sum / total * (gate_.empty() ? 1 : exact_sigmoid(gate_[place + i]));
    }
  }

  Shape shape_;
  double sharpness_;
  std::vector<float> q_, k_, v_, gate_;
};

}  // namespace

Cases gated_delta_rule_cases(Draw draw) {
  Cases cases;
  const auto add = [&](const DeltaShape& shape, std::size_t first, std::size_t second, Fill fill,
                       Gates gates) {
    cases.push_back(std::make_unique<GatedDeltaRuleCase>(draw, shape, first, second, fill, gates));
  };
  for (const DeltaShape& shape : {DeltaShape{1, 1, 1, 1}, DeltaShape{1, 3, 7, 5}, DeltaShape{2, 4, 16, 33},
                                  DeltaShape{1, 2, 40, 66}, DeltaShape{1, 1, 128, 128}}) {
    for (const Fill fill : kFills) add(shape, 37, 3, fill, Gates::ordinary);
  }
  // Around the chunks of 16, 32 and 64 tokens that forms are cut at.
  for (const std::size_t length : {1u, 15u, 16u, 17u, 63u, 64u, 65u, 130u}) {
    add({1, 2, 8, 9}, length, 1, Fill::ordinary, Gates::ordinary);
  }
  for (const Gates gates : {Gates::keep_all, Gates::forget_all, Gates::forget_now_and_then}) {
    add({1, 2, 12, 20}, 40, 70, Fill::ordinary, gates);
  }
  for (int i = 0; i < 4; ++i) {
    const std::size_t heads = draw.count(1, 3);
    const DeltaShape shape{heads, heads * draw.count(1, 2), draw.count(1, 70), draw.count(1, 70)};
    add(shape, draw.count(1, 90), draw.count(1, 90), Fill::ordinary, Gates::ordinary);
  }
  return cases;
}

Cases causal_conv1d_cases(Draw draw) {
  Cases cases;
  const auto add = [&](std::size_t channels, std::size_t width, std::size_t first, std::size_t second) {
    for (const Fill fill : kFills) {
      cases.push_back(std::make_unique<CausalConv1dCase>(draw, channels, width, first, second, fill));
    }
  };
  for (const std::size_t channels : {1u, 7u, 8u, 15u, 16u, 17u, 65u}) add(channels, 4, 9, 2);
  for (const std::size_t width : {2u, 3u, 8u}) add(20, width, 1, 12);
  for (int i = 0; i < 4; ++i) add(draw.count(1, 200), draw.count(2, 8), draw.count(1, 40), draw.count(1, 40));
  return cases;
}

Cases attention_cases(Draw draw) {
  Cases cases;
  const auto add = [&](const AttentionCase::Shape& shape) {
    // From an even attention to one that a single key takes.
    for (const double sharpness : {1e-3, 2.0, 60.0}) {
      for (const bool gated : {false, true}) {
        cases.push_back(std::make_unique<AttentionCase>(draw, shape, sharpness, gated));
      }
    }
  };
  const std::vector<AttentionCase::Shape> shapes{
      {1, 1, 8, 0, 1}, {2, 1, 15, 0, 5}, {4, 2, 17, 16, 3}, {2, 2, 64, 33, 20}};
  for (const AttentionCase::Shape& shape : shapes) {
    add(shape);
  }
  for (int i = 0; i < 3; ++i) {
    const std::size_t kv = draw.count(1, 2);
    add({kv * draw.count(1, 4), kv, draw.count(1, 80), draw.count(0, 60), draw.count(1, 40)});
  }
  // Without a direction: everything, another sequence's keys first, and a window around each query.
  using enum ops::AttentionMask;
  add({4, 2, 17, 70, 9, full});
  add({2, 1, 64, 0, 40, full});
  for (const std::size_t window : {0u, 1u, 7u, 200u}) add({4, 2, 20, 0, 45, sliding, window});
  return cases;
}

}  // namespace assay::lab
