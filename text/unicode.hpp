#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::text {

/// Code points first … last, both included.
struct CodePointRange {
  char32_t first;
  char32_t last;
};

/// What a code point is, as bits: the classes that split patterns and added tokens ask about. They follow
/// Unicode 16.0, as Oniguruma 6.9.10 does, which Hugging Face's tokenizers match with; a library's own tables
/// would tie a text's ids to that library's age.
enum CodePointClass : std::uint8_t {
  class_letter = 1,    ///< \p{L}
  class_mark = 2,      ///< \p{M}
  class_number = 4,    ///< \p{N}
  class_space = 8,     ///< \s: the White_Space property
  class_newline = 16,  ///< carriage return and line feed
  class_word = 32,     ///< \w of Rust's regex: Alphabetic, M, Nd, Pc, Join_Control (UTS 18, annex C)
};

/// The class bits of every code point up to U+10FFFF, indexed by code point.
const std::uint8_t* code_point_classes();

/// The code points of one class, in order. Only letter, mark, number and space have ranges.
std::vector<CodePointRange> ranges_of(CodePointClass one_class);

struct DecodedCodePoint {
  char32_t value;
  std::size_t bytes;
};

/// The code point that starts at `at` in text that is known to be UTF-8.
inline DecodedCodePoint decode_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const char32_t lead = byte(at);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {(lead & 0x1f) << 6 | (byte(at + 1) & 0x3f), 2};
  if (lead < 0xf0) return {(lead & 0x0f) << 12 | (byte(at + 1) & 0x3f) << 6 | (byte(at + 2) & 0x3f), 3};
  return {
      (lead & 0x07) << 18 | (byte(at + 1) & 0x3f) << 12 | (byte(at + 2) & 0x3f) << 6 | (byte(at + 3) & 0x3f),
      4};
}

/// The start of the code point that ends at `end` (not 0) in text that is known to be UTF-8.
inline std::size_t previous_code_point(std::string_view text, std::size_t end) {
  do --end;
  while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80);
  return end;
}

void append_utf8(char32_t code_point, std::string& out);

/// Where text stops being UTF-8 (Unicode 16.0, table 3-7): the offset of the first byte of the first sequence
/// that is overlong, a surrogate, above U+10FFFF, cut short or no sequence at all. Nothing when all is well.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

}  // namespace assay::text
