#include "text/unicode.hpp"

#include <cstring>

namespace assay::text {
namespace {

#include "text/unicode_ranges.inc"

// White_Space, and what else is Alphabetic or Join_Control without being a letter, mark or number
// (PropList.txt, Unicode 16.0).
constexpr CodePointRange kWhiteSpace[] = {
    {0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
};
constexpr CodePointRange kOtherWord[] = {
    {0x200c, 0x200d}, {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189},
};

constexpr char32_t kCodePointLimit = 0x110000;

void set_bits(std::vector<std::uint8_t>& table, std::span<const CodePointRange> ranges, int bits) {
  for (const auto [first, last] : ranges) {
    for (char32_t c = first; c <= last; ++c) table[c] = static_cast<std::uint8_t>(table[c] | bits);
  }
}

std::vector<std::uint8_t> make_classes() {
  std::vector<std::uint8_t> table(kCodePointLimit);
  set_bits(table, kLetter, class_letter | class_word);
  set_bits(table, kMark, class_mark | class_word);
  set_bits(table, kDecimalNumber, class_number | class_word);
  set_bits(table, kLetterNumber, class_number | class_word);
  set_bits(table, kOtherNumber, class_number);
  set_bits(table, kConnectorPunctuation, class_word);
  set_bits(table, kOtherWord, class_word);
  set_bits(table, kWhiteSpace, class_space);
  table['\r'] |= class_newline;
  table['\n'] |= class_newline;
  return table;
}

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

}  // namespace

const std::uint8_t* code_point_classes() {
  static const std::vector<std::uint8_t> table = make_classes();
  return table.data();
}

std::vector<CodePointRange> ranges_of(CodePointClass one_class) {
  const std::uint8_t* classes = code_point_classes();
  std::vector<CodePointRange> ranges;
  for (char32_t c = 0; c < kCodePointLimit; ++c) {
    if ((classes[c] & one_class) == 0) continue;
    if (ranges.empty() || ranges.back().last + 1 != c) ranges.push_back({c, c});
    ranges.back().last = c;
  }
  return ranges;
}

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

}  // namespace assay::text
