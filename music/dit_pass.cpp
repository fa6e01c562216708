#include "music/dit_pass.hpp"

#include <algorithm>

#include "ops/parallel.hpp"

namespace assay::music {
namespace {

std::vector<std::size_t> count_tokens(const DitConfig& config, std::span<const std::size_t> frames) {
  std::vector<std::size_t> tokens;
  for (const std::size_t count : frames) tokens.push_back((count + config.patch - 1) / config.patch);
  return tokens;
}

/// Values of a token's row before the first block and after the last.
std::size_t patch_width(const DitConfig& config) {
  return config.patch * std::max(config.in_channels, config.latent_width);
}

}  // namespace

std::size_t cross_key_width(const DitConfig& config) {
  return 2 * config.stack.block.kv_heads * config.stack.block.head_dim;
}

DitPass::DitPass(const DitConfig& config, const DitWeights& weights, const ops::Selection& forms,
                 const ops::Context& context, std::span<const DitSong> songs,
                 std::span<const std::size_t> frames, const StopPoint& stop)
    : config_(config),
      weights_(weights),
      context_(context),
      songs_(songs),
      frames_(frames),
      tokens_(count_tokens(config, frames)),
      block_(config.stack.block, forms, context, tokens_, stop) {
  const std::size_t hidden = block_.rows() * config.stack.block.hidden_size;
  patches_ = context.arena.allocate<float>(block_.rows() * patch_width(config));
  hidden_ = context.arena.allocate<float>(hidden);
  normed_ = context.arena.allocate<float>(hidden);
  branch_ = context.arena.allocate<float>(hidden);
}

std::size_t DitPass::arena_bytes(const DitConfig& config, std::span<const std::size_t> frames) {
  std::size_t rows = 0;
  for (const std::size_t tokens : count_tokens(config, frames)) rows += tokens;
  return BlockRunner::arena_bytes(config.stack.block, rows) + 4 * device::Arena::kAlignment +
         rows * (patch_width(config) + 3 * config.stack.block.hidden_size) * sizeof(float);
}

void DitPass::patch_in() {
  const std::size_t context_width = config_.in_channels - config_.latent_width;
  float* row = patches_.data();
  for (std::size_t i = 0; i < songs_.size(); ++i) {
    for (std::size_t frame = 0; frame < frames_[i]; ++frame) {
      row = std::copy_n(songs_[i].context.data() + frame * context_width, context_width, row);
      row = std::copy_n(songs_[i].noisy.data() + frame * config_.latent_width, config_.latent_width, row);
    }
    const std::size_t missing = tokens_[i] * config_.patch - frames_[i];
    row = std::fill_n(row, missing * config_.in_channels, 0.0f);
  }
  run_linear(context_, weights_.patch_in, {patches_.data(), config_.patch * config_.in_channels},
             block_.rows(), {hidden_.data(), config_.stack.block.hidden_size});
}

void DitPass::layer(std::size_t index, std::span<const float> modulation) {
  const DitLayer& layer = weights_.layers[index];
  const std::size_t hidden = config_.stack.block.hidden_size;
  std::vector<float> rows(layer.modulation);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] += modulation[i];
  const auto row = [&](std::size_t i) { return std::span<const float>(rows).subspan(i * hidden, hidden); };

  modulated_norm(layer.self_norm, row(1), row(0));
  block_.self_attention(layer.self_attention, config_.stack.sliding[index], normed_.data(),
                        {.data = branch_.data()});
  add_gated(row(2));

  std::vector<CrossKeys> keys;
  for (const DitSong& song : songs_) {
    const std::size_t layer_size = song.condition->rows * cross_key_width(config_);
    keys.push_back({song.condition->keys.data() + index * layer_size, song.condition->rows});
  }
  block_.norm(hidden_.data(), layer.cross_norm, normed_.data());
  block_.cross_attention(layer.cross_attention, keys, normed_.data(),
                         {.data = hidden_.data(), .accumulate = true});

  modulated_norm(layer.mlp_norm, row(4), row(3));
  block_.mlp(layer.mlp, normed_.data(), {.data = branch_.data()});
  add_gated(row(5));
}

void DitPass::patch_out(std::span<const float> embedding) {
  const std::size_t hidden = config_.stack.block.hidden_size;
  std::vector<float> rows(weights_.out_modulation);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] += embedding[i % hidden];
  modulated_norm(weights_.out_norm, std::span<const float>(rows).last(hidden),
                 std::span<const float>(rows).first(hidden));
  const std::size_t width = config_.patch * config_.latent_width;
  run_linear(context_, weights_.patch_out, {normed_.data(), hidden}, block_.rows(), {patches_.data(), width});
  const float* row = patches_.data();
  for (std::size_t i = 0; i < songs_.size(); ++i) {
    // Padding of the last patch is cut off.
    std::copy_n(row, songs_[i].velocity.size(), songs_[i].velocity.data());
    row += tokens_[i] * width;
  }
}

void DitPass::modulated_norm(const std::vector<float>& w, std::span<const float> scale,
                             std::span<const float> shift) {
  std::vector<float> scaled(w);
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] *= 1.0f + scale[i];
  block_.norm(hidden_.data(), scaled, normed_.data());
  const std::size_t width = shift.size();
  ops::parallel_ranges(context_.threads, block_.rows(), width, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      float* __restrict y = normed_.data() + r * width;
      for (std::size_t i = 0; i < width; ++i) y[i] += shift[i];
    }
  });
}

void DitPass::add_gated(std::span<const float> gate) {
  const std::size_t width = gate.size();
  ops::parallel_ranges(context_.threads, block_.rows(), width, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      const float* __restrict x = branch_.data() + r * width;
      float* __restrict y = hidden_.data() + r * width;
      for (std::size_t i = 0; i < width; ++i) y[i] += x[i] * gate[i];
    }
  });
}

}  // namespace assay::music
