#include <string>
#include <utility>

#include <fmt/format.h>

#include "lab/gate/sweep.hpp"
#include "lab/html/html.hpp"
#include "lab/receipt/machine.hpp"

namespace assay::lab {
namespace {

using html::escaped;

constexpr std::size_t kResultColumn = 4;

std::string table_html(const SweepTable& sweep) {
  html::Table table{.caption = "Comparator: " + sweep.comparator, .columns = {}, .rows = {}};
  for (const std::string& name : sweep.cells.front()) table.columns.push_back({.name = name});
  for (auto line = sweep.cells.begin() + 1; line != sweep.cells.end(); ++line) {
    html::Row row{.cells = {}, .style = (*line)[kResultColumn] == "not run" ? "quiet" : ""};
    for (std::size_t i = 0; i < line->size(); ++i) {
      row.cells.push_back(i == kResultColumn ? html::verdict((*line)[i]) : escaped((*line)[i]));
    }
    table.rows.push_back(std::move(row));
  }
  return fmt::format("<h2>{}</h2>\n", escaped(table.caption)) + html::table(table);
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
  const std::string verdict = !report.whole() ? "INCOMPLETE" : report.pass() ? "PASS" : "FAIL";
  std::string body = fmt::format(
      "<h1>Gate sweep {}</h1>\n<p>{} passed, {} failed, {} not run, on {} ({} cores). A row passes when its "
      "run "
      "meets every threshold and the gate fails each run that is wrong on purpose (the red arms).</p>\n",
      html::verdict(verdict), result["passed"].get<std::size_t>(), result["failed"].get<std::size_t>(),
      result["not_run"].get<std::size_t>(), escaped(machine.processor), machine.cores);
  if (!report.whole()) body += "<p>The sweep was cut short: " + rows_done(report) + ".</p>\n";
  for (const SweepTable& table : tables(report)) body += table_html(table);
  return html::document(
      {.title = "Gate sweep: " + verdict,
       .body = "<main>\n" + body + failures_html(report) + sources_html(report) + "</main>\n"});
}

}  // namespace assay::lab
