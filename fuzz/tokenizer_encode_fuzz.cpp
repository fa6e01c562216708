// Text from a caller: whatever the bytes, ids that decode to its NFC, or an Error exactly where it is not
// UTF-8; and the hand-written scanners cut it where PCRE2 does.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "text/nfc.hpp"
#include "text/split_pattern.hpp"
#include "text/tokenizer.hpp"
#include "text/unicode.hpp"
#include "text/vocabulary.hpp"

namespace {

using namespace assay::text;

void check(bool holds) {
  if (!holds) std::abort();
}

// Every byte, some merges that words and runs of spaces hit, and added tokens that leave the text as it is.
Tokenizer small_tokenizer() {
  TokenizerParts parts;
  const auto add = [&](const std::string& text) {
    parts.vocabulary.emplace_back(text, static_cast<std::int32_t>(parts.vocabulary.size()));
  };
  for (const char32_t stand_in : byte_level_alphabet()) {
    std::string text;
    assay::append_utf8(stand_in, text);
    add(text);
  }
  const std::pair<const char*, const char*> merges[] = {{"Ġ", "Ġ"}, {"ĠĠ", "ĠĠ"}, {"a", "a"},   {"aa", "a"},
                                                        {"t", "h"}, {"th", "e"},  {"Ġ", "the"}, {"Ã", "©"},
                                                        {"Ċ", "Ċ"}, {"ĊĊ", "Ċ"},  {"Ì", "ģ"},   {"e", "a"}};
  for (const auto& [left, right] : merges) {
    parts.merges.emplace_back(left, right);
    add(std::string(left) + right);
  }
  parts.added = {{.content = "<|x|>", .id = 500},
                 {.content = "<|", .id = 501},
                 {.content = "word", .id = 502, .single_word = true}};
  parts.split_pattern = kQwen2SplitPattern;
  return Tokenizer::from_parts(std::move(parts), "fuzz");
}

struct Scanner {
  explicit Scanner(std::string_view pattern)
      : scanner(make_split_pattern(pattern, "fuzz")),
        regex(make_regex_split_pattern(pattern, "fuzz")),
        scanner_cursor(scanner->cursor()),
        regex_cursor(regex->cursor()) {}

  void compare(std::string_view text) const {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = scanner_cursor->end_of_piece(text, begin);
      check(end > begin && end == regex_cursor->end_of_piece(text, begin));
      begin = end;
    }
  }

  std::unique_ptr<const SplitPattern> scanner;
  std::unique_ptr<const SplitPattern> regex;
  std::unique_ptr<SplitCursor> scanner_cursor;
  std::unique_ptr<SplitCursor> regex_cursor;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tokenizer tokenizer = small_tokenizer();
  static const Scanner qwen2(kQwen2SplitPattern);
  static const Scanner qwen35(kQwen35SplitPattern);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool is_utf8 = !assay::find_invalid_utf8(text);
  try {
    const auto ids = tokenizer.encode(text);
    check(is_utf8);
    std::string buffer;
    // An added token parts the text for NFC, so only its NFC is sure to be the text's.
    const std::string decoded = tokenizer.decode(ids);
    check(std::string(to_nfc(decoded, buffer)) == std::string(to_nfc(text, buffer)));
  } catch (const assay::Error& error) {
    check(!is_utf8);
  }
  if (!is_utf8) return 0;
  qwen2.compare(text);
  qwen35.compare(text);
  return 0;
}
