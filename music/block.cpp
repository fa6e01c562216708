#include "music/block.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace assay::music {
namespace {

/// Rows whose gates and ups are held at once: the widest activation of all, 50 MB at the released size if a
/// thousand rows were. A multiple of the products' own blocks of rows, so weights are read no more often.
constexpr std::size_t kMlpRows = 768;

/// Queries that attend to everything at once: over the 7,500 rows of ten minutes a quarter of a second's work
/// on two cores. No row's bits depend on it.
constexpr std::size_t kAttentionRows = 1024;

std::size_t query_width(const BlockConfig& config) {
  return config.heads * config.head_dim;
}

std::size_t key_width(const BlockConfig& config) {
  return config.kv_heads * config.head_dim;
}

std::size_t projection_width(const BlockConfig& config) {
  return query_width(config) + 2 * key_width(config);
}

}  // namespace

SelfAttentionWeights load_self_attention(const WeightLoader& loader, const BlockConfig& config,
                                         const std::string& prefix) {
  return {.qkv = loader.product({{prefix + "to_q.weight", query_width(config)},
                                 {prefix + "to_k.weight", key_width(config)},
                                 {prefix + "to_v.weight", key_width(config)}},
                                config.hidden_size),
          .out = loader.product({{prefix + "to_out.0.weight", config.hidden_size}}, query_width(config)),
          .q_norm = loader.vector(prefix + "norm_q.weight", config.head_dim),
          .k_norm = loader.vector(prefix + "norm_k.weight", config.head_dim)};
}

CrossAttentionWeights load_cross_attention(const WeightLoader& loader, const BlockConfig& config,
                                           const std::string& prefix) {
  return {.q = loader.product({{prefix + "to_q.weight", query_width(config)}}, config.hidden_size),
          .kv = loader.product(
              {{prefix + "to_k.weight", key_width(config)}, {prefix + "to_v.weight", key_width(config)}},
              config.hidden_size),
          .out = loader.product({{prefix + "to_out.0.weight", config.hidden_size}}, query_width(config)),
          .q_norm = loader.vector(prefix + "norm_q.weight", config.head_dim),
          .k_norm = loader.vector(prefix + "norm_k.weight", config.head_dim)};
}

MlpWeights load_mlp(const WeightLoader& loader, const BlockConfig& config, const std::string& prefix) {
  return {
      .gate_up = loader.product({{prefix + "gate_proj.weight", config.intermediate_size},
                                 {prefix + "up_proj.weight", config.intermediate_size}},
                                config.hidden_size),
      .down = loader.product({{prefix + "down_proj.weight", config.hidden_size}}, config.intermediate_size)};
}

BlockRunner::BlockRunner(const BlockConfig& config, const ops::Selection& forms, const ops::Context& context,
                         std::span<const std::size_t> lengths, StopPoint stop)
    : config_(config),
      forms_(forms),
      context_(context),
      lengths_(lengths),
      stop_(std::move(stop)),
      rows_(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0})) {
  device::Arena& arena = context.arena;
  projection_ = arena.allocate<float>(rows_ * projection_width(config));
  mixed_ = arena.allocate<float>(rows_ * query_width(config));
  inner_ = arena.allocate<float>(std::min(rows_, kMlpRows) * 2 * config.intermediate_size);
  cos_ = arena.allocate<float>(rows_ * config.head_dim / 2);
  sin_ = arena.allocate<float>(rows_ * config.head_dim / 2);
  std::vector<std::int32_t> positions;
  positions.reserve(rows_);
  for (const std::size_t length : lengths) {
    for (std::size_t i = 0; i < length; ++i) positions.push_back(static_cast<std::int32_t>(i));
  }
  ops::rope_table(positions, config.head_dim, config.rope_theta, cos_, sin_);
}

std::size_t BlockRunner::arena_bytes(const BlockConfig& config, std::size_t rows) {
  const std::size_t floats = rows * (projection_width(config) + query_width(config) + config.head_dim) +
                             std::min(rows, kMlpRows) * 2 * config.intermediate_size;
  return floats * sizeof(float) + 5 * device::Arena::kAlignment;
}

void BlockRunner::norm(const float* x, const std::vector<float>& w, float* y) const {
  forms_.rms_norm->run(context_, {.rows = rows_,
                                  .dim = config_.hidden_size,
                                  .x = {x, config_.hidden_size},
                                  .w = w.data(),
                                  .eps = config_.rms_norm_eps,
                                  .y = {y, config_.hidden_size}});
}

void BlockRunner::norm_heads(float* x, std::size_t heads, std::size_t stride,
                             const std::vector<float>& w) const {
  forms_.rms_norm->run(context_, {.rows = rows_,
                                  .groups = heads,
                                  .dim = config_.head_dim,
                                  .x = {x, stride},
                                  .w = w.data(),
                                  .eps = config_.rms_norm_eps,
                                  .y = {x, stride}});
}

void BlockRunner::rotate(float* x, std::size_t heads, std::size_t stride) const {
  forms_.rope->run(context_, {.rows = rows_,
                              .heads = heads,
                              .rotary_dim = config_.head_dim,
                              .x = {x, stride},
                              .head_stride = config_.head_dim,
                              .cos = cos_.data(),
                              .sin = sin_.data()});
}

