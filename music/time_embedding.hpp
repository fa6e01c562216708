#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "music/weight_loader.hpp"

namespace assay::music {

/// What the DiT's layers take from one time: the embedding itself, for the output norm, and six rows for the
/// AdaLN of every layer.
struct TimeModulation {
  std::vector<float> embedding;  ///< [hidden]
  std::vector<float> rows;       ///< [6, hidden]
};

/// A time in [0, 1] to its modulation: 128 cosines and 128 sines of 1000·t at geometric frequencies, two
/// layers with SiLU between, and a projection to six rows. Source: huggingface/diffusers,
/// models/transformers/ace_step_transformer.py (AceStepTimestepEmbedding) and models/embeddings.py
/// (get_timestep_embedding).
class TimeEmbedding {
 public:
  /// Reads "{prefix}linear_1", "linear_2" and "time_proj", weights and biases.
  TimeEmbedding(const WeightLoader& loader, std::size_t hidden_size, const std::string& prefix);

  TimeModulation at(const ops::Context& context, float t) const;

  std::size_t weight_bytes() const;

 private:
  Linear first_;
  Linear second_;
  Linear projection_;
};

}  // namespace assay::music
