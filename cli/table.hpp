#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

/// Columns that UTF-8 text takes on a terminal (utf8proc's character widths: 2 for East Asian wide, 0 for
/// combining marks). Bytes that are no UTF-8 count one each.
std::size_t display_width(std::string_view utf8);

/// The text on one line, at most `columns` wide, "…" at its end where it was cut. Control characters become
/// spaces, so that text from a request can move no cursor.
std::string fit(std::string_view utf8, std::size_t columns);

/// Rows as left-aligned columns two spaces apart, each as wide as its widest cell. All rows have as many
/// cells as the first.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace assay::cli
