#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "lab/report/page_parts.hpp"

namespace assay::lab::page {
namespace {

/// More rows than this are folded, unless one of them failed.
constexpr std::size_t kRowsInSight = 16;
constexpr std::size_t kComparisonsInSight = 8;

std::string capitalised(std::string word) {
  if (!word.empty() && word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}

std::string plan_of(const Json& report, const Json& receipt) {
  for (const Json& window : report["windows"]) {
    if (window["receipt"] == receipt) return text(window["plan"]);
  }
  return text(receipt);
}

/// Every comparison of an op's forms, in one table under the forms.
std::string comparisons_table(const Json& report, const std::string& op) {
  Json rows = Json::array();
  for (const Json& form : report["forms"]) {
    for (Json against : form["against"]) {
      if (form["op"] != op) continue;
      against["form"] = form["form"];
      against["precision"] = form["precision"];
      rows.push_back(std::move(against));
    }
  }
  if (rows.empty()) return "";
  const html::RatioAxis axis = ratio_axis(rows);
  html::Table table{.caption = op + " in clean windows",
                    .columns = {{"Form against form"},
                                {"Precision"},
                                {"Item"},
                                {"Ratio [interval]"},
                                {"Ratio on a logarithmic axis", false, axis.ticks()},
                                {"Verdict"},
                                {"Window"}},
                    .rows = {}};
  for (const Json& row : rows) {
    const bool suspicious = row["suspicious"].get<bool>();
    table.rows.push_back({.cells = {fmt::format("{} against {}", code(row["form"]), code(row["baseline"])),
                                    text(row["precision"]), text(row["item"]),
                                    ratio(row["ratio"].get<double>(), row["interval"]),
                                    ratio_plot(axis, row, suspicious || row["verdict"] == "inconclusive"),
                                    verdict_in(true, row["verdict"].get<std::string>(), suspicious),
                                    fmt::format("<a href=\"#w-{}\">{}</a>", text(row["receipt"]),
                                                plan_of(report, row["receipt"]))}});
  }
  return fold(fmt::format("Comparisons in clean windows: {}", rows.size()), html::table(table),
              rows.size() <= kComparisonsInSight);
}

std::string op_gate(const Json& gates) {
  if (gates["op"].is_null()) return html::verdict("no gate");
  return html::verdict(text(gates["op"]["result"])) + " " + hash(gates["op"]["receipt"]);
}

html::Row form_row(const Json& form) {
  const Json& gates = form["gates"];
  return {
      .cells = {code(form["form"]), text(form["precision"]), html::verdict(text(form["state"])),
                wrapped(text(form["why"])), op_gate(gates),
                fmt::format("{} passed, {} failed", gates["runs_passed"].dump(), gates["runs_failed"].dump()),
                measure(gates["max_abs_dp"]), measure(gates["mean_of_row_mean_abs_dp"]),
                wrapped(text(form.value("summary", Json())))},
      .style = form["state"] == "refused" ? "quiet" : ""};
}

bool spoken_of(const Json& form) {
  const Json& gates = form["gates"];
  return !gates["op"].is_null() || gates["runs_passed"] != 0 || gates["runs_failed"] != 0 ||
         !form["against"].empty();
}

/// The forms that no receipt speaks of, by name.
std::string unspoken(const Json& forms) {
  std::string names;
  for (const Json& form : forms) {
    if (spoken_of(form)) continue;
    names += fmt::format("{}<code>{}={}</code> at {}", names.empty() ? "" : ", ", text(form["op"]),
                         text(form["form"]), text(form["precision"]));
  }
  return names.empty() ? "" : fold("Forms that no receipt speaks of", "<p>" + names + "</p>\n");
}

/// Columns of a group's measures: what people look for first, then the others by name.
std::vector<std::string> measure_columns(const std::vector<const Json*>& gates) {
  constexpr std::array kFirst{"rows",
                              "values",
                              "argmax_off_near_ties",
                              "near_ties_agreeing",
                              "max_abs_dp",
                              "mean_of_row_mean_abs_dp",
                              "nrmse",
                              "snr_db",
                              "pearson",
                              "max_abs"};
  std::set<std::string> all;
  for (const Json* gate : gates) {
    for (auto it = (*gate)["measures"].begin(); it != (*gate)["measures"].end(); ++it) {
      // "nrmse_in" and its like say where the worst value lies; the JSON has them.
      if (!it->is_structured() && !it.key().ends_with("_in")) all.insert(it.key());
    }
  }
  std::vector<std::string> columns;
  for (const char* name : kFirst) {
    if (all.erase(name) > 0) columns.emplace_back(name);
  }
  columns.insert(columns.end(), all.begin(), all.end());
  return columns;
}

/// "✓ RED 2 of 2", or each outcome where they differ.
std::string arms(const Json& gate) {
  const Json& list = gate["red_arms"];
  const auto red =
      std::count_if(list.begin(), list.end(), [](const Json& arm) { return arm["outcome"] == "RED"; });
  std::string html;
  for (const Json& arm : list) {
    if (arm["outcome"] != "RED")
      html += fmt::format(" {} {}", html::verdict(text(arm["outcome"])), words(text(arm["arm"])));
  }
  return fmt::format("{} {} of {}{}", red == 0 ? "" : html::verdict("RED"), red, list.size(), html);
}

html::Row gate_row(const Json& gate, const std::vector<std::string>& columns) {
  const bool latest = gate["latest"].get<bool>();
  html::Row row{.cells = {code(gate["label"]), text(gate["precision"]),
                          html::verdict(text(gate["result"])) + (latest ? "" : " earlier"), arms(gate)},
                .style = latest ? "" : "quiet"};
  for (const std::string& column : columns)
    row.cells.push_back(measure(gate["measures"].value(column, Json())));
  row.cells.push_back(text(gate["gate"]));
  row.cells.push_back(hash(gate["receipt"]));
  return row;
}

std::string arms_table(const std::vector<const Json*>& gates) {
  html::Table table{
      .caption = "Red arms",
      .columns =
          {{"Forms"}, {"Precision"}, {"Gate"}, {"Arm"}, {"Outcome"}, {"Cases changed", true}, {"Measures"}},
      .rows = {}};
  for (const Json* gate : gates) {
    for (const Json& arm : (*gate)["red_arms"]) {
      std::string measures;
      for (auto it = arm["measures"].begin(); it != arm["measures"].end(); ++it) {
        if (it->is_structured() || it->is_null() || it.key().ends_with("_in")) continue;
        measures += fmt::format("{}{} {}", measures.empty() ? "" : ", ", html::escaped(words(it.key())),
                                measure(*it));
      }
      table.rows.push_back(
          {.cells = {code((*gate)["label"]), text((*gate)["precision"]), text((*gate)["gate"]),
                     words(text(arm["arm"])), html::verdict(text(arm["outcome"])),
                     arm["cases_changed"].dump(), measures}});
    }
  }
  return table.rows.empty()
             ? ""
             : fold(fmt::format("{} red arms and what the gates saw of them", table.rows.size()),
                    html::table(table));
}

std::string failures(const std::vector<const Json*>& gates) {
  std::string items;
  for (const Json* gate : gates) {
    for (const Json& failure : (*gate)["failures"]) {
      items +=
          fmt::format("<li>{}, {}: {}</li>\n", text((*gate)["gate"]), code((*gate)["label"]), text(failure));
    }
  }
  return items.empty() ? "" : fold("What was not met", "<ul>\n" + items + "</ul>\n");
}

std::string gate_group(const std::string& heading, std::vector<const Json*> gates) {
  std::stable_sort(gates.begin(), gates.end(), [](const Json* a, const Json* b) {
    const auto key = [](const Json& gate) {
      return std::make_tuple(gate["fixture"].dump(), gate["precision"].get<std::string>(),
                             gate["gate"].get<std::string>(), gate["label"].get<std::string>());
    };
    return key(*a) < key(*b);
  });
  const std::vector<std::string> columns = measure_columns(gates);
  html::Table table{
      .caption = heading, .columns = {{"Forms"}, {"Precision"}, {"Result"}, {"Red arms"}}, .rows = {}};
  for (const std::string& column : columns)
    table.columns.push_back({.name = capitalised(words(column)), .number = true});
  for (const char* name : {"Gate", "Receipt"}) table.columns.push_back({name});
  std::size_t passed = 0;
  for (const Json* gate : gates) {
    passed += (*gate)["result"] == "PASS";
    table.rows.push_back(gate_row(*gate, columns));
  }
  const std::string count =
      fmt::format("{} runs: {} PASS, {} FAIL", gates.size(), passed, gates.size() - passed);
  const bool whole = gates.size() <= kRowsInSight || passed < gates.size();
  return fmt::format("<h3>{}</h3>\n", html::escaped(heading)) +
         (whole ? html::table(table) : fold(count, html::table(table))) + arms_table(gates) + failures(gates);
}

std::string group_name(const Json& gate) {
  const auto type = gate["type"].get<std::string>();
  const std::string what = type == "decision" ? "Decisions of the model"
                           : type == "taps"   ? "Layers of the model"
                           : type == "op"     ? "Ops by themselves"
                           : type == "music"  ? "Songs of the model"
                                              : type;
  const std::string on = gate["fixture"].is_string() ? ": " + gate["fixture"].get<std::string>() : "";
  return fmt::format("{}{} ({})", what, on, words(gate["comparator"].get<std::string>()));
}

std::string gate_tables(const Json& gates) {
  std::map<std::string, std::vector<const Json*>> groups;
  for (const Json& gate : gates) groups[group_name(gate)].push_back(&gate);
  std::string html;
  for (const auto& [heading, members] : groups) html += gate_group(heading, members);
  return html;
}

std::string not_run_table(const Json& rows) {
  if (rows.empty()) return "";
  html::Table table{.caption = "Not run, and why",
                    .columns = {{"Form"}, {"Gate"}, {"Fixture"}, {"Precision"}, {"Reason"}},
                    .rows = {}};
  for (const Json& row : rows) {
    const Json fixture = row["fixture"] == "" ? Json() : row["fixture"];
    table.rows.push_back({.cells = {code(row["form"]), text(row["gate"]), text(fixture),
                                    text(row["precision"]), wrapped(text(row.value("reason", Json())))}});
  }
  return fold(fmt::format("{} not run, and why", rows.size()), html::table(table));
}

std::string bars_table(const Json& bars) {
  if (bars.empty()) return "";
  html::Table table{
      .caption = "The bars", .columns = {{"Gate"}, {"Comparator"}, {"Thresholds"}, {"File"}}, .rows = {}};
  for (const Json& bar : bars) {
    std::string thresholds;
    for (auto it = bar["thresholds"].begin(); it != bar["thresholds"].end(); ++it) {
      thresholds += fmt::format("{}{} {}", thresholds.empty() ? "" : ", ", html::escaped(words(it.key())),
                                measure(*it));
    }
    table.rows.push_back(
        {.cells = {text(bar["gate"]), words(text(bar["comparator"])),
                   wrapped(thresholds.empty() ? "none: the same bits" : thresholds), hash(bar["sha256"])}});
  }
  return fold("The bars", html::table(table));
}

std::string bisections(const Json& list) {
  std::string html;
  for (const Json& one : list) {
    std::string sets;
    for (const char* kind : {"layers", "parts"}) {
      for (const Json& set : one[kind]) {
        std::string members;
        for (const Json& member : set) members += (members.empty() ? "" : " + ") + text(member);
        sets += fmt::format("<li>{}</li>\n", members);
      }
    }
    html += fmt::format(
        "<article><h3>Where {} fails {}</h3>\n<p>{} on {} at {}, elsewhere {}; found in {} runs of the gate. "
        "Each of these fails by itself:</p>\n<ul>\n{}</ul><p>{}</p></article>\n",
        code(one["suspect"]), text(one["gate"]), html::verdict(text(one["everywhere"]["result"])),
        text(one["fixture"]), text(one["precision"]), code(one["elsewhere"]), one["runs"].dump(), sets,
        hash(one["receipt"]));
  }
  return html;
}

}  // namespace

Section forms_section(const Json& report) {
  std::vector<std::string> ops;
  std::map<std::string, html::Table> tables;
  for (const Json& form : report["forms"]) {
    if (!spoken_of(form)) continue;
    const auto op = form["op"].get<std::string>();
    if (!tables.contains(op)) {
      ops.push_back(op);
      tables[op] = {.caption = op,
                    .columns = {{"Form"},
                                {"Precision"},
                                {"State"},
                                {"Why"},
                                {"Its own gate"},
                                {"Gated runs with it"},
                                {"Worst max |Δp|", true},
                                {"Worst mean |Δp|", true},
                                {"What it is"}},
                    .rows = {}};
    }
    tables[op].rows.push_back(form_row(form));
  }
  std::string body;
  for (const std::string& op : ops) {
    body += fmt::format("<h3>{}</h3>\n", code(op)) + html::table(tables[op]) + comparisons_table(report, op);
  }
  return {.id = "forms",
          .heading = "Forms",
          .intro =
              "Selected: what these receipts choose for a run. Admitted: its gate passed and no run with it "
              "failed. Refused: the device lacks its instructions, or no gate of it passed, or a run with it "
              "failed. Ratios are of forms that differ in this op alone.",
          .body = body.empty() ? "" : body + unspoken(report["forms"])};
}

Section gates_section(const Json& report) {
  std::string defaults;
  for (auto precision = report["default_forms"].begin(); precision != report["default_forms"].end();
       ++precision) {
    std::string forms;
    for (auto op = precision->begin(); op != precision->end(); ++op) {
      forms += fmt::format("{}{}={}", forms.empty() ? "" : " ", html::escaped(op.key()), text(*op));
    }
    defaults += fmt::format("<p class=\"quiet\">Default forms at {}: <code>{}</code></p>\n",
                            html::escaped(precision.key()), forms);
  }
  const std::string tables = gate_tables(report["gates"]);
  const std::string rest =
      not_run_table(report["not_run"]) + bars_table(report["bars"]) + bisections(report["bisections"]);
  return {.id = "gates",
          .heading = "Gates",
          .intro = "A row names the forms in which its run differs from the default ones.",
          .body = tables.empty() && rest.empty() ? "" : defaults + tables + rest};
}

}  // namespace assay::lab::page
