#include "base/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace assay {
namespace {

bool is_continuation(unsigned char byte) {
  return (byte & 0xc0) == 0x80;
}

/// The length of the well-formed sequence at the start of `bytes`, 0 where there is none.
std::size_t sequence_length(std::span<const unsigned char> bytes) {
  const unsigned char lead = bytes[0];
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(bytes[i])) return 0;
  }
  const unsigned char second = bytes[1];
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second > 0x9f;
  const bool beyond = lead == 0xf4 && second > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

/// What a terminal acts on or reorders by instead of showing it: C0 and C1 controls, the line and paragraph
/// separators, and the marks that set the direction of text (Unicode 16.0, PropList.txt, Bidi_Control).
bool steers_a_terminal(char32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool direction = c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                         (c >= 0x2066 && c <= 0x2069);
  return control || direction || c == 0x2028 || c == 0x2029;
}

}  // namespace

void append_utf8(char32_t c, std::string& out) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  const std::span bytes(reinterpret_cast<const unsigned char*>(text.data()), text.size());
  std::size_t at = 0;
  while (at < bytes.size()) {
    std::uint64_t eight = 0;
    while (at + sizeof eight <= bytes.size()) {
      std::memcpy(&eight, &bytes[at], sizeof eight);
      if ((eight & 0x8080808080808080u) != 0) break;
      at += sizeof eight;
    }
    if (at == bytes.size()) break;
    const std::size_t length = sequence_length(bytes.subspan(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length =
        sequence_length(std::span(reinterpret_cast<const unsigned char*>(text.data()), text.size()));
    const std::string_view shown = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || steers_a_terminal(decode_utf8(text, 0).value)) {
      for (const char byte : shown) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    } else {
      out += shown;
    }
    text.remove_prefix(shown.size());
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 48;
  std::string out = "\"";
  for (const char c : text.substr(0, kShown)) {
    if (c == '"' || c == '\\') {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  return printable(out) + (text.size() > kShown ? "…\"" : "\"");
}

}  // namespace assay
