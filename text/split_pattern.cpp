#include "text/split_pattern.hpp"

#include <utility>

#include "text/unicode.hpp"

namespace assay::text {

// huggingface: Qwen/Qwen3-0.6B and Qwen/Qwen3.5-4B, tokenizer.json, pre_tokenizer.
const std::string_view kQwen2SplitPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string_view kQwen35SplitPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

/// The alternatives of the Qwen patterns in their order, each as a loop. `word` is the class of the letters,
/// or of letters and marks.
class QwenCursor final : public SplitCursor {
 public:
  explicit QwenCursor(std::uint8_t word)
      : word_(word),
        not_symbol_(static_cast<std::uint8_t>(word | class_letter | class_number | class_space)) {}

  std::size_t end_of_piece(std::string_view text, std::size_t begin) override {
    const Symbol first = symbol(text, begin);
    if (text[begin] == '\'') {
      if (const std::size_t end = end_of_contraction(text, begin + 1)) return end;
    }
    if (is(first, word_)) return skip(text, first.end, word_);
    if (is(first, class_number)) return first.end;
    if (first.end < text.size()) {
      const Symbol second = symbol(text, first.end);
      if (!is(first, class_newline) && is(second, word_)) return skip(text, second.end, word_);
      if (text[begin] == ' ' && !is(second, not_symbol_)) return end_of_symbols(text, second.end);
    }
    return is(first, class_space) ? end_of_space(text, begin) : end_of_symbols(text, first.end);
  }

 private:
  struct Symbol {
    std::uint8_t classes;
    std::size_t end;
  };

  static bool is(Symbol symbol, std::uint8_t classes) { return (symbol.classes & classes) != 0; }

  Symbol symbol(std::string_view text, std::size_t at) const {
    const auto [c, bytes] = decode_utf8(text, at);
    return {classes_[c], at + bytes};
  }

  std::size_t skip(std::string_view text, std::size_t at, std::uint8_t classes) const {
    while (at < text.size()) {
      const Symbol next = symbol(text, at);
      if (!is(next, classes)) break;
      at = next.end;
    }
    return at;
  }

  // [^\s\p{L}\p{N}]+[\r\n]* behind its first code point.
  std::size_t end_of_symbols(std::string_view text, std::size_t at) const {
    while (at < text.size()) {
      const Symbol next = symbol(text, at);
      if (is(next, not_symbol_)) break;
      at = next.end;
    }
    return skip(text, at, class_newline);
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+ at a space: up to the last newline of the run; else all of a run that ends the
  // text; else all but its last, which goes with what follows; else the one there is.
  std::size_t end_of_space(std::string_view text, std::size_t begin) const {
    std::size_t at = begin, last = begin, after_newline = 0;
    while (at < text.size()) {
      const Symbol next = symbol(text, at);
      if (!is(next, class_space)) break;
      last = at;
      at = next.end;
      if (is(next, class_newline)) after_newline = at;
    }
    if (after_newline != 0) return after_newline;
    return at == text.size() || last == begin ? at : last;
  }

  // (?i:'s|'t|'re|'ve|'m|'ll|'d) behind the apostrophe; 0 where there is none. Without regard to case U+017F
  // is an s (CaseFolding.txt); no other code point outside ASCII folds to one of these letters.
  static std::size_t end_of_contraction(std::string_view text, std::size_t at) {
    const auto lower = [&](std::size_t i) { return i < text.size() ? text[i] | 0x20 : 0; };
    switch (lower(at)) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        return at + 1;
      case 'r':
      case 'v':
        return lower(at + 1) == 'e' ? at + 2 : 0;
      case 'l':
        return lower(at + 1) == 'l' ? at + 2 : 0;
      default:
        return text.substr(at, 2) == "\u017f" ? at + 2 : 0;
    }
  }

  const std::uint8_t* classes_ = code_point_classes();
  std::uint8_t word_;
  std::uint8_t not_symbol_;
};

class QwenPattern final : public SplitPattern {
 public:
  explicit QwenPattern(int word) : word_(static_cast<std::uint8_t>(word)) {}
  std::unique_ptr<SplitCursor> cursor() const override { return std::make_unique<QwenCursor>(word_); }

 private:
  std::uint8_t word_;
};

}  // namespace

std::unique_ptr<const SplitPattern> make_split_pattern(std::string_view pattern, const std::string& where) {
  if (pattern == kQwen2SplitPattern) return std::make_unique<QwenPattern>(class_letter);
  if (pattern == kQwen35SplitPattern) return std::make_unique<QwenPattern>(class_letter | class_mark);
  return make_regex_split_pattern(pattern, where);
}

}  // namespace assay::text
