#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "music/dit.hpp"
#include "music/tests/ace_fixture.hpp"
#include "music/tests/memory_tensors.hpp"
#include "music/tests/plain_dit.hpp"

// Sizes that differ from each other wherever they may: what a checkpoint with round sizes cannot tell apart.
namespace assay::music {
namespace {

DitConfig odd_config(std::size_t patch) {
  return {.stack = {.block = {.hidden_size = 20,
                              .intermediate_size = 36,
                              .heads = 6,
                              .kv_heads = 2,
                              .head_dim = 8,
                              .rope_theta = 500.0f,
                              .rms_norm_eps = 1e-6f,
                              .sliding_window = 3},
                    .sliding = {true, false, true}},
          .in_channels = 11,
          .latent_width = 3,
          .patch = patch,
          .condition_size = 28,
          .turbo = true};
}

void add_linear(MemoryTensors& tensors, const std::string& name, std::size_t n, std::size_t k, bool bias) {
  tensors.add_random(name + ".weight", {n, k});
  if (bias) tensors.add_random(name + ".bias", {n});
}

void add_attention(MemoryTensors& tensors, const BlockConfig& block, const std::string& prefix) {
  add_linear(tensors, prefix + "to_q", block.heads * block.head_dim, block.hidden_size, false);
  add_linear(tensors, prefix + "to_k", block.kv_heads * block.head_dim, block.hidden_size, false);
  add_linear(tensors, prefix + "to_v", block.kv_heads * block.head_dim, block.hidden_size, false);
  add_linear(tensors, prefix + "to_out.0", block.hidden_size, block.heads * block.head_dim, false);
  tensors.add_random(prefix + "norm_q.weight", {block.head_dim}, 1);
  tensors.add_random(prefix + "norm_k.weight", {block.head_dim}, 1);
}

MemoryTensors random_dit(const DitConfig& config) {
  MemoryTensors tensors;
  const BlockConfig& block = config.stack.block;
  const std::size_t hidden = block.hidden_size;
  tensors.add_random("proj_in_conv.weight", {hidden, config.in_channels, config.patch});
  tensors.add_random("proj_in_conv.bias", {hidden});
  tensors.add_random("proj_out_conv.weight", {hidden, config.latent_width, config.patch});
  tensors.add_random("proj_out_conv.bias", {config.latent_width});
  for (const std::string prefix : {"time_embed.", "time_embed_r."}) {
    add_linear(tensors, prefix + "linear_1", hidden, 256, true);
    add_linear(tensors, prefix + "linear_2", hidden, hidden, true);
    add_linear(tensors, prefix + "time_proj", 6 * hidden, hidden, true);
  }
  add_linear(tensors, "condition_embedder", hidden, config.condition_size, true);
  tensors.add_random("norm_out.weight", {hidden}, 1);
  tensors.add_random("scale_shift_table", {1, 2, hidden});
  for (std::size_t i = 0; i < config.stack.sliding.size(); ++i) {
    const std::string prefix = "layers." + std::to_string(i) + ".";
    add_attention(tensors, block, prefix + "self_attn.");
    add_attention(tensors, block, prefix + "cross_attn.");
    for (const std::string norm : {"self_attn_norm", "cross_attn_norm", "mlp_norm"}) {
      tensors.add_random(prefix + norm + ".weight", {hidden}, 1);
    }
    add_linear(tensors, prefix + "mlp.gate_proj", block.intermediate_size, hidden, false);
    add_linear(tensors, prefix + "mlp.up_proj", block.intermediate_size, hidden, false);
    add_linear(tensors, prefix + "mlp.down_proj", hidden, block.intermediate_size, false);
    tensors.add_random(prefix + "scale_shift_table", {1, 6, hidden});
  }
  return tensors;
}

std::vector<float> random_rows(std::size_t rows, std::size_t width, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0, 1);
  std::vector<float> values(rows * width);
  for (float& value : values) value = draw(random);
  return values;
}

/// Rows of a and of b side by side.
plain::Rows side_by_side(const std::vector<float>& a, std::size_t a_width, const std::vector<float>& b,
                         std::size_t b_width) {
  plain::Rows rows(a.size() / a_width);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < a_width; ++i) rows[r].push_back(a[r * a_width + i]);
    for (std::size_t i = 0; i < b_width; ++i) rows[r].push_back(b[r * b_width + i]);
  }
  return rows;
}

