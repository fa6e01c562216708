#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/model_config.hpp"
#include "formats/tensor_source.hpp"
#include "music/config.hpp"

namespace assay::lab {

/// What the parts of a music model measure: as a checkpoint's configurations would say.
struct MusicShape {
  std::string name;
  formats::ModelConfig text;
  music::ConditionConfig condition;
  music::DitConfig dit;
  music::VaeConfig vae;
};

/// "turbo" (ACE-Step 1.5 Turbo with Qwen3-Embedding-0.6B: the defaults of huggingface/diffusers,
/// models/transformers/ace_step_transformer.py and pipelines/ace_step/modeling_ace_step.py, and the text
/// encoder's published configuration) and "tiny" (the checkpoint of the tests).
std::vector<std::string> music_shape_names();

/// Throws Error(invalid_argument) listing the names for any other.
MusicShape music_shape(std::string_view name);

/// Weights of a part out of nothing, by diffusers' names (see synthetic_weights.hpp). Spreads are such that
/// activations stay finite and of the order of one.
std::shared_ptr<const formats::TensorSource> synthetic_condition(const music::ConditionConfig& config,
                                                                 std::uint64_t seed);
std::shared_ptr<const formats::TensorSource> synthetic_dit(const music::DitConfig& config,
                                                           std::uint64_t seed);
/// The decoder alone.
std::shared_ptr<const formats::TensorSource> synthetic_vae(const music::VaeConfig& config,
                                                           std::uint64_t seed);

}  // namespace assay::lab
