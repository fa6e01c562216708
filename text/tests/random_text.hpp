#pragma once

#include <random>
#include <string>

#include "text/unicode.hpp"

namespace assay::text {

/// Deterministic texts that mix everything a tokenizer may meet.
class RandomText {
 public:
  explicit RandomText(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return random_() % limit; }

  char32_t code_point() {
    switch (below(12)) {
      case 0:
        return U"\r\n\t \u0085\u00a0\u180e\u2028\u3000\u200b"[below(10)];
      case 1:
        return static_cast<char32_t>(0x300 + below(0x70));
      case 2:
        return static_cast<char32_t>('0' + below(10));
      case 3:
        return U"'sStTrReEvVmMlLdD\u017f\u212a"[below(20)];
      case 4:
        return static_cast<char32_t>(0x4e00 + below(0x5200));
      case 5:
        return static_cast<char32_t>(below(0x3000));
      case 6:
        return static_cast<char32_t>(0x1f300 + below(0x300));
      case 7:
        return static_cast<char32_t>(0x10000 + below(0x10000));
      case 8: {
        const auto any = static_cast<char32_t>(below(0x110000));
        return any >= 0xd800 && any < 0xe000 ? U'\ufffd' : any;
      }
      case 9:
        return U' ';
      default:
        return static_cast<char32_t>(0x20 + below(0x5f));
    }
  }

  std::string text(std::size_t max_code_points) {
    std::string out;
    const std::size_t count = below(max_code_points + 1);
    for (std::size_t i = 0; i < count; ++i) {
      const char32_t c = code_point();
      const std::size_t times = below(8) == 0 ? 1 + below(6) : 1;
      for (std::size_t k = 0; k < times; ++k) append_utf8(c, out);
    }
    return out;
  }

 private:
  std::mt19937 random_;
};

}  // namespace assay::text
