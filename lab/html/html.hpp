#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The look that the lab's pages share: one file each, no network, light and dark, desk and phone. What is
/// called HTML below is put into a page as it is; text from anywhere else goes through `escaped` first.
namespace assay::lab::html {

/// Text as HTML text or attribute value. Control characters other than tab and line feed, which HTML has no
/// place for, become U+FFFD.
std::string escaped(std::string_view text);

/// JSON text such that it may stand inside a <script> element: no `<` in it (inside strings, the only place
/// where JSON has one, it becomes \u003c).
std::string script_safe(std::string_view json);

struct Page {
  std::string title;                   ///< text
  std::string style = {};              ///< CSS, after the shared sheet
  std::string body = {};               ///< HTML
  std::vector<std::string> scripts{};  ///< JavaScript, each an element of its own after the body
};

/// The document. Its content security policy allows its own scripts by their hashes and no other, its own
/// styles, and no request to anywhere: should a string escape unescaped, nothing runs and nothing leaves.
std::string document(const Page& page);

/// A verdict as a chip: a sign, the word, and a colour that the two do not need.
std::string verdict(std::string_view word);

struct Column {
  std::string name;  ///< text
  bool number = false;
  std::string html = {};  ///< instead of the name, such as an axis; then the name is for screen readers alone
};

struct Row {
  std::vector<std::string> cells;  ///< HTML, one a column; the first is the row's heading
  std::string style = {};          ///< class, such as "quiet"
};

struct Table {
  std::string caption;  ///< text; also the name of the scrolling region
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// A table that scrolls in itself where the page is narrow, by keyboard too.
std::string table(const Table& table);

/// Ratios of times on one logarithmic axis that holds 1 and all of them.
class RatioAxis {
 public:
  void include(double ratio);  ///< above 0
  double percent(double ratio) const;
  /// The axis with its ticks, as the head of a column of `ratio_plot`s.
  std::string ticks() const;

 private:
  double low_ = 0.9;
  double high_ = 1.25;
};

/// A dot with its interval as a line; places in percent of a track.
std::string interval_plot(double low, double middle, double high);

/// A ratio as a dot with its interval as a line, and a dashed line at 1. Where there is doubt the dot is
/// hollow.
std::string ratio_plot(const RatioAxis& axis, double ratio, double low, double high, bool doubt);

}  // namespace assay::lab::html
