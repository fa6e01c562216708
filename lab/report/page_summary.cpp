#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lab/report/page_parts.hpp"

namespace assay::lab::page {
namespace {

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

std::string tile(const std::string& heading, const std::string& figure, const std::string& note) {
  return fmt::format(
      "<div class=\"tile\"><h3>{}</h3><p class=\"figure\">{}</p><p class=\"small quiet\">{}</p></div>\n",
      html::escaped(heading), figure, note);
}

std::string gates_tile(const Json& gates) {
  const auto failed = gates["failed"].get<std::size_t>();
  return tile("Gates passed",
              fmt::format("{} of {}", gates["passed"].get<std::size_t>(),
                          gates["passed"].get<std::size_t>() + failed),
              fmt::format("{} failed, {} not run", failed, gates["not_run"].get<std::size_t>()));
}

std::string windows_tile(const Json& windows) {
  const auto clean = windows["clean"].get<std::size_t>();
  const auto contended = windows["contended"].get<std::size_t>();
  return tile("Clean windows", fmt::format("{} of {}", clean, clean + contended),
              contended == 0 ? "none contended" : fmt::format("{} contended, no evidence", contended));
}

std::string growth_tile(const Json& report) {
  if (report["growth"].empty()) return "";
  const Json& last = report["growth"].back();
  return tile("While lengths change", text(last["verdict"]),
              fmt::format("{:.0f} bytes a call [{:.0f}, {:.0f}]; {}",
                          last["slope_bytes_per_call"].get<double>(), last["interval"]["low"].get<double>(),
                          last["interval"]["high"].get<double>(), model_name(report, last["model"])));
}

std::string footprint_tile(const Json& report) {
  if (report["footprint"].empty()) return "";
  const Json& last = report["footprint"].back();
  return tile("Peak memory", mebibytes(last["peak"]) + " MiB",
              fmt::format("{}, {}, calls to {} tokens", model_name(report, last["model"]),
                          text(last["precision"]), last["tokens"].get<std::size_t>()));
}

std::string call_cost_tile(const Json& report) {
  if (report["call_cost"].empty()) return "";
  const Json& last = report["call_cost"].back();
  const Json& line = last["curves"][0]["fit"]["line"];
  return tile("A token costs", fmt::format("{:.3g} ms", line["b"].get<double>()),
              fmt::format("and a call {:.3g} ms; {}, {}", line["a"].get<double>(),
                          model_name(report, last["model"]), text(last["precision"])));
}

std::string experiments_tile(const Json& experiments) {
  std::size_t count = 0;
  std::vector<std::string> parts;
  for (auto it = experiments.begin(); it != experiments.end(); ++it) {
    count += it->get<std::size_t>();
    parts.push_back(fmt::format("{} {}", it->dump(), html::escaped(it.key())));
  }
  return count == 0 ? ""
                    : tile("Experiments", std::to_string(count), fmt::format("{}", fmt::join(parts, ", ")));
}

std::string receipts_tile(const Json& receipts) {
  return tile("Receipts used", receipts["used"].dump(),
              fmt::format("<a href=\"#refused\">{} refused</a>", receipts["refused"].dump()));
}

std::string attention_list(const Json& attention) {
  if (attention.empty()) return "<p>Nothing failed, and nothing was refused.</p>\n";
  std::string items;
  for (const Json& item : attention) {
    items += fmt::format("<li class=\"{}\"><a href=\"#{}\">{}</a></li>\n", text(item["tone"]),
                         text(item["section"]), text(item["text"]));
  }
  return "<ul class=\"attention\">\n" + items + "</ul>\n";
}

bool shown_faster(const Json& row, const Json& pair) {
  return row["clean"].get<bool>() && pair["verdict"] == "faster" && !pair["suspicious"].get<bool>();
}

std::string remarks(const Json& row) {
  std::string html;
  if (row["baseline"].is_object()) {
    const Json& baseline = row["baseline"];
    html = fmt::format("{} over {} {}", ratio(baseline["ratio"].get<double>(), baseline["interval"]),
                       code(baseline["form"]),
                       verdict_in(row["clean"].get<bool>(), baseline["verdict"].get<std::string>(),
                                  baseline["suspicious"].get<bool>()));
  }
  for (const Json& form : row["unadmitted"]) {
    html += fmt::format("{}{}{}: {}", html.empty() ? "" : "; ", code(form["form"]),
                        row["form"].is_null() ? "" : " has a lesser median",
                        form["gates"] == "FAIL" ? "its gate failed" : "no gate speaks for it");
  }
  return html;
}

/// Hashes cut to what people compare by eye.
std::string shortened(const std::string& html) {
  constexpr std::size_t kHash = 40;
  constexpr std::size_t kKept = 12;
  std::string result;
  for (std::size_t i = 0; i < html.size();) {
    const std::size_t end = std::min(html.find_first_not_of("0123456789abcdef", i), html.size());
    result += html.substr(i, end - i >= kHash ? kKept : end - i);
    if (end < html.size()) result.push_back(html[end]);
    i = end + 1;
  }
  return result;
}

html::Row fastest_row(const Json& row, const html::RatioAxis& axis) {
  const bool clean = row["clean"].get<bool>();
  const Json& next = row["next"];
  const bool measured = next.is_object();
  html::Row cells{
      .cells = {fmt::format("{}<br><a class=\"small\" href=\"#w-{}\">{}</a>", text(row["item"]),
                            text(row["receipt"]), text(row["window"])),
                code(row["form"]), row["gates"].is_null() ? "–" : html::verdict(text(row["gates"]))},
      .style = clean ? "" : "quiet"};
  if (measured) {
    cells.cells.push_back(code(next["form"]));
    cells.cells.push_back(ratio(next["ratio"].get<double>(), next["interval"]));
    cells.cells.push_back(ratio_plot(axis, next, !shown_faster(row, next)));
    cells.cells.push_back(fmt::format("{}/{}", next["wins"].dump(), next["pairs"].dump()));
    cells.cells.push_back(
        verdict_in(clean, next["verdict"].get<std::string>(), next["suspicious"].get<bool>()));
  } else {
    cells.cells.resize(cells.cells.size() + 5, "–");
  }
  cells.cells.push_back(narrow(remarks(row)));
  return cells;
}

std::string fastest_table(const Json& rows) {
  if (rows.empty()) return "<p>No window that a form could win is among the receipts.</p>\n";
  Json compared = Json::array();
  for (const Json& row : rows) {
    if (row["next"].is_object()) compared.push_back(row["next"]);
  }
  const html::RatioAxis axis = ratio_axis(compared);
  html::Table table{.caption = "Fastest forms whose gates passed, by item",
                    .columns = {{"Item, window"},
                                {"Fastest form"},
                                {"Gates"},
                                {"Next best"},
                                {"Times as fast"},
                                {"Ratio to the next best on a logarithmic axis", false, axis.ticks()},
                                {"Pairs won"},
                                {"Verdict"},
                                {"Over the plan's first form, and remarks"}},
                    .rows = {}};
  for (const Json& row : rows) table.rows.push_back(fastest_row(row, axis));
  return "<p>The least median of those whose gates passed, beside the next. Only a row that says faster was "
         "shown "
         "to be; a hollow dot is in doubt.</p>\n" +
         html::table(table);
}

}  // namespace

std::string header(const Json& report) {
  const Json& about = report["about"];
  const Json& device = about["device"];
  std::string models;
  for (const Json& model : about["models"]) models += (models.empty() ? "" : ", ") + text(model["name"]);
  const std::string memory =
      device.contains("memory_bytes")
          ? fmt::format("<li>{} cores, {:.0f} GiB</li><li>{}</li>", device["cores"].dump(),
                        device["memory_bytes"].get<double>() / kGibibyte, text(device["features"]))
          : "";
  return fmt::format(
      "<p class=\"eyebrow\">Assay laboratory report</p>\n<h1>{} on {}</h1>\n<ul class=\"facts\"><li>{}</li>{}"
      "<li>build: {}</li><li>made {}</li></ul>\n",
      models, text(device.value("processor", device["id"])), code(device["id"]), memory,
      shortened(text(about["build"])), text(report["made"]));
}

std::string summary(const Json& report) {
  const Json& counts = report["summary"];
  return "<div class=\"tiles\">\n" + gates_tile(counts["gates"]) + windows_tile(counts["windows"]) +
         call_cost_tile(report) + footprint_tile(report) + growth_tile(report) +
         experiments_tile(counts["experiments"]) + receipts_tile(counts["receipts"]) + "</div>\n" +
         "<h3>Fastest forms whose gates passed</h3>\n" + fastest_table(counts["fastest"]) +
         "<h3>What not to overlook</h3>\n" + attention_list(counts["attention"]);
}

}  // namespace assay::lab::page
