#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

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

/// `text` with control characters and bytes that are no UTF-8 as \x…: what comes from a file can then neither
/// steer a terminal nor end a formatting library that trusts its input.
std::string printable(std::string_view text);

/// `text` for a message: in quotes, cut to a readable length, printable, quotes and backslashes escaped.
std::string in_quotes(std::string_view text);

}  // namespace assay
