#include "decision/row.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "decision/json_value.hpp"
#include "text/control_tokens.hpp"

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

/// How far past a limit tokens are counted, so that a message can say by how many a text is too long, and a
/// text of megabytes is still refused at once.
constexpr std::size_t kCountedTimesLimit = 4;

[[noreturn]] void refuse_length(const std::string& field, std::string found, std::string expected,
                                const std::string& what, std::size_t excess) {
  throw Error(ErrorKind::limit_exceeded, {field, std::move(found), std::move(expected),
                                          fmt::format("shorten {} by {}", what, counted(excess, "token"))});
}

[[noreturn]] void refuse_far_too_long(const std::string& field, std::size_t limit, std::string advice) {
  throw Error(ErrorKind::limit_exceeded,
              {field, fmt::format("more than {} tokens", kCountedTimesLimit * limit),
               fmt::format("at most {}", limit), std::move(advice)});
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

/// Appends the text's tokens; false where there are more than `most` in all.
bool RowEncoder::append_text(const std::string& text, const std::string& field, std::size_t most,
                             std::vector<std::int32_t>& tokens) const {
  try {
    const std::size_t left = most - std::min(most, tokens.size());
    const auto more = tokenizer_.encode_within(text::without_control_tokens(text), left);
    if (more) tokens.insert(tokens.end(), more->begin(), more->end());
    return more.has_value();
  } catch (const Error& error) {
    throw Error(error.kind(), {field, error.what()});
  }
}

QuestionSegment RowEncoder::encode_question(const Question& question, std::size_t state_tokens) const {
  const std::size_t most = kCountedTimesLimit * limits_.row_tokens;
  const std::string field = field_path("questions", question.id);
  QuestionSegment segment;
  segment.tokens.push_back(question_open_);
  bool counted_whole = append_text(question.instructions, field + ".instructions", most, segment.tokens);
  for (const std::string& option : question.options) {
    if (!counted_whole) break;
    segment.tokens.push_back(option_open_);
    counted_whole = append_text(option, field + ".criteria", most, segment.tokens);
    segment.option_ends.push_back(segment.tokens.size());
    segment.tokens.push_back(option_close_);
  }
  if (!counted_whole)
    refuse_far_too_long(field, limits_.row_tokens, "shorten the instructions or the options");
  segment.tokens.push_back(decide_);
  const std::size_t row = state_tokens + segment.tokens.size();
  if (row <= limits_.row_tokens) return segment;
  refuse_length(
      field,
      fmt::format("{} with its state ({} + {})", counted(row, "token"), state_tokens, segment.tokens.size()),
      fmt::format("at most {} for the state and one question", limits_.row_tokens),
      "the state, the instructions or the options", row - limits_.row_tokens);
}

RequestRows RowEncoder::encode(const Request& request) const {
  RequestRows rows;
  rows.state.push_back(state_open_);
  const std::size_t limit = limits_.state_tokens;
  if (!append_text(request.state, "state", kCountedTimesLimit * limit, rows.state)) {
    refuse_far_too_long("state", limit, "give a part of it, or a summary");
  }
  if (rows.state.size() > limit) {
    refuse_length("state", counted(rows.state.size(), "token"), fmt::format("at most {}", limit), "it",
                  rows.state.size() - limit);
  }
  rows.questions.reserve(request.questions.size());
  for (const Question& question : request.questions) {
    rows.questions.push_back(encode_question(question, rows.state.size()));
  }
  return rows;
}

}  // namespace assay::decision
