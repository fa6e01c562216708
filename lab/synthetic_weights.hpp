#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/model_config.hpp"
#include "formats/tensor_source.hpp"

namespace assay::lab {

/// The shapes that benchmarks know: "kev-0.8b", "kev-4b" (Kev on Qwen3.5-0.8B and Qwen3.5-4B; sizes from the
/// models' published configurations), "kev-tiny" (the hybrid of the tests).
std::vector<std::string> shape_names();

/// Throws Error(invalid_argument) listing the names for any other.
formats::ModelConfig shape_config(std::string_view name);

/// Weights of that shape out of nothing: every element is a hash of `seed`, its tensor, row and column,
/// spread evenly about the tensor's mean and exact in bf16. Spreads are such that activations stay near one
/// through a stack of any depth. Tensors are generated as they are read; only the embedding table, which a
/// backbone keeps as its source stores it, is held (bf16, made on first use).
std::shared_ptr<const formats::TensorSource> synthetic_weights(const formats::ModelConfig& config,
                                                               std::uint64_t seed);

/// A tensor out of nothing: its elements are spread evenly about `mean` with that standard deviation.
struct SyntheticTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  float mean = 0;
  float deviation = 0;
};

/// A source of the listed tensors, generated as above. Names occur once.
std::shared_ptr<const formats::TensorSource> synthetic_tensors(const std::vector<SyntheticTensor>& list,
                                                               std::uint64_t seed);

}  // namespace assay::lab
