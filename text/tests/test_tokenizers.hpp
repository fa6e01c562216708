#pragma once

#include <string>
#include <string_view>

#include "base/file.hpp"
#include "text/split_pattern.hpp"
#include "text/tokenizer.hpp"
#include "text/unicode.hpp"
#include "text/vocabulary.hpp"

namespace assay::text {

/// The file of a fixture checkpoint: "hybrid" or "dense".
inline std::string fixture_tokenizer_json(const std::string& name) {
  return read_text_file(std::string(ASSAY_TEST_DATA) + "/kev-tiny-" + name + "/base/tokenizer.json");
}

inline Tokenizer fixture_tokenizer(const std::string& name) {
  return Tokenizer::from_json(fixture_tokenizer_json(name), name);
}

/// The 256 bytes as tokens 0 to 255, no merges, no added tokens.
inline TokenizerParts byte_parts(std::string_view pattern = kQwen2SplitPattern) {
  TokenizerParts parts;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(byte_level_alphabet()[byte], text);
    parts.vocabulary.emplace_back(text, static_cast<std::int32_t>(byte));
  }
  parts.split_pattern = pattern;
  return parts;
}

inline void add_merge(TokenizerParts& parts, const std::string& left, const std::string& right) {
  parts.merges.emplace_back(left, right);
  parts.vocabulary.emplace_back(left + right, static_cast<std::int32_t>(parts.vocabulary.size()));
}

}  // namespace assay::text
