#include "cli/table.hpp"

#include <algorithm>

#include <utf8proc.h>

#include "base/utf8.hpp"

namespace assay::cli {
namespace {

struct Character {
  std::string_view bytes;
  std::size_t columns;
  bool control;
};

/// The first character of non-empty text.
Character first_character(std::string_view text) {
  utf8proc_int32_t code = -1;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &code);
  if (length <= 0) return {text.substr(0, 1), 1, false};
  const auto category = utf8proc_category(code);
  // Cf holds the marks that reorder text (U+202E and its kin) but also the joiner inside emoji.
  constexpr utf8proc_int32_t kZeroWidthJoiner = 0x200D;
  const bool control = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_ZL ||
                       category == UTF8PROC_CATEGORY_ZP ||
                       (category == UTF8PROC_CATEGORY_CF && code != kZeroWidthJoiner);
  const int columns = control ? 1 : std::max(utf8proc_charwidth(code), 0);
  return {text.substr(0, static_cast<std::size_t>(length)), static_cast<std::size_t>(columns), control};
}

}  // namespace

std::size_t display_width(std::string_view utf8) {
  std::size_t width = 0;
  while (!utf8.empty()) {
    const Character c = first_character(utf8);
    width += c.columns;
    utf8.remove_prefix(c.bytes.size());
  }
  return width;
}

std::string fit(std::string_view utf8, std::size_t columns) {
  std::string line;
  std::size_t width = 0;
  std::size_t cut = 0;  // bytes of `line` that leave room for the ellipsis
  while (!utf8.empty()) {
    const Character c = first_character(utf8);
    if (width + c.columns > columns) return line.substr(0, cut) + "…";
    if (c.control) {
      line += ' ';
    } else {
      line += c.bytes;
    }
    width += c.columns;
    if (width < columns) cut = line.size();
    utf8.remove_prefix(c.bytes.size());
  }
  return line;
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(printable(row[i])));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = printable(row[i]);
      line += cell;
      if (i + 1 < row.size()) line.append(widths[i] - display_width(cell) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace assay::cli