void BlockRunner::attend(ops::AttentionMask mask, std::size_t q_stride,
                         std::span<const ops::AttentionSegment> segments) const {
  const device::Arena::Scope scope(context_.arena);
  forms_.attention->run(context_, {.heads = config_.heads,
                                   .kv_heads = config_.kv_heads,
                                   .head_dim = config_.head_dim,
                                   .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim)),
                                   .mask = mask,
                                   .window = config_.sliding_window,
                                   .q = {projection_.data(), q_stride},
                                   .q_head_stride = config_.head_dim,
                                   .out = {mixed_.data(), query_width(config_)},
                                   .segments = segments});
}

void BlockRunner::attend_fully(std::size_t q_stride, std::span<const ops::AttentionSegment> segments) const {
  std::vector<ops::AttentionSegment> parts;
  std::size_t rows = 0;
  const auto run = [&] {
    stop_.check();
    attend(ops::AttentionMask::full, q_stride, parts);
    parts.clear();
    rows = 0;
  };
  for (const ops::AttentionSegment& segment : segments) {
    for (std::size_t done = 0; done < segment.length;) {
      if (rows == kAttentionRows) run();
      const std::size_t count = std::min(kAttentionRows - rows, segment.length - done);
      parts.push_back({.first = segment.first + done, .length = count, .runs = segment.runs});
      rows += count;
      done += count;
    }
  }
  run();
}

void BlockRunner::project_out(const ops::MatmulWeight& weights, const BlockOutput& y) const {
  ops::matmul(context_, {.x = {mixed_.data(), query_width(config_)},
                         .m = rows_,
                         .w = &weights,
                         .y = {y.data, config_.hidden_size},
                         .accumulate = y.accumulate});
}

void BlockRunner::self_attention(const SelfAttentionWeights& weights, bool sliding, const float* x,
                                 const BlockOutput& y) const {
  stop_.check();
  const std::size_t stride = projection_width(config_);
  float* q = projection_.data();
  float* k = q + query_width(config_);
  float* v = k + key_width(config_);
  ops::matmul(context_, {.x = {x, config_.hidden_size}, .m = rows_, .w = &weights.qkv, .y = {q, stride}});
  norm_heads(q, config_.heads, stride, weights.q_norm);
  norm_heads(k, config_.kv_heads, stride, weights.k_norm);
  rotate(q, config_.heads, stride);
  rotate(k, config_.kv_heads, stride);

  std::vector<ops::KeyRun> runs;
  runs.reserve(lengths_.size());
  std::vector<ops::AttentionSegment> segments;
  std::size_t first = 0;
  for (const std::size_t length : lengths_) {
    const std::size_t offset = first * stride;
    runs.push_back({.k = {k + offset, stride}, .v = {v + offset, stride}, .length = length});
    segments.push_back({.first = first, .length = length, .runs = std::span(runs).last(1)});
    first += length;
  }
  if (sliding) {
    attend(ops::AttentionMask::sliding, stride, segments);
  } else {
    attend_fully(stride, segments);
  }
  project_out(weights.out, y);
}

void BlockRunner::cross_attention(const CrossAttentionWeights& weights, std::span<const CrossKeys> keys,
                                  const float* x, const BlockOutput& y) const {
  stop_.check();
  const std::size_t width = query_width(config_);
  const std::size_t key_stride = 2 * key_width(config_);
  float* q = projection_.data();
  ops::matmul(context_, {.x = {x, config_.hidden_size}, .m = rows_, .w = &weights.q, .y = {q, width}});
  norm_heads(q, config_.heads, width, weights.q_norm);

  std::vector<ops::KeyRun> runs;
  runs.reserve(lengths_.size());
  std::vector<ops::AttentionSegment> segments;
  std::size_t first = 0;
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    runs.push_back({.k = {keys[i].rows, key_stride},
                    .v = {keys[i].rows + key_width(config_), key_stride},
                    .length = keys[i].length});
    segments.push_back({.first = first, .length = lengths_[i], .runs = std::span(runs).last(1)});
    first += lengths_[i];
  }
  attend_fully(width, segments);
  project_out(weights.out, y);
}

void BlockRunner::mlp(const MlpWeights& weights, const float* x, const BlockOutput& y) const {
  const std::size_t inner = config_.intermediate_size;
  const std::size_t stride = 2 * inner;
  float* gate = inner_.data();
  for (std::size_t first = 0; first < rows_; first += kMlpRows) {
    stop_.check();
    const std::size_t count = std::min(kMlpRows, rows_ - first);
    const std::size_t offset = first * config_.hidden_size;
    ops::matmul(
        context_,
        {.x = {x + offset, config_.hidden_size}, .m = count, .w = &weights.gate_up, .y = {gate, stride}});
    forms_.swiglu->run(context_, {.rows = count,
                                  .dim = inner,
                                  .gate = {gate, stride},
                                  .up = {gate + inner, stride},
                                  .y = {gate, stride}});
    ops::matmul(context_, {.x = {gate, stride},
                           .m = count,
                           .w = &weights.down,
                           .y = {y.data + offset, config_.hidden_size},
                           .accumulate = y.accumulate});
  }
}

void project_cross_keys(const ops::Context& context, const ops::Selection& forms, const BlockConfig& config,
                        const CrossAttentionWeights& weights, const float* x, std::size_t rows, float* out) {
  const std::size_t stride = 2 * key_width(config);
  ops::matmul(context, {.x = {x, config.hidden_size}, .m = rows, .w = &weights.kv, .y = {out, stride}});
  forms.rms_norm->run(context, {.rows = rows,
                                .groups = config.kv_heads,
                                .dim = config.head_dim,
                                .x = {out, stride},
                                .w = weights.k_norm.data(),
                                .eps = config.rms_norm_eps,
                                .y = {out, stride}});
}

}  // namespace assay::music
