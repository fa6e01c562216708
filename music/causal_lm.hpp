#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "backbone/backbone.hpp"
#include "text/tokenizer.hpp"

/// A Qwen3 language model that writes texts token by token: the planner's engine.
namespace assay::music {

/// Which rows of the output layer are packed together, so that a phase reads no others.
enum class HeadPart {
  text,   ///< every row that is no audio code: logits by token id, codes −∞
  codes,  ///< the audio codes in their order, then the end token
};

/// What a planner's tokenizer has to have.
struct PlannerVocabulary {
  text::Tokenizer tokenizer;
  std::vector<std::int32_t> codes;  ///< token ids of codes 0, 1, …; at most 64,000
  std::int32_t end = 0;             ///< the token that ends a text
};

/// Of a planner's directory: tokenizer.json and, for the end token, tokenizer_config.json. `rows`: vocab_size
/// of its config.json. Throws as the readers of those files do, Error(missing) for a tokenizer without audio
/// codes (<|audio_code_0|>, …) or without the end token, Error(mismatch) for a code beyond the rows.
PlannerVocabulary read_planner_vocabulary(const std::filesystem::path& directory, std::size_t rows);

class CausalLm {
 public:
  /// A directory in Hugging Face's layout: config.json (qwen3), model.safetensors or shards, and a planner's
  /// vocabulary. The output layer is lm_head.weight, or the embedding where the configuration ties them.
  /// Throws as the readers of those files and read_planner_vocabulary do, Error(unsupported) for another
  /// family.
  CausalLm(const std::filesystem::path& directory, const ops::Selection& selection,
           device::ThreadPool& threads,
           const std::function<void(std::size_t, std::size_t)>& progress = nullptr);
  ~CausalLm();

  const text::Tokenizer& tokenizer() const;
  std::size_t vocabulary() const;               ///< rows of the output layer
  std::span<const std::int32_t> codes() const;  ///< token ids of codes 0, 1, …; at most 64,000
  std::int32_t end_token() const;

  /// Texts that go on together, one pass over the weights for all of them.
  class Texts {
   public:
    /// Runs prompts. Each text has room for `more` tokens.
    Texts(CausalLm& model, std::vector<std::vector<std::int32_t>> prompts, std::size_t more);
    /// The same tokens after every text; run when logits are next wanted.
    void append(std::span<const std::int32_t> tokens);
    /// Logits after each text's last token: [texts][rows of the part]. They are those of the text run at
    /// once, bit for bit. Throws Error(cancelled), Error(non_finite).
    std::vector<std::vector<float>> logits(HeadPart part, const std::stop_token& stop = {});
    std::size_t size() const { return states_.size(); }

   private:
    CausalLm& model_;
    std::vector<std::shared_ptr<backbone::SegmentState>> states_;
    std::vector<std::vector<std::int32_t>> pending_;  ///< per text
  };

  /// Lets go of a part's packed rows; they are packed again when wanted.
  void drop(HeadPart part);
  std::size_t weight_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::music
