#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer.hpp"

namespace assay::text {

/// A part of a text: an added token, or (id −1) what is left to split and merge.
struct TextPart {
  std::size_t first;
  std::size_t size;
  std::int32_t id;
};

/// Finds added tokens in text as Hugging Face's tokenizers do (src/tokenizer/added_vocabulary.rs): leftmost,
/// then longest; a match that `single_word` refuses is passed over whole; lstrip and rstrip take the white
/// space beside. Immutable.
class AddedTokens {
 public:
  /// The tokens of `added` with this `normalized`, whose contents are in NFC already where that matters.
  /// Throws Error(malformed) for empty, absurdly long or absurdly many tokens, and for a content twice.
  AddedTokens(std::span<const TokenizerParts::Added> added, bool normalized, const std::string& origin);

  bool empty() const { return tokens_.empty(); }

  /// `text`, which is UTF-8, in parts that are not empty, in order.
  void split(std::string_view text, std::vector<TextPart>& parts) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Found {
    std::size_t first = 0;
    std::size_t end = 0;
    std::uint32_t token = kNone;
  };

  void insert(std::string_view content, std::uint32_t token, const std::string& where);
  std::uint32_t child(std::uint32_t node, char byte) const;
  Found find(std::string_view text, std::size_t from) const;

  std::vector<TokenizerParts::Added> tokens_;
  // A trie: node and byte → node; the token that ends at a node.
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::vector<std::uint32_t> token_at_;
  std::array<bool, 256> starts_token_{};
};

}  // namespace assay::text
