#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "backbone/backbone.hpp"
#include "formats/model_config.hpp"
#include "formats/tensor_source.hpp"
#include "ops/selection.hpp"

namespace assay::lab {

/// Which weights a cost is measured on: a checkpoint's, or synthetic ones of a known shape.
struct ModelChoice {
  std::string model;  ///< run directory or GGUF file; empty: a shape
  std::string
      base;  ///< base model directory, where the run's own reference is not to be followed; else empty
  std::string shape;  ///< one of shape_names(); empty: a checkpoint
};

/// A model opened, its weights not yet read.
struct MeasuredModel {
  formats::ModelConfig config;
  std::shared_ptr<const formats::TensorSource> weights;
  /// {"identity": …} of a checkpoint (its SHA-256 and the name of its folder or file), {"shape", "seed"} of
  /// synthetic weights.
  nlohmann::ordered_json description;
};

/// Throws Error(invalid_argument) unless exactly one of model and shape is given, and what opening throws.
MeasuredModel open_model(const ModelChoice& choice);

/// What every receipt of this part says of its run: {"model", "precision", "threads", "forms"}.
nlohmann::ordered_json run_subject(const nlohmann::ordered_json& model, ops::Precision precision,
                                   std::size_t threads, const ops::Selection& forms);

/// Arbitrary token ids below the vocabulary's size. What a call costs does not depend on them.
std::vector<std::int32_t> some_tokens(const formats::ModelConfig& config, std::size_t count);

/// Runs the backbone once over one segment of these tokens, as one call, and reads out the last.
void run_one_call(backbone::Backbone& backbone, std::span<const std::int32_t> tokens,
                  backbone::OpObserver* observer = nullptr);

}  // namespace assay::lab
