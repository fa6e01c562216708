#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::text {

/// What a byte-level BPE tokenizer is made of, whichever file it came from.
struct TokenizerParts {
  struct Added {
    std::string content;
    std::int32_t id = 0;
    bool special = false;
    bool normalized = false;  ///< matched after NFC rather than before
    bool single_word = false;
    bool lstrip = false;
    bool rstrip = false;
  };
  std::vector<std::pair<std::string, std::int32_t>> vocabulary;  ///< byte-level text (Ġ for a space) → id
  std::vector<std::pair<std::string, std::string>> merges;       ///< best first
  std::vector<Added> added;
  std::string
      split_pattern;  ///< the Split pre-tokenizer's expression (Oniguruma dialect as the files have it)
  bool nfc = true;
  bool ignore_merges = false;
  std::vector<std::string> appended;  ///< tokens that the file's template puts behind a text
};

/// What to do with a file whose template puts tokens behind the text, as those of Qwen3's embedding models
/// do: refuse it, where nobody would put them there, or read them into `appended`.
enum class TextTemplate { refused, read };

/// Tokenizers of the Qwen2, Qwen3 and Qwen3.5 kind: NFC, a Split pattern, byte-level BPE, added tokens.
/// Immutable; `encode` may run from several threads.
class Tokenizer {
 public:
  /// `origin` names the file in messages. Throws Error(malformed | unsupported) saying which part of the
  /// file is of another kind.
  static Tokenizer from_json(std::string_view json, const std::string& origin,
                             TextTemplate text_template = TextTemplate::refused);
  static Tokenizer from_parts(TokenizerParts parts, const std::string& origin);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Token ids of UTF-8 text, added tokens recognised in it, nothing put around it. Throws
  /// Error(invalid_argument) with the byte offset where the text is not UTF-8.
  std::vector<std::int32_t> encode(std::string_view utf8) const;

  /// The same, or nothing where the text has more than `limit` tokens, which is found out early: a text of
  /// many megabytes is not read to its end.
  std::optional<std::vector<std::int32_t>> encode_within(std::string_view utf8, std::size_t limit) const;

  /// The ids that belong behind a text by the file's template; `encode` leaves that to the caller.
  std::span<const std::int32_t> appended() const;

  /// The id of a whole token (an added token's content, or a vocabulary entry in byte-level text).
  std::optional<std::int32_t> token_id(std::string_view token) const;

  /// The bytes that ids stand for; the inverse of encode up to NFC. Throws Error(invalid_argument) for an
  /// id outside the vocabulary.
  std::string decode(std::span<const std::int32_t> ids) const;

  /// One more than the largest id.
  std::size_t id_limit() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::text
