#include <map>
#include <string>

#include <fmt/format.h>

#include "lab/report/page_parts.hpp"

namespace assay::lab::page {
namespace {

std::string measured_pairs(const Json& experiment, const html::RatioAxis& axis) {
  std::string html;
  for (const Json& pair : experiment["pairs"]) {
    const std::string doubt = text(pair["doubt"]);
    html += fmt::format("<span class=\"claim\">{}: {} against {}, {} {}</span>{}", text(pair["item"]),
                        code(pair["candidate"]), code(pair["baseline"]),
                        ratio(pair["ratio"].get<double>(), pair["interval"]), doubt,
                        ratio_plot(axis, pair, !doubt.empty()));
  }
  return html.empty() ? "–" : "<span class=\"measured\">" + html + "</span>";
}

html::Row experiment_row(const Json& experiment, const html::RatioAxis& axis) {
  std::string receipts;
  for (const Json& receipt : experiment["receipts"]) {
    receipts +=
        fmt::format("{}{} {}{}", receipts.empty() ? "" : "<br>", text(receipt["kind"]),
                    hash(receipt["sha256"]), receipt["used"].get<bool>() ? "" : " not of this report");
  }
  return {.cells = {text(experiment["id"]), html::verdict(text(experiment["evidence"])),
                    html::verdict(text(experiment["disposition"])),
                    narrow(fmt::format("<b>{}</b><br>{}", text(experiment["subject"]),
                                       text(experiment["hypothesis"]))),
                    measured_pairs(experiment, axis), narrow(text(experiment["result"])),
                    text(experiment["risk"]), receipts.empty() ? "–" : receipts}};
}

std::string audit(const Json& ledger) {
  std::string items;
  for (const char* kind : {"problems", "notes"}) {
    for (const Json& item : ledger[kind]) {
      items += fmt::format("<li{}>{}</li>\n", std::string_view(kind) == "problems" ? " class=\"bad\"" : "",
                           text(item));
    }
  }
  return items.empty() ? "<p>The ledger passes its audit.</p>\n"
                       : "<ul class=\"attention\">\n" + items + "</ul>\n";
}

std::string imported(const Json& ledger) {
  std::string html;
  for (const Json& record : ledger["imported"]) {
    std::string counts;
    for (auto it = record["evidence"].begin(); it != record["evidence"].end(); ++it) {
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", it->dump(), html::escaped(it.key()));
    }
    html += fmt::format("<p>Kept beside it, as it was: {}, {} rows ({}).</p>\n", text(record["name"]),
                        record["rows"].dump(), counts);
  }
  return html;
}

html::Row judged_row(const Json& row, const char* state) {
  std::string receipts;
  for (const Json& sha256 : row["receipts"]) receipts += (receipts.empty() ? "" : "<br>") + hash(sha256);
  return {.cells = {fmt::format("<code>{}={}</code>", text(row["op"]), text(row["form"])),
                    text(row["precision"]), html::verdict(state), wrapped(text(row["why"])),
                    receipts.empty() ? "–" : receipts}};
}

std::string file_list(const Json& files) {
  constexpr std::size_t kFilesInSight = 3;
  std::string list;
  for (const Json& file : files) {
    list += fmt::format("{}{}", list.empty() ? "" : "<br>", code(file["file"]));
    const bool named =
        file["sha256"].is_string() &&
        file["file"].get<std::string>().find(file["sha256"].get<std::string>()) != std::string::npos;
    if (!named) list += "<br>" + code(file["sha256"]);
  }
  list = "<span class=\"wrap\">" + list + "</span>";
  return files.size() <= kFilesInSight ? list : fold("The files", list);
}

}  // namespace

Section experiments_section(const Json& report) {
  Section section{.id = "experiments",
                  .heading = "Experiments",
                  .intro =
                      "Claims whose rule was frozen before the code changed; their evidence follows from "
                      "that rule alone.",
                  .body = {}};
  const Json& ledger = report["ledger"];
  if (ledger.is_null()) return section;
  Json measured = Json::array();
  for (const Json& experiment : ledger["experiments"]) {
    measured.insert(measured.end(), experiment["pairs"].begin(), experiment["pairs"].end());
  }
  const html::RatioAxis axis = ratio_axis(measured);
  html::Table table{
      .caption = "Experiments of the ledger",
      .columns = {{"ID"},
                  {"Evidence"},
                  {"Disposition"},
                  {"Claim"},
                  {"Measured", false, "<span class=\"measured\">Measured" + axis.ticks() + "</span>"},
                  {"Result"},
                  {"Risk"},
                  {"Receipts"}},
      .rows = {}};
  for (const Json& experiment : ledger["experiments"]) table.rows.push_back(experiment_row(experiment, axis));
  section.body =
      (table.rows.empty() ? "<p>None yet.</p>\n" : html::table(table)) + imported(ledger) + audit(ledger);
  return section;
}

Section selection_section(const Json& report) {
  Section section{.id = "selection", .heading = "Selection", .intro = {}, .body = {}};
  const Json& selection = report["selection"];
  if (selection.is_null()) return section;
  html::Table table{.caption = "The selection of this device",
                    .columns = {{"Form"}, {"Precision"}, {"State"}, {"Why"}, {"Receipts"}},
                    .rows = {}};
  for (const Json& row : selection["choices"]) table.rows.push_back(judged_row(row, "selected"));
  for (const Json& row : selection["refused"]) table.rows.push_back(judged_row(row, "refused"));
  std::string differences;
  for (const Json& item : selection["differences"]) differences += fmt::format("<li>{}</li>\n", text(item));
  section.intro =
      fmt::format("From {}, made {}. {}", code(selection["file"]), text(selection["made"]),
                  differences.empty() ? "The receipts of this report speak for the same choices." : "");
  section.body = (differences.empty() ? "" : "<ul class=\"attention\">\n" + differences + "</ul>\n") +
                 html::table(table);
  return section;
}

Section refused_section(const Json& report) {
  Section section{.id = "refused",
                  .heading = "Refused",
                  .intro = "Files that were there and are used nowhere in this report.",
                  .body = "<p>None.</p>\n"};
  if (report["refused"].empty()) return section;
  std::map<std::string, Json> by_reason;
  for (const Json& file : report["refused"]) by_reason[file["reason"].get<std::string>()].push_back(file);
  html::Table table{.caption = "Refused files",
                    .columns = {{"Reason"}, {"Files", true}, {"Which, by the SHA-256 of their bytes"}},
                    .rows = {}};
  for (const auto& [reason, files] : by_reason) {
    table.rows.push_back(
        {.cells = {wrapped(html::escaped(reason)), std::to_string(files.size()), file_list(files)}});
  }
  section.body = html::table(table);
  return section;
}

Section sources_section(const Json& report) {
  html::Table table{
      .caption = "Sources", .columns = {{"File"}, {"Kind"}, {"Bytes", true}, {"SHA-256"}}, .rows = {}};
  for (const Json& source : report["sources"]) {
    table.rows.push_back({.cells = {wrapped(fmt::format("<span id=\"f-{}\">{}</span>", text(source["sha256"]),
                                                        code(source["file"]))),
                                    text(source["kind"]), source["bytes"].dump(), code(source["sha256"])}});
  }
  return {
      .id = "sources",
      .heading = "Sources",
      .intro = "Every file that a number here comes from.",
      .body = table.rows.empty() ? "" : fold(fmt::format("{} files", table.rows.size()), html::table(table))};
}

}  // namespace assay::lab::page
