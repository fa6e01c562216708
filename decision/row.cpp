#include "decision/row.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "decision/flat_text.hpp"
#include "decision/json_value.hpp"

namespace assay::decision {
namespace {

std::int32_t delimiter(const text::Tokenizer& tokenizer, std::string_view token) {
  const auto id = tokenizer.token_id(token);
  if (!id) {
    throw Error(ErrorKind::missing,
                {"tokenizer", fmt::format("no token {}", token), "a tokenizer of the Qwen family",
                 "use the tokenizer that came with the checkpoint"});
  }
  return *id;
}

void append(std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

}  // namespace

std::size_t RequestRows::tokens() const {
  std::size_t total = state.size();
  for (const QuestionSegment& question : questions) total += question.tokens.size();
  return total;
}

RowEncoder::RowEncoder(const text::Tokenizer& tokenizer, const RowLimits& limits)
    : tokenizer_(tokenizer),
      limits_(limits),
      state_open_(delimiter(tokenizer, "<|fim_prefix|>")),
      question_open_(delimiter(tokenizer, "<|fim_middle|>")),
      option_open_(delimiter(tokenizer, "<|box_start|>")),
      option_close_(delimiter(tokenizer, "<|box_end|>")),
      decide_(delimiter(tokenizer, "<|fim_suffix|>")) {}

std::vector<std::int32_t> RowEncoder::encode_text(const std::string& text, const std::string& field) const {
  try {
    return tokenizer_.encode(without_control_tokens(text));
  } catch (const Error& error) {
    throw Error(error.kind(), {field, error.what()});
  }
}

QuestionSegment RowEncoder::encode_question(const Question& question, std::size_t state_tokens) const {
  const std::string field = field_path("questions", question.id);
  QuestionSegment segment;
  segment.tokens.push_back(question_open_);
  append(segment.tokens, encode_text(question.instructions, field + ".instructions"));
  for (const std::string& option : question.options) {
    segment.tokens.push_back(option_open_);
    append(segment.tokens, encode_text(option, field + ".criteria"));
    segment.option_ends.push_back(segment.tokens.size());
    segment.tokens.push_back(option_close_);
  }
  segment.tokens.push_back(decide_);
  const std::size_t row = state_tokens + segment.tokens.size();
  if (row > limits_.row_tokens) {
    throw Error(
        ErrorKind::limit_exceeded,
        {field, fmt::format("{} tokens with its state ({} + {})", row, state_tokens, segment.tokens.size()),
         fmt::format("at most {} for the state and one question", limits_.row_tokens),
         fmt::format("shorten the state, the instructions or the options by {} tokens",
                     row - limits_.row_tokens)});
  }
  return segment;
}

RequestRows RowEncoder::encode(const Request& request) const {
  RequestRows rows;
  rows.state.push_back(state_open_);
  append(rows.state, encode_text(request.state, "state"));
  if (rows.state.size() > limits_.state_tokens) {
    throw Error(ErrorKind::limit_exceeded,
                {"state", fmt::format("{} tokens", rows.state.size()),
                 fmt::format("at most {}", limits_.state_tokens),
                 fmt::format("shorten it by {} tokens", rows.state.size() - limits_.state_tokens)});
  }
  rows.questions.reserve(request.questions.size());
  for (const Question& question : request.questions) {
    rows.questions.push_back(encode_question(question, rows.state.size()));
  }
  return rows;
}

}  // namespace assay::decision
