#pragma once

#include <cstdint>
#include <vector>

#include "base/utf8.hpp"

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

}  // namespace assay::text
