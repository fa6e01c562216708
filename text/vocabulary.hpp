#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer.hpp"

namespace assay::text {

/// Ids stay below this, and so do the tables that are indexed by id.
inline constexpr std::int32_t kMaxTokenIds = 1 << 22;

/// GPT-2's printable stand-in for each byte (openai/gpt-2, src/encoder.py, bytes_to_unicode): the alphabet in
/// which byte-level vocabularies are written.
const std::array<char32_t, 256>& byte_level_alphabet();

/// Tokens by text and by id, vocabulary and added tokens alike.
class Vocabulary {
 public:
  /// Moves the vocabulary out of `parts` and copies its added tokens. Throws Error(malformed) for a token
  /// twice, an id twice or out of range, an empty or absurdly long token, text that is not UTF-8, and a byte
  /// without a token.
  Vocabulary(TokenizerParts& parts, const std::string& origin);

  std::optional<std::int32_t> id(std::string_view text) const;
  /// The bytes that a token stands for; empty for an id that is not in use.
  std::string_view bytes(std::int32_t id) const;
  std::int32_t id_of_byte(unsigned char byte) const { return id_of_byte_[byte]; }
  std::size_t id_limit() const { return spans_.size(); }
  /// The most bytes that a token stands for.
  std::size_t longest_token() const { return longest_token_; }

 private:
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  struct Span {
    std::size_t first = 0;
    std::uint32_t size = 0;
  };

  void insert(std::string text, std::int32_t id, std::string_view bytes, const std::string& where);
  void insert_added(const TokenizerParts::Added& token, const std::string& where);

  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
  std::string bytes_;
  std::vector<Span> spans_;
  std::size_t longest_token_ = 0;
  std::array<std::int32_t, 256> id_of_byte_{};
};

}  // namespace assay::text
