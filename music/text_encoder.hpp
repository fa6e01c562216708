#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "backbone/backbone.hpp"
#include "device/thread_pool.hpp"
#include "formats/model_config.hpp"
#include "formats/tensor_source.hpp"
#include "ops/selection.hpp"
#include "text/tokenizer.hpp"

namespace assay::music {

/// The token ids of one of the encoder's texts, with what the tokenizer's template puts behind it. Throws
/// Error(invalid_argument) naming `what` where it is no UTF-8, Error(limit_exceeded) past `limit` tokens.
std::vector<std::int32_t> encode_text(const text::Tokenizer& tokenizer, std::string_view text,
                                      std::size_t limit, const std::string& what);

/// The Qwen3 that reads prompts: last hidden states for the prompt, and its embedding table alone for lyrics
/// (huggingface/diffusers, pipelines/ace_step/pipeline_ace_step.py, encode_prompt). Runs are serial.
class TextEncoder {
 public:
  /// Loads and packs the backbone; see backbone::Backbone.
  TextEncoder(const formats::ModelConfig& config, std::shared_ptr<const formats::TensorSource> source,
              const ops::Selection& selection, device::ThreadPool& threads);

  /// The final-normed hidden state of every token, [ids, hidden size]. Throws Error(cancelled) where `stop`
  /// asks.
  std::vector<float> hidden_states(std::span<const std::int32_t> ids, const std::stop_token& stop = {});

 private:
  backbone::Backbone backbone_;
};

/// Rows of the embedding table, [ids, hidden size], from the checkpoint's tensors.
std::vector<float> embedding_rows(const formats::TensorSource& source, std::span<const std::int32_t> ids,
                                  std::size_t hidden_size);

}  // namespace assay::music
