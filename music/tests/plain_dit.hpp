#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "music/config.hpp"
#include "music/tests/memory_tensors.hpp"

/// The DiT once more, in double and as plainly as its source reads (huggingface/diffusers,
/// models/transformers/ace_step_transformer.py): what the fast one is compared with on sizes that no
/// checkpoint has.
namespace assay::music::plain {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

class PlainDit {
 public:
  PlainDit(const DitConfig& config, const MemoryTensors& tensors) : config_(config), tensors_(tensors) {}

  /// Frames of [context | noisy], condition rows, times: the velocity's frames.
  Rows velocity(Rows frames, const Rows& condition, double t, double r) const {
    const std::size_t count = frames.size();
    while (frames.size() % config_.patch != 0) frames.emplace_back(config_.in_channels, 0.0);
    Rows hidden = patch_in(frames);
    const Rows keys = linear("condition_embedder", condition);
    const auto [embedding, modulation] = time(t, r);
    for (std::size_t i = 0; i < config_.stack.sliding.size(); ++i) {
      layer("layers." + std::to_string(i) + ".", config_.stack.sliding[i], modulation, keys, hidden);
    }
    Rows out = patch_out(modulated(hidden, "norm_out.weight", sum(table("scale_shift_table", 1), embedding),
                                   sum(table("scale_shift_table", 0), embedding)));
    out.resize(count);
    return out;
  }

 private:
  const BlockConfig& block() const { return config_.stack.block; }

  static Row sum(Row a, const Row& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }

  /// Row `index` of a [1, rows, hidden] table.
  Row table(const std::string& name, std::size_t index) const {
    const std::vector<float>& all = tensors_.values(name);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(index * block().hidden_size);
    return {begin, begin + static_cast<std::ptrdiff_t>(block().hidden_size)};
  }

  Rows linear(const std::string& name, const Rows& x) const {
    const std::vector<float>& w = tensors_.values(name + ".weight");
    const std::size_t k = x[0].size();
    Rows y;
    for (const Row& row : x) {
      Row out(w.size() / k);
      if (tensors_.find(name + ".bias") != nullptr) {
        std::copy_n(tensors_.values(name + ".bias").begin(), out.size(), out.begin());
      }
      for (std::size_t n = 0; n < out.size(); ++n) {
        for (std::size_t i = 0; i < k; ++i) out[n] += row[i] * w[n * k + i];
      }
      y.push_back(out);
    }
    return y;
  }

  Rows patch_in(const Rows& frames) const {
    const std::vector<float>& w = tensors_.values("proj_in_conv.weight");
    const std::vector<float>& bias = tensors_.values("proj_in_conv.bias");
    Rows tokens(frames.size() / config_.patch, Row(bias.begin(), bias.end()));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      for (std::size_t n = 0; n < bias.size(); ++n) {
        for (std::size_t c = 0; c < config_.in_channels; ++c) {
          for (std::size_t p = 0; p < config_.patch; ++p) {
            tokens[i][n] +=
                frames[i * config_.patch + p][c] * w[(n * config_.in_channels + c) * config_.patch + p];
          }
        }
      }
    }
    return tokens;
  }

  Rows patch_out(const Rows& tokens) const {
    const std::vector<float>& w = tensors_.values("proj_out_conv.weight");
    const std::vector<float>& bias = tensors_.values("proj_out_conv.bias");
    Rows frames(tokens.size() * config_.patch, Row(bias.begin(), bias.end()));
    for (std::size_t frame = 0; frame < frames.size(); ++frame) {
      const Row& token = tokens[frame / config_.patch];
      for (std::size_t c = 0; c < bias.size(); ++c) {
        for (std::size_t h = 0; h < token.size(); ++h) {
          frames[frame][c] += token[h] * w[(h * bias.size() + c) * config_.patch + frame % config_.patch];
        }
      }
    }
    return frames;
  }

  static double silu(double x) { return x / (1 + std::exp(-x)); }

  struct Time {
    Row embedding;
    Rows modulation;  ///< six rows
  };

  Time time(double t, double r) const {
    Time result{Row(block().hidden_size), Rows(6, Row(block().hidden_size))};
    for (const auto& [prefix, at] : {std::pair("time_embed.", t), std::pair("time_embed_r.", t - r)}) {
      Row wave(256);
      for (std::size_t i = 0; i < 128; ++i) {
        const double angle = 1000 * at * std::pow(10000.0, -static_cast<double>(i) / 128);
        wave[i] = std::cos(angle);
        wave[128 + i] = std::sin(angle);
      }
      Rows x = linear(prefix + std::string("linear_1"), {wave});
      std::ranges::transform(x[0], x[0].begin(), silu);
      x = linear(prefix + std::string("linear_2"), x);
      result.embedding = sum(result.embedding, x[0]);
      std::ranges::transform(x[0], x[0].begin(), silu);
      const Row rows = linear(prefix + std::string("time_proj"), x)[0];
      for (std::size_t i = 0; i < rows.size(); ++i) {
        result.modulation[i / block().hidden_size][i % block().hidden_size] += rows[i];
      }
    }
    return result;
  }

