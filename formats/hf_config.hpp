#pragma once

#include <string>
#include <string_view>

#include "formats/model_config.hpp"

namespace assay::formats {

/// Reads a Hugging Face config.json of a Qwen3 or Qwen3.5 text model: flat, or nested under `text_config`;
/// with `rope_parameters`, or the older rope_theta, rope_scaling and partial_rotary_factor. Fields that the
/// file leaves out take the defaults of transformers' Qwen3Config and Qwen3_5TextConfig where those have any
/// meaning for the released models; sizes must be there.
///
/// Throws Error(malformed | missing) naming `origin` and the field, Error(unsupported) naming the feature for
/// a model that nothing here can run (mixture of experts, sliding windows, scaled rotary positions, attention
/// biases, activations other than SiLU, quantised weights, other layer types).
ModelConfig parse_hf_config(std::string_view json, const std::string& origin);

/// Checks that the sizes are positive, agree with each other and are of this world. Throws Error(malformed)
/// naming `origin` and the field by config.json's name. Used for configurations from any format.
void check_model_config(const ModelConfig& config, const std::string& origin);

}  // namespace assay::formats
