#include "backbone/layer_runner.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace assay::backbone {

using formats::Family;
using formats::LayerType;
using formats::ModelConfig;

/// Tells the observer, where there is one, of an op call that lasts as long as this.
class LayerRunner::Timed {
 public:
  Timed(OpObserver* observer, const OpCall& call) : observer_(observer) {
    if (observer_ == nullptr) return;
    call_ = call;
    call_.begin = OpCall::Clock::now();
  }
  ~Timed() {
    if (observer_ == nullptr) return;
    call_.end = OpCall::Clock::now();
    observer_->on_call(call_);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  OpObserver* observer_;
  OpCall call_;
};

namespace {

std::size_t attention_projection_width(const ModelConfig& config) {
  const std::size_t gates = config.family == Family::qwen3_5 ? 2 : 1;
  return (gates * config.heads + 2 * config.kv_heads) * config.head_dim;
}

std::size_t linear_projection_width(const ModelConfig& config) {
  return config.conv_channels() + config.linear_value_size() + 2 * config.linear_value_heads;
}

bool has_linear_layers(const ModelConfig& config) {
  return std::find(config.layers.begin(), config.layers.end(), LayerType::linear_attention) !=
         config.layers.end();
}

double size(std::size_t value) {
  return static_cast<double>(value);
}

/// Bytes of fp32 activations.
double bytes(std::size_t floats) {
  return size(floats) * sizeof(float);
}

}  // namespace

LayerRunner::LayerRunner(const ModelConfig& config, const BackboneWeights& weights, const FormTable& forms,
                         const ops::Context& context, OpObserver* observer)
    : config_(config), weights_(weights), forms_(forms), context_(context), observer_(observer) {}

void LayerRunner::begin(const Call& call, std::span<const LiveSegment> segments,
                        std::span<const std::int32_t> parents) {
  call_ = &call;
  segments_ = segments;
  rows_ = call.tokens;
  const bool linear = has_linear_layers(config_);
  projection_width_ = std::max(2 * config_.intermediate_size, attention_projection_width(config_));
  std::size_t mixed_width = config_.heads * config_.head_dim;
  if (linear) {
    projection_width_ = std::max(projection_width_, linear_projection_width(config_));
    mixed_width = std::max(mixed_width, config_.linear_value_size());
  }
  device::Arena& arena = context_.arena;
  hidden_ = arena.allocate<float>(rows_ * config_.hidden_size);
  normed_ = arena.allocate<float>(rows_ * config_.hidden_size);
  projection_ = arena.allocate<float>(rows_ * projection_width_);
  mixed_ = arena.allocate<float>(rows_ * mixed_width);
  convolved_ = linear ? arena.allocate<float>(rows_ * config_.conv_channels()) : std::span<float>();
  cos_ = arena.allocate<float>(rows_ * config_.rotary_dim / 2);
  sin_ = arena.allocate<float>(rows_ * config_.rotary_dim / 2);
  plan_levels(call, parents);
  compute_rope(call, segments);
}

void LayerRunner::plan_levels(const Call& call, std::span<const std::int32_t> parents) {
  levels_.clear();
  std::vector<std::size_t> level_of(parents.size(), 0);  // one more than its level; 0: not in this call
  for (std::size_t i = 0; i < call.pieces.size(); ++i) {
    const std::size_t segment = call.pieces[i].segment;
    const std::size_t level = parents[segment] < 0 ? 0 : level_of[static_cast<std::size_t>(parents[segment])];
    level_of[segment] = level + 1;
    if (levels_.size() <= level) levels_.resize(level + 1);
    levels_[level].push_back(i);
  }
}

void LayerRunner::compute_rope(const Call& call, std::span<const LiveSegment> segments) {
  std::vector<std::int32_t> positions(rows_);
  for (const Piece& piece : call.pieces) {
    const SegmentState* parent = segments[piece.segment].parent;
    const std::size_t start = (parent == nullptr ? 0 : parent->position() + parent->capacity()) +
                              segments[piece.segment].base + piece.offset;
    for (std::size_t t = 0; t < piece.count; ++t)
      positions[piece.row + t] = static_cast<std::int32_t>(start + t);
  }
  ops::rope_table(positions, config_.rotary_dim, config_.rope_theta, cos_, sin_,
                  config_.bf16_rope_frequencies);
}

void LayerRunner::embed(std::span<const std::int32_t> tokens) {
  const std::size_t row_bytes = storage_bytes(weights_.embedding.type, config_.hidden_size);
  const Timed timed(observer_, {.op = "embed",
                                .form = forms_.own().embed->info.name,
                                .part = "embed",
                                .shape = {{{"tokens", tokens.size()}, {"dim", config_.hidden_size}}},
                                .weight_bytes = size(tokens.size() * row_bytes),
                                .data_bytes = bytes(tokens.size() * config_.hidden_size)});
  forms_.own().embed->run(context_, {.type = weights_.embedding.type,
                                     .table = weights_.embedding.bytes.data(),
                                     .vocabulary = config_.vocabulary_size,
                                     .dim = config_.hidden_size,
                                     .ids = tokens,
                                     .y = {hidden_.data(), config_.hidden_size}});
}

void LayerRunner::final_norm(std::size_t row, std::span<float> out) {
  OpCall call = norm_call(forms_.own(), "final_norm", 1, 1, config_.hidden_size, false);
  call.layer = -1;
  const Timed timed(observer_, call);
  forms_.own().rms_norm->run(context_,
                             {.rows = 1,
                              .dim = config_.hidden_size,
                              .x = {hidden_.data() + row * config_.hidden_size, config_.hidden_size},
                              .w = weights_.final_norm.data(),
                              .eps = config_.rms_norm_eps,
                              .y = {out.data(), config_.hidden_size}});
}

OpCall LayerRunner::norm_call(const ops::Selection& forms, std::string_view part, std::size_t rows,
                              std::size_t groups, std::size_t dim, bool gated) const {
  return {.op = "rms_norm",
          .form = forms.rms_norm->info.name,
          .part = part,
          .layer = static_cast<std::int32_t>(layer_),
          .shape = {{{"rows", rows}, {"groups", groups}, {"dim", dim}}},
          .weight_bytes = bytes(dim),
          .data_bytes = bytes((gated ? 3 : 2) * rows * groups * dim)};
}

void LayerRunner::norm(LayerPart part, std::string_view name, const float* x,
                       const std::vector<float>& weight, float* y) {
  const Timed timed(observer_, norm_call(forms(part), name, rows_, 1, config_.hidden_size, false));
  forms(part).rms_norm->run(context_, {.rows = rows_,
                                       .dim = config_.hidden_size,
                                       .x = {x, config_.hidden_size},
                                       .w = weight.data(),
                                       .eps = config_.rms_norm_eps,
                                       .y = {y, config_.hidden_size}});
}

void LayerRunner::product(std::string_view part, const ops::MatmulWeight& w, ops::Rows<const float> x,
                          ops::Rows<float> y, bool accumulate) {
  const Timed timed(observer_, {.op = "matmul",
                                .form = w.form->info.name,
                                .part = part,
                                .precision = w.form->info.precision,
                                .layer = static_cast<std::int32_t>(layer_),
                                .shape = {{{"m", rows_}, {"n", w.n}, {"k", w.k}}},
                                .operations = 2.0 * size(rows_) * size(w.n) * size(w.k),
                                .weight_bytes = size(w.data.bytes()),
                                .data_bytes = bytes(rows_ * (w.k + (accumulate ? 2 : 1) * w.n))});
  const device::Arena::Scope scope(context_.arena);
  ops::matmul(context_, {.x = x, .m = rows_, .w = &w, .y = y, .accumulate = accumulate});
}

void LayerRunner::layer(std::size_t index) {
  const LayerWeights& weights = weights_.layers[index];
  layer_ = index;
  norm(LayerPart::mixer_in, "input_norm", hidden_.data(), weights.input_norm, normed_.data());
  if (weights.type == LayerType::full_attention) {
    full_attention(index, weights.attention);
  } else {
    linear_attention(index, weights.linear);
  }
  norm(LayerPart::mlp_in, "post_attention_norm", hidden_.data(), weights.post_attention_norm, normed_.data());
  mlp(weights);
}

void LayerRunner::mlp(const LayerWeights& weights) {
  const std::size_t inner = config_.intermediate_size;
  const std::size_t stride = 2 * inner;
  product("gate_up", weights.gate_up, {normed_.data(), config_.hidden_size}, {projection_.data(), stride},
          false);
  {
    const Timed timed(observer_, {.op = "swiglu",
                                  .form = forms(LayerPart::mlp_in).swiglu->info.name,
                                  .part = "swiglu",
                                  .layer = static_cast<std::int32_t>(layer_),
                                  .shape = {{{"rows", rows_}, {"dim", inner}}},
                                  .data_bytes = bytes(3 * rows_ * inner)});
    forms(LayerPart::mlp_in)
        .swiglu->run(context_, {.rows = rows_,
                                .dim = inner,
                                .gate = {projection_.data(), stride},
                                .up = {projection_.data() + inner, stride},
                                .y = {projection_.data(), stride}});
  }
  product("down", weights.down, {projection_.data(), stride}, {hidden_.data(), config_.hidden_size}, true);
}

void LayerRunner::full_attention(std::size_t index, const AttentionWeights& weights) {
  const std::size_t width = config_.heads * config_.head_dim;
  product("qkv", weights.qkv, {normed_.data(), config_.hidden_size}, {projection_.data(), weights.qkv.n},
          false);
  rotate_and_store_keys(index, weights);
  attend(index);
  product("out", weights.out, {mixed_.data(), width}, {hidden_.data(), config_.hidden_size}, true);
}

void LayerRunner::rotate_and_store_keys(std::size_t index, const AttentionWeights& weights) {
  const std::size_t dim = config_.head_dim;
  const std::size_t query_stride = config_.family == Family::qwen3_5 ? 2 * dim : dim;
  const std::size_t stride = weights.qkv.n;
  float* q = projection_.data();
  float* k = q + config_.heads * query_stride;
  float* v = k + config_.kv_heads * dim;
  const auto prepare = [&](float* x, std::size_t heads, std::size_t head_stride,
                           const std::vector<float>& norm, std::string_view norm_part,
                           std::string_view rope_part) {
    {
      const Timed timed(observer_, norm_call(forms(LayerPart::mixer), norm_part, rows_, heads, dim, false));
      forms(LayerPart::mixer)
          .rms_norm->run(context_, {.rows = rows_,
                                    .groups = heads,
                                    .dim = dim,
                                    .x = {x, stride},
                                    .x_group_stride = head_stride,
                                    .w = norm.data(),
                                    .eps = config_.rms_norm_eps,
                                    .y = {x, stride},
                                    .y_group_stride = head_stride});
    }
    const Timed timed(observer_,
                      {.op = "rope",
                       .form = forms(LayerPart::mixer).rope->info.name,
                       .part = rope_part,
                       .layer = static_cast<std::int32_t>(layer_),
                       .shape = {{{"rows", rows_}, {"heads", heads}, {"rotary_dim", config_.rotary_dim}}},
                       .data_bytes = bytes(rows_ * config_.rotary_dim * (2 * heads + 1))});
    forms(LayerPart::mixer)
        .rope->run(context_, {.rows = rows_,
                              .heads = heads,
                              .rotary_dim = config_.rotary_dim,
                              .x = {x, stride},
                              .head_stride = head_stride,
                              .cos = cos_.data(),
                              .sin = sin_.data()});
  };
  prepare(q, config_.heads, query_stride, weights.q_norm, "q_norm", "q");
  prepare(k, config_.kv_heads, dim, weights.k_norm, "k_norm", "k");

  const std::size_t key_width = config_.kv_heads * dim;
  for (const Piece& piece : call_->pieces) {
    SegmentState* state = segments_[piece.segment].state.get();
    if (state == nullptr) continue;
    SegmentState::Layer& kept = state->layer(index);
    for (std::size_t t = 0; t < piece.count; ++t) {
      const std::size_t source = (piece.row + t) * stride;
      const std::size_t target = (segments_[piece.segment].base + piece.offset + t) * key_width;
      std::memcpy(kept.k.data() + target, k + source, key_width * sizeof(float));
      std::memcpy(kept.v.data() + target, v + source, key_width * sizeof(float));
    }
  }
}

namespace {

/// Keys of the parent and its parents, oldest first. A parent is whole by the time that a child runs.
void append_ancestor_runs(const SegmentState* state, std::size_t layer, std::size_t width,
                          std::vector<ops::KeyRun>& runs) {
  if (state == nullptr) return;
  append_ancestor_runs(state->parent().get(), layer, width, runs);
  const SegmentState::Layer& kept = state->layer(layer);
  runs.push_back({{kept.k.data(), width}, {kept.v.data(), width}, state->capacity()});
}

}  // namespace

OpCall LayerRunner::attention_call(std::span<const ops::AttentionSegment> queries) const {
  const std::size_t width = config_.heads * config_.head_dim;
  const std::size_t gates = config_.family == Family::qwen3_5 ? 1 : 0;
  OpCall call{.op = "attention",
              .form = forms(LayerPart::mixer).attention->info.name,
              .part = "attention",
              .layer = static_cast<std::int32_t>(layer_)};
  std::size_t keys = 0;
  for (const ops::AttentionSegment& segment : queries) {
    std::size_t seen = 0;
    for (const ops::KeyRun& run : segment.runs) seen += run.length;
    keys += seen;
    // A query sees half of its own run on average, and one key more than that.
    const double pairs = size(segment.length) * (size(seen) - (size(segment.length) - 1) / 2);
    call.operations += 4 * pairs * size(width);
  }
  call.shape = {
      {{"tokens", rows_}, {"keys", keys}, {"heads", config_.heads}, {"head_dim", config_.head_dim}}};
  call.data_bytes =
      bytes(rows_ * width * (2 + gates)) + bytes(2 * keys * config_.kv_heads * config_.head_dim);
  return call;
}

void LayerRunner::attend(std::size_t index) {
  const std::size_t dim = config_.head_dim;
  const bool gated = config_.family == Family::qwen3_5;
  const std::size_t query_stride = gated ? 2 * dim : dim;
  const std::size_t stride = attention_projection_width(config_);
  const std::size_t key_width = config_.kv_heads * dim;
  const float* q = projection_.data();
  const float* k = q + config_.heads * query_stride;

  std::vector<std::vector<ops::KeyRun>> runs(call_->pieces.size());
  std::vector<ops::AttentionSegment> queries(call_->pieces.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Piece& piece = call_->pieces[i];
    const LiveSegment& segment = segments_[piece.segment];
    append_ancestor_runs(segment.parent, index, key_width, runs[i]);
    if (const std::size_t earlier = segment.base + piece.offset; earlier > 0) {
      const SegmentState::Layer& kept = segment.state->layer(index);
      runs[i].push_back({{kept.k.data(), key_width}, {kept.v.data(), key_width}, earlier});
    }
    const float* own = k + piece.row * stride;
    runs[i].push_back({{own, stride}, {own + key_width, stride}, piece.count});
    queries[i] = {piece.row, piece.count, runs[i]};
  }
  const Timed timed(observer_, attention_call(queries));
  const device::Arena::Scope scope(context_.arena);
  forms(LayerPart::mixer)
      .attention->run(context_, {.heads = config_.heads,
                                 .kv_heads = config_.kv_heads,
                                 .head_dim = dim,
                                 .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
                                 .q = {q, stride},
                                 .gate = {gated ? q + dim : nullptr, stride},
                                 .q_head_stride = query_stride,
                                 .gate_head_stride = query_stride,
                                 .out = {mixed_.data(), config_.heads * dim},
                                 .segments = queries});
}

void LayerRunner::linear_attention(std::size_t index, const LinearAttentionWeights& weights) {
  const std::size_t width = config_.linear_value_size();
  product("in", weights.in, {normed_.data(), config_.hidden_size}, {projection_.data(), weights.in.n}, false);
  convolve(index, weights);
  recur(index, weights);
  {
    const Timed timed(observer_, norm_call(forms(LayerPart::mixer), "gated_norm", rows_,
                                           config_.linear_value_heads, config_.linear_value_dim, true));
    const float* z = projection_.data() + config_.conv_channels();
    forms(LayerPart::mixer)
        .rms_norm->run(context_, {.rows = rows_,
                                  .groups = config_.linear_value_heads,
                                  .dim = config_.linear_value_dim,
                                  .x = {mixed_.data(), width},
                                  .w = weights.norm.data(),
                                  .eps = config_.rms_norm_eps,
                                  .gate = {z, weights.in.n},
                                  .y = {mixed_.data(), width}});
  }
  product("out", weights.out, {mixed_.data(), width}, {hidden_.data(), config_.hidden_size}, true);
}

std::vector<ops::SequenceSegment> LayerRunner::sequences(std::size_t index,
                                                         const std::vector<std::size_t>& pieces,
                                                         device::Buffer<float> SegmentState::Layer::*member) {
  std::vector<ops::SequenceSegment> result;
  result.reserve(pieces.size());
  for (const std::size_t i : pieces) {
    const Piece& piece = call_->pieces[i];
    const LiveSegment& segment = segments_[piece.segment];
    ops::SequenceSegment sequence{.first = piece.row, .length = piece.count};
    if (segment.state != nullptr) sequence.final = (segment.state->layer(index).*member).data();
    if (segment.base + piece.offset > 0) {
      // The state goes on in place; an op reads and writes apart.
      const device::Buffer<float>& kept = segment.state->layer(index).*member;
      const std::span<float> copy = context_.arena.allocate<float>(kept.size());
      std::memcpy(copy.data(), kept.data(), kept.bytes());
      sequence.initial = copy.data();
    } else if (segment.parent != nullptr) {
      sequence.initial = (segment.parent->layer(index).*member).data();
    }
    result.push_back(sequence);
  }
  return result;
}

double LayerRunner::state_traffic(std::size_t floats) const {
  std::size_t moved = 0;
  for (const Piece& piece : call_->pieces) {
    const LiveSegment& segment = segments_[piece.segment];
    if (segment.state != nullptr) ++moved;
    if (segment.base + piece.offset > 0 || segment.parent != nullptr) ++moved;
  }
  return bytes(moved * floats);
}

void LayerRunner::convolve(std::size_t index, const LinearAttentionWeights& weights) {
  const std::size_t channels = config_.conv_channels();
  const std::size_t width = config_.linear_conv_width;
  const Timed timed(observer_,
                    {.op = "causal_conv1d",
                     .form = forms(LayerPart::mixer).causal_conv1d->info.name,
                     .part = "conv",
                     .layer = static_cast<std::int32_t>(layer_),
                     .shape = {{{"tokens", rows_}, {"channels", channels}, {"width", width}}},
                     .operations = 2.0 * size(rows_) * size(channels * width),
                     .weight_bytes = bytes(channels * width),
                     .data_bytes = bytes(2 * rows_ * channels) + state_traffic((width - 1) * channels)});
  for (const std::vector<std::size_t>& level : levels_) {
    const device::Arena::Scope scope(context_.arena);
    const auto segments = sequences(index, level, &SegmentState::Layer::conv);
    forms(LayerPart::mixer)
        .causal_conv1d->run(context_, {.channels = channels,
                                       .width = width,
                                       .w = weights.conv.data(),
                                       .x = {projection_.data(), weights.in.n},
                                       .y = {convolved_.data(), channels},
                                       .segments = segments});
  }
}

void LayerRunner::recur(std::size_t index, const LinearAttentionWeights& weights) {
  const std::size_t channels = config_.conv_channels();
  const std::size_t key_size = config_.linear_key_size();
  const float* b = projection_.data() + channels + config_.linear_value_size();
  const std::size_t heads = config_.linear_value_heads;
  const std::size_t state = heads * config_.linear_key_dim * config_.linear_value_dim;
  // Decay, Sᵀk, the rank-one update and Sᵀq: seven operations an element of the state and token.
  const Timed timed(observer_,
                    {.op = "gated_delta_rule",
                     .form = forms(LayerPart::mixer).gated_delta_rule->info.name,
                     .part = "recurrence",
                     .layer = static_cast<std::int32_t>(layer_),
                     .shape = {{{"tokens", rows_},
                                {"heads", heads},
                                {"key_dim", config_.linear_key_dim},
                                {"value_dim", config_.linear_value_dim}}},
                     .operations = 7.0 * size(rows_) * size(state),
                     .data_bytes = bytes(rows_ * (channels + config_.linear_value_size() + 2 * heads)) +
                                   state_traffic(state)});
  for (const std::vector<std::size_t>& level : levels_) {
    const device::Arena::Scope scope(context_.arena);
    const auto segments = sequences(index, level, &SegmentState::Layer::recurrent);
    forms(LayerPart::mixer)
        .gated_delta_rule->run(context_, {.key_heads = config_.linear_key_heads,
                                          .value_heads = config_.linear_value_heads,
                                          .key_dim = config_.linear_key_dim,
                                          .value_dim = config_.linear_value_dim,
                                          .q = {convolved_.data(), channels},
                                          .k = {convolved_.data() + key_size, channels},
                                          .v = {convolved_.data() + 2 * key_size, channels},
                                          .a = {b + config_.linear_value_heads, weights.in.n},
                                          .b = {b, weights.in.n},
                                          .decay = weights.decay.data(),
                                          .dt_bias = weights.dt_bias.data(),
                                          .o = {mixed_.data(), config_.linear_value_size()},
                                          .segments = segments});
  }
}

}  // namespace assay::backbone
