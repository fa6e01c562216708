#include <string>
#include <string_view>

#include <fmt/format.h>

#include "lab/gate/sweep.hpp"
#include "lab/receipt/machine.hpp"

namespace assay::lab {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1c2024; --paper: #fdfdfc; --line: #d9d9d6; --quiet: #66696d;
        --good: #17683a; --bad: #b3261e; --head: #f3f3f0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e3; --paper: #17191b; --line: #36393c; --quiet: #9da1a6; --good: #6fcf97; --bad: #ff8a80;
          --head: #1f2225; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem;
       color: var(--ink); background: var(--paper); }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { text-align: left; padding: 0.3rem 0.7rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { background: var(--head); position: sticky; top: 0; }
.PASS { color: var(--good); font-weight: 600; } .FAIL { color: var(--bad); font-weight: 600; }
.not-run { color: var(--quiet); } dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; } code { font-size: 0.85rem; }
li { overflow-wrap: anywhere; }
)";

constexpr std::size_t kResultColumn = 4;

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string table_html(const SweepTable& table) {
  std::string html =
      fmt::format("<h2>Comparator: {}</h2>\n<div class=\"scroll\"><table>\n", table.comparator);
  for (std::size_t i = 0; i < table.cells.size(); ++i) {
    const auto& line = table.cells[i];
    const std::string& result = line[kResultColumn];
    html += result == "not run" ? "<tr class=\"not-run\">" : "<tr>";
    for (std::size_t j = 0; j < line.size(); ++j) {
      const bool verdict = i > 0 && j == kResultColumn && result != "not run";
      html += fmt::format("<{0}{1}>{2}</{0}>", i == 0 ? "th" : "td",
                          verdict ? fmt::format(" class=\"{}\"", result) : "", escaped(line[j]));
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string failures_html(const SweepReport& report) {
  std::string html;
  for (const SweepRow& row : report.rows) {
    if (!row.report) continue;
    for (const std::string& failure : row.report->verdict.failures) {
      html += fmt::format("<li>{} {} {} {}: {}</li>\n", escaped(row.gate), escaped(row.fixture),
                          row.precision, escaped(row.form), escaped(failure));
    }
  }
  return html.empty() ? html : "<h2>What was not met</h2>\n<ul>\n" + html + "</ul>\n";
}

std::string sources_html(const SweepReport& report) {
  std::string html = "<h2>Sources</h2>\n<dl>\n";
  const auto subject = receipt_subject(report);
  for (const auto& gate : subject["gates"]) {
    html += fmt::format("<dt>gate {}</dt><dd><code>{}</code></dd>\n",
                        escaped(gate["name"].get<std::string>()), gate["sha256"].get<std::string>());
  }
  for (const auto& fixture : subject["fixtures"]) {
    html += fmt::format("<dt>{}</dt><dd><code>{}</code><br>model <code>{}</code></dd>\n",
                        escaped(fixture["fixture"].get<std::string>()),
                        fixture["fixture_sha256"].get<std::string>(),
                        fixture["model_identity"].get<std::string>());
  }
  return html + "</dl>\n";
}

}  // namespace

std::string to_html(const SweepReport& report) {
  const auto result = receipt_result(report);
  const Machine machine = this_machine();
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>Gate sweep: {0}</title>\n"
      "<style>{1}</style>\n</head>\n<body>\n<h1>Gate sweep: <span class=\"{0}\">{0}</span></h1>\n"
      "<p>{2} passed, {3} failed, {4} not run, on {5} ({6} cores). A row passes when its run meets every "
      "threshold and the gate fails each run that is wrong on purpose (the red arms).</p>\n",
      report.pass() ? "PASS" : "FAIL", kStyle, result["passed"].get<std::size_t>(),
      result["failed"].get<std::size_t>(), result["not_run"].get<std::size_t>(), escaped(machine.processor),
      machine.cores);
  for (const SweepTable& table : tables(report)) html += table_html(table);
  return html + failures_html(report) + sources_html(report) + "</body>\n</html>\n";
}

}  // namespace assay::lab