  Row normed(const Row& x, std::size_t first, std::size_t count, const std::string& weight) const {
    const std::vector<float>& w = tensors_.values(weight);
    double squares = 0;
    for (std::size_t i = first; i < first + count; ++i) squares += x[i] * x[i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(count) + block().rms_norm_eps);
    Row y(count);
    for (std::size_t i = 0; i < count; ++i) y[i] = x[first + i] * scale * w[i];
    return y;
  }

  Rows modulated(const Rows& x, const std::string& weight, const Row& scale, const Row& shift) const {
    Rows y;
    for (const Row& row : x) {
      y.push_back(normed(row, 0, row.size(), weight));
      for (std::size_t i = 0; i < row.size(); ++i) y.back()[i] = y.back()[i] * (1 + scale[i]) + shift[i];
    }
    return y;
  }

  /// Heads of every row normed, and turned by the row's index where `rotate`.
  std::vector<Rows> heads(const Rows& x, std::size_t count, const std::string& norm, bool rotate) const {
    const std::size_t dim = block().head_dim;
    std::vector<Rows> result(count);
    for (std::size_t position = 0; position < x.size(); ++position) {
      for (std::size_t head = 0; head < count; ++head) {
        Row row = normed(x[position], head * dim, dim, norm);
        if (rotate) turn(row, static_cast<double>(position));
        result[head].push_back(row);
      }
    }
    return result;
  }

  void turn(Row& row, double position) const {
    const std::size_t half = row.size() / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const double frequency = std::pow(static_cast<double>(block().rope_theta),
                                        -2.0 * static_cast<double>(i) / static_cast<double>(row.size()));
      const double c = std::cos(position * frequency);
      const double s = std::sin(position * frequency);
      const double low = row[i];
      row[i] = low * c - row[half + i] * s;
      row[half + i] = row[half + i] * c + low * s;
    }
  }

  /// `self`: queries are the keys' rows too, with positions; otherwise other rows without any.
  Rows attention(const std::string& prefix, const Rows& x, const Rows& source, bool self,
                 bool sliding) const {
    const std::size_t dim = block().head_dim;
    const auto q = heads(linear(prefix + "to_q", x), block().heads, prefix + "norm_q.weight", self);
    const auto k = heads(linear(prefix + "to_k", source), block().kv_heads, prefix + "norm_k.weight", self);
    const Rows v = linear(prefix + "to_v", source);
    Rows mixed(x.size(), Row(block().heads * dim));
    for (std::size_t head = 0; head < block().heads; ++head) {
      const std::size_t kv = head / (block().heads / block().kv_heads);
      for (std::size_t i = 0; i < x.size(); ++i) {
        Row weights;
        for (std::size_t j = 0; j < source.size(); ++j) {
          const std::size_t distance = i > j ? i - j : j - i;
          double score = 0;
          for (std::size_t d = 0; d < dim; ++d) score += q[head][i][d] * k[kv][j][d];
          const bool seen = !sliding || distance <= block().sliding_window;
          weights.push_back(seen ? std::exp(score / std::sqrt(static_cast<double>(dim))) : 0.0);
        }
        double total = 0;
        for (const double weight : weights) total += weight;
        for (std::size_t j = 0; j < source.size(); ++j) {
          for (std::size_t d = 0; d < dim; ++d)
            mixed[i][head * dim + d] += weights[j] / total * v[j][kv * dim + d];
        }
      }
    }
    return linear(prefix + "to_out.0", mixed);
  }

  Rows mlp(const std::string& prefix, const Rows& x) const {
    Rows gate = linear(prefix + "gate_proj", x);
    const Rows up = linear(prefix + "up_proj", x);
    for (std::size_t r = 0; r < gate.size(); ++r) {
      for (std::size_t i = 0; i < gate[r].size(); ++i) gate[r][i] = silu(gate[r][i]) * up[r][i];
    }
    return linear(prefix + "down_proj", gate);
  }

  void layer(const std::string& prefix, bool sliding, const Rows& modulation, const Rows& condition,
             Rows& hidden) const {
    Rows rows;
    for (std::size_t i = 0; i < 6; ++i)
      rows.push_back(sum(table(prefix + "scale_shift_table", i), modulation[i]));
    const auto add = [&](const Rows& branch, const Row* gate) {
      for (std::size_t r = 0; r < hidden.size(); ++r) {
        for (std::size_t i = 0; i < hidden[r].size(); ++i)
          hidden[r][i] += branch[r][i] * (gate == nullptr ? 1.0 : (*gate)[i]);
      }
    };
    const Rows x = modulated(hidden, prefix + "self_attn_norm.weight", rows[1], rows[0]);
    add(attention(prefix + "self_attn.", x, x, true, sliding), &rows[2]);
    const Row none(block().hidden_size);
    const Rows crossing = modulated(hidden, prefix + "cross_attn_norm.weight", none, none);
    add(attention(prefix + "cross_attn.", crossing, condition, false, false), nullptr);
    add(mlp(prefix + "mlp.", modulated(hidden, prefix + "mlp_norm.weight", rows[4], rows[3])), &rows[5]);
  }

  const DitConfig& config_;
  const MemoryTensors& tensors_;
};

}  // namespace assay::music::plain
