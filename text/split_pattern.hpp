#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace assay::text {

/// Cuts text into pieces as a Split pre-tokenizer with behavior "Isolated" does: a piece is a match of the
/// pattern, or what lies between two matches. One thread at a time.
class SplitCursor {
 public:
  virtual ~SplitCursor() = default;

  /// The end of the piece that starts at `begin` < text.size(). `begin` is 0 or the end of the piece before;
  /// `text` is UTF-8. Throws Error(limit_exceeded) where a pattern backtracks without end.
  virtual std::size_t end_of_piece(std::string_view text, std::size_t begin) = 0;
};

/// A split pattern made ready. Immutable; each thread takes a cursor of its own, which must not outlive this.
class SplitPattern {
 public:
  virtual ~SplitPattern() = default;
  virtual std::unique_ptr<SplitCursor> cursor() const = 0;
};

/// The patterns of the files of Qwen2 and Qwen3, and of Qwen3.5, where marks belong to words.
extern const std::string_view kQwen2SplitPattern;
extern const std::string_view kQwen35SplitPattern;

/// A matcher for `pattern`, in the dialect of Oniguruma that tokenizer.json files use: a scanner written by
/// hand for the two Qwen patterns, PCRE2 for any other. `where` names the field in messages.
/// Throws Error(unsupported) for a construct that could mean another thing to PCRE2 than to Oniguruma.
std::unique_ptr<const SplitPattern> make_split_pattern(std::string_view pattern, const std::string& where);

/// The same, always by PCRE2: what the scanners are tested against.
std::unique_ptr<const SplitPattern> make_regex_split_pattern(std::string_view pattern,
                                                             const std::string& where);

/// `pattern` as PCRE2 has to read it to match what Oniguruma matches: \s, \p{L}, \p{M} and \p{N} become the
/// code points of Unicode 16.0. Throws Error(unsupported) as above.
std::string translate_split_pattern(std::string_view pattern, const std::string& where);

}  // namespace assay::text
