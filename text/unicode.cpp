#include "text/unicode.hpp"

#include <span>

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

}  // namespace assay::text
