#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "text/split_pattern.hpp"
#include "text/unicode.hpp"

namespace assay::text {
namespace {

constexpr std::size_t kMaxPatternBytes = 1024;

/// The inside of a bracket expression that holds the class.
std::string members_of(CodePointClass one_class) {
  std::string members;
  for (const auto [first, last] : ranges_of(one_class)) {
    members += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", std::uint32_t{first}, std::uint32_t{last});
  }
  return members;
}

/// Rewrites the common ground of the two dialects and refuses the rest, construct by construct. Sources:
/// Oniguruma's doc/RE (syntax Oniguruma) and pcre2pattern(3).
class Translation {
 public:
  Translation(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string run() {
    if (pattern_.empty()) refuse("an empty pattern");
    if (pattern_.size() > kMaxPatternBytes) refuse(fmt::format("a pattern of {} bytes", pattern_.size()));
    if (find_invalid_utf8(pattern_)) refuse("a pattern that is not UTF-8");
    while (at_ < pattern_.size()) outside();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string found) const {
    throw Error(
        ErrorKind::unsupported,
        {.where = where_,
         .found = fmt::format("{} at byte {} of the pattern", found, at_),
         .expected =
             "the split pattern of a Qwen tokenizer: groups (?: (?i: (?= (?!, brackets, \\p{L} \\p{M} "
             "\\p{N} \\s \\S \\r \\n \\t, repeats"});
  }

  bool starts(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  void keep(std::size_t bytes) {
    out_ += pattern_.substr(at_, bytes);
    at_ += bytes;
  }

  void outside() {
    const char c = pattern_[at_];
    if (std::string_view("?*+{").find(c) != std::string_view::npos) return repeat();
    repeats_ = 0;
    switch (c) {
      case '\\':
        return escape(false);
      case '[':
        return bracket();
      case '(':
        return group();
      case '.':
      case '^':
      case '$':
        refuse(fmt::format("'{}'", c));
      case ')':
        caseless_ = false;
        break;
      default:
        break;
    }
    check_caseless();
    keep(1);
  }

  void group() {
    if (caseless_) refuse("a group within (?i:");
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?i:"}) {
      if (!starts(opening)) continue;
      caseless_ = opening == "(?i:";
      return keep(opening.size());
    }
    refuse("a group of another kind");
  }

  // Full case folding makes one code point of these pairs (ß, ﬀ, ﬁ, ﬂ, ﬆ): Oniguruma follows it, PCRE2 does
  // not. And neither needs to agree on what folds to a code point outside ASCII.
  void check_caseless() const {
    if (!caseless_) return;
    if ((static_cast<unsigned char>(pattern_[at_]) & 0x80) != 0)
      refuse("a code point outside ASCII within (?i:");
    std::string pair(pattern_.substr(at_, 2));
    for (char& c : pair) c = static_cast<char>(c | 0x20);
    constexpr std::array kFolded = {"ss", "ff", "fi", "fl", "st"};
    if (std::find(kFolded.begin(), kFolded.end(), pair) != kFolded.end()) refuse("letters that fold to one");
  }

  // x?+ x*+ x++ are possessive in both; behind {…} a sign means other things.
  void repeat() {
    if (++repeats_ > 2) refuse("a repeat of a repeat");
    if (pattern_[at_] != '{') return keep(1);
    if (repeats_ > 1) refuse("a repeat of a repeat");
    repeats_ = 2;
    const std::size_t end = pattern_.find('}', at_);
    const std::string_view inside =
        pattern_.substr(at_ + 1, end == std::string_view::npos ? 0 : end - at_ - 1);
    const bool plain = !inside.empty() && inside.front() != ',' && inside.size() <= 7 &&
                       std::all_of(inside.begin(), inside.end(),
                                   [](char c) { return (c >= '0' && c <= '9') || c == ','; }) &&
                       std::count(inside.begin(), inside.end(), ',') <= 1;
    if (!plain) refuse("a repeat of another kind");
    keep(inside.size() + 2);
  }

  void escape(bool in_bracket) {
    for (const auto& [name, one_class] : {std::pair{std::string_view("\\p{L}"), class_letter},
                                          {"\\p{M}", class_mark},
                                          {"\\p{N}", class_number},
                                          {"\\s", class_space}}) {
      if (!starts(name)) continue;
      if (caseless_) refuse("a class within (?i:");
      if (in_bracket && pattern_[at_ - 1] == '-') refuse("a range to a class");
      out_ += in_bracket ? members_of(one_class) : "[" + members_of(one_class) + "]";
      at_ += name.size();
      if (in_bracket && starts("-")) refuse("a range from a class");
      return;
    }
    if (starts("\\S") && !in_bracket && !caseless_) {
      out_ += "[^" + members_of(class_space) + "]";
      at_ += 2;
      return;
    }
    const char next = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    if (std::string_view("rnt\\'.^$|?*+()[]{}-/").find(next) == std::string_view::npos) {
      refuse("an escape of another kind");
    }
    keep(2);
  }

  void bracket() {
    if (caseless_) refuse("a class within (?i:");
    keep(1);
    if (starts("^")) keep(1);
    if (starts("]")) refuse("']' at the start of brackets");
    while (!starts("]")) {
      if (at_ == pattern_.size()) refuse("brackets left open");
      if (starts("[") || starts("&&")) refuse("brackets within brackets");
      if (starts("\\")) {
        escape(true);
      } else {
        keep(1);
      }
    }
    keep(1);
  }

  std::string_view pattern_;
  const std::string& where_;
  std::string out_;
  std::size_t at_ = 0;
  int repeats_ = 0;
  bool caseless_ = false;
};

}  // namespace

std::string translate_split_pattern(std::string_view pattern, const std::string& where) {
  return Translation(pattern, where).run();
}

}  // namespace assay::text