std::vector<float> flat(const plain::Rows& rows) {
  std::vector<float> values;
  for (const plain::Row& row : rows) {
    for (const double value : row) values.push_back(static_cast<float>(value));
  }
  return values;
}

TEST(DitShapes, EqualsAPlainOneInDoubleWhereNoTwoSizesAreTheSame) {
  for (const std::size_t patch : {1u, 2u, 3u}) {
    const DitConfig config = odd_config(patch);
    const MemoryTensors tensors = random_dit(config);
    device::ThreadPool threads(2);
    for (const char* form : {"reference", "vector"}) {
      Dit dit(config, tensors,
              ops::select_forms(ops::Precision::fp32, {{"matmul", form}, {"attention", form}}), threads);
      for (const std::size_t frames : {1u, 7u, 22u}) {
        SCOPED_TRACE(std::to_string(patch) + " " + form + " " + std::to_string(frames));
        const std::vector<float> context = random_rows(frames, 8, 1);
        const std::vector<float> noisy = random_rows(frames, 3, 2);
        const std::vector<float> condition = random_rows(5, config.condition_size, 3);
        const PreparedCondition prepared = dit.prepare(condition);
        std::vector<float> velocity(noisy.size());
        dit.velocity(0.625f, 0.25f, std::vector<DitSong>{{context, noisy, &prepared, velocity}});
        const plain::Rows expected = plain::PlainDit(config, tensors)
                                         .velocity(side_by_side(context, 8, noisy, 3),
                                                   side_by_side(condition, 28, {}, 0), 0.625, 0.25);
        // Most of it is the rounding of the time's angles, up to 625, to fp32, which the authors' have too.
        EXPECT_LE(fixture::nrmse(flat(expected), velocity), 1e-5);
      }
    }
  }
}

TEST(DitShapes, OneRowOfNoConditionIsAsGoodAsMany) {
  const DitConfig config = odd_config(2);
  const MemoryTensors tensors = random_dit(config);
  device::ThreadPool threads(2);
  Dit dit(config, tensors, ops::select_forms(ops::Precision::fp32), threads);
  const std::vector<float> context = random_rows(9, 8, 1);
  const std::vector<float> noisy = random_rows(9, 3, 2);
  const std::vector<float> row = random_rows(1, config.condition_size, 3);
  std::vector<float> many;
  for (std::size_t i = 0; i < 40; ++i) many.insert(many.end(), row.begin(), row.end());
  const PreparedCondition one_row = dit.prepare(row);
  const PreparedCondition many_rows = dit.prepare(many);
  std::vector<float> velocity(noisy.size());
  std::vector<float> expected(noisy.size());
  dit.velocity(
      0.5f, 0.5f,
      std::vector<DitSong>{{context, noisy, &one_row, velocity}, {context, noisy, &many_rows, expected}});
  EXPECT_LE(fixture::nrmse(expected, velocity), 1e-6);
}

TEST(DitShapes, AMissingTensorIsNamed) {
  DitConfig config = odd_config(2);
  const MemoryTensors tensors = random_dit(config);
  config.stack.sliding.push_back(true);
  device::ThreadPool threads(1);
  try {
    const Dit dit(config, tensors, ops::select_forms(ops::Precision::fp32), threads);
    FAIL() << "four layers of three";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::missing);
    EXPECT_NE(std::string(error.what()).find("layers.3."), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay::music
