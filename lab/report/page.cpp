#include <string>
#include <vector>

#include <fmt/format.h>

#include "lab/embedded.hpp"
#include "lab/html/html.hpp"
#include "lab/report/page_parts.hpp"
#include "lab/report/report.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;
using page::Section;

constexpr std::string_view kHowToRead = R"(<dl>
<dt>gate</dt><dd>A rule, frozen as a file, that compares a run with an oracle's recorded answers. PASS: every
threshold is met, and every red arm, a run that is wrong on purpose, fails it (RED).</dd>
<dt>window</dt><dd>One stretch of timing under the machine-wide lock. Times compare only inside one window, and a
contended window is no evidence.</dd>
<dt>ratio</dt><dd>The other form's median time over this form's: above 1 this form is faster. In brackets a
bootstrap interval of the ratio at the window's confidence. Plots of ratios have one logarithmic axis; the dashed
line is 1, a hollow dot is in doubt.</dd>
<dt>faster</dt><dd>The window's whole rule holds: the interval leaves 1 out, enough pairs were won, the ratio is
enough, and every process agrees. Anything less is inconclusive.</dd>
<dt>p10, p90</dt><dd>A tenth of the samples lies below the one, a tenth above the other. Whiskers in plots reach
from p10 to p90.</dd>
<dt>plots</dt><dd>Drag across a plot to enlarge a range, double-click for the whole. The names above it hide and
show its series.</dd>
</dl>
)";

std::string html_of(const Section& section) {
  return fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-heading\">\n<h2 id=\"{0}-heading\">{1}</h2>\n{2}{3}"
      "</section>\n",
      section.id, html::escaped(section.heading),
      section.intro.empty() ? "" : fmt::format("<p>{}</p>\n", section.intro), section.body);
}

Section reading_section(const Json& report) {
  std::string left_out;
  for (const Json& item : report["left_out"]) left_out += fmt::format("<li>{}</li>\n", page::text(item));
  return {.id = "reading",
          .heading = "How to read this",
          .intro = page::text(report["what"]),
          .body = fmt::format("{}<h3>Left out here, and kept in the receipts</h3>\n<ul>\n{}</ul>\n",
                              kHowToRead, left_out)};
}

std::vector<Section> sections_of(const Json& report, page::Plots& plots) {
  return {{.id = "summary", .heading = "Summary", .intro = {}, .body = page::summary(report)},
          page::forms_section(report),
          page::gates_section(report),
          page::windows_section(report, plots),
          page::call_cost_section(report, plots),
          page::footprint_section(report),
          page::growth_section(report, plots),
          page::profile_section(report),
          page::ceilings_section(report),
          page::experiments_section(report),
          page::selection_section(report),
          page::refused_section(report),
          page::sources_section(report),
          reading_section(report)};
}

std::string title_of(const Json& report) {
  std::string models;
  for (const Json& model : report["about"]["models"]) {
    models += (models.empty() ? "" : ", ") + model["name"].get<std::string>();
  }
  return "Laboratory report: " + models;
}

}  // namespace

std::string report_page(const Json& report) {
  page::Plots plots;
  std::string links;
  std::string body;
  for (const Section& section : sections_of(report, plots)) {
    if (section.body.empty()) continue;
    links += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section.id, html::escaped(section.heading));
    body += html_of(section);
  }
  return html::document(
      {.title = title_of(report),
       .style = fmt::format("{}\n{}", embedded::kPlotStyle, embedded::kReportStyle),
       .body =
           fmt::format("<a class=\"skip\" href=\"#summary\">To the summary</a>\n<header>{}</header>\n"
                       "<div class=\"layout\">\n<nav aria-label=\"Sections\"><ul>\n{}</ul></nav>\n<main>\n{}"
                       "</main>\n</div>\n{}",
                       page::header(report), links, body, plots.data()),
       .scripts = {fmt::format("/*\n{}*/\n{}", embedded::kPlotLicence, embedded::kPlotScript),
                   std::string(embedded::kReportScript)}});
}

}  // namespace assay::lab
