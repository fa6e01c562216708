#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "decision/request.hpp"
#include "text/tokenizer.hpp"

namespace assay::decision {

/// What one row may hold, delimiters counted, as the author serves it (kev/model.py, SERVE_MAX_STATE and
/// SERVE_MAX_BRANCH).
struct RowLimits {
  std::size_t state_tokens = 8192;
  std::size_t row_tokens = 8192;  ///< the state and one question
};

/// A question as a segment whose parent is the state:
/// <|fim_middle|> instructions (<|box_start|> option <|box_end|>)… <|fim_suffix|>.
struct QuestionSegment {
  std::vector<std::int32_t> tokens;
  std::vector<std::size_t> option_ends;  ///< index in `tokens` of each option's <|box_end|>

  std::size_t decide() const { return tokens.size() - 1; }  ///< index of <|fim_suffix|>
};

/// A request in tokens. A row is the state followed by one question; all rows share the state.
struct RequestRows {
  std::vector<std::int32_t> state;  ///< <|fim_prefix|> and the state's tokens
  std::vector<QuestionSegment> questions;

  /// Tokens of the state and all questions, each once: `usage.input_tokens` (kev/serve.py, Server._run).
  std::size_t tokens() const;
};

/// Lays requests out in tokens (kev/encoding.py, `encode` without option isolation). Immutable; may be used
/// from several threads.
class RowEncoder {
 public:
  /// `tokenizer` must outlive this. Throws Error(missing) naming a delimiter that it does not have.
  RowEncoder(const text::Tokenizer& tokenizer, const RowLimits& limits);

  /// Throws Error(limit_exceeded) naming the state or the question and by how much it is too long; a text
  /// far too long is not counted to its end, and the message says so.
  RequestRows encode(const Request& request) const;

  const RowLimits& limits() const noexcept { return limits_; }

 private:
  bool append_text(const std::string& text, const std::string& field, std::size_t most,
                   std::vector<std::int32_t>& tokens) const;
  QuestionSegment encode_question(const Question& question, std::size_t state_tokens) const;

  const text::Tokenizer& tokenizer_;
  RowLimits limits_;
  std::int32_t state_open_;
  std::int32_t question_open_;
  std::int32_t option_open_;
  std::int32_t option_close_;
  std::int32_t decide_;
};

}  // namespace assay::decision
