#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/model_config.hpp"
#include "formats/tensor_source.hpp"

namespace assay::formats {

/// A tensor that a backbone reads: its canonical name, and its shape by the configuration.
struct BackboneTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
};

/// All tensors of a Qwen3 or Qwen3.5 text backbone, in the order of its layers (transformers, models/qwen3
/// and models/qwen3_5: the modules' parameter names).
std::vector<BackboneTensor> backbone_tensors(const ModelConfig& config);

/// Checks that every one of them is in `source`, of its shape and of a floating type, without reading it, so
/// that a checkpoint that cannot run is refused before its gigabytes are read; and that the source has no
/// other tensor in the backbone's place (a bias, a quantised weight's scale, a layer beyond the
/// configuration's last), which would mean that the model computes something else. Throws Error(missing |
/// mismatch | unsupported).
void check_backbone_tensors(const TensorSource& source, const ModelConfig& config);

}  // namespace assay::formats
