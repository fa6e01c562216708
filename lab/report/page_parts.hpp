#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/html/html.hpp"

/// What the page's sections are put together from. Everything returned is HTML.
namespace assay::lab::page {

using Json = nlohmann::ordered_json;

inline constexpr double kMebibyte = 1024.0 * 1024.0;

std::string text(const Json& value);    ///< a string, escaped; "–" for null
std::string code(const Json& value);    ///< likewise, in a monospaced face
std::string number(const Json& value);  ///< four significant digits
std::string measure(
    const Json& value);  ///< a number, a word, yes or no; what JSON has no number for as it is
std::string mebibytes(const Json& bytes);      ///< "12.3"
std::string milliseconds(double value);        ///< as many digits as tell something
std::string wrapped(const std::string& html);  ///< a cell that may break its lines
std::string narrow(const std::string& html);   ///< likewise, where columns are many
std::string hash(const Json& sha256);          ///< its first digits, a link to the file under Sources
std::string words(std::string_view name);      ///< "max |Δp|" of "max_abs_dp", else blanks for underscores

/// What people call the model of a receipt.
std::string model_name(const Json& report, const Json& key);

/// "1.20× [1.15, 1.25]"
std::string ratio(double ratio, const Json& interval);

/// The axis of all rows that have a "ratio" with an "interval", and the plot of one.
html::RatioAxis ratio_axis(const Json& rows);
std::string ratio_plot(const html::RatioAxis& axis, const Json& row, bool doubt);

/// "faster" … with what the window lacks: a verdict of a contended window is none.
std::string verdict_in(bool clean, const std::string& verdict, bool suspicious);

std::string fold(const std::string& summary, const std::string& body, bool open = false);

/// One entry of a navigation and the section it leads to; a section without a body is left out.
struct Section {
  std::string id;
  std::string heading;
  std::string intro;
  std::string body;
};

/// What a figure shows; each series has points, a line or both, over one x.
class Plots {
 public:
  struct Series {
    std::string label;
    Json points = nullptr;  ///< {"x", "y", "low"?, "high"?}
    Json line = nullptr;    ///< {"x", "y"}
  };

  /// `about` says in words what can be seen, for those who do not see it. `zero`: the y axis begins there.
  std::string figure(const std::string& caption, const std::string& about, const std::string& x,
                     const std::string& y, const std::vector<Series>& series, bool zero);

  /// All figures as data for the page's script.
  std::string data() const;

 private:
  Json plots_ = Json::array();
};

Section forms_section(const Json& report);
Section gates_section(const Json& report);
Section windows_section(const Json& report, Plots& plots);
Section call_cost_section(const Json& report, Plots& plots);
Section footprint_section(const Json& report);
Section growth_section(const Json& report, Plots& plots);
Section profile_section(const Json& report);
Section ceilings_section(const Json& report);
Section experiments_section(const Json& report);
Section selection_section(const Json& report);
Section refused_section(const Json& report);
Section sources_section(const Json& report);

std::string header(const Json& report);
std::string summary(const Json& report);

}  // namespace assay::lab::page
