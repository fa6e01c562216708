#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include <fmt/format.h>

#include "lab/report/page_parts.hpp"

namespace assay::lab::page {
namespace {

/// More pairs of an item than this are folded.
constexpr std::size_t kPairsInSight = 6;

/// Times of an item's forms on one linear axis from 0, as percent.
class TimeAxis {
 public:
  TimeAxis(const Json& window, const Json& item) {
    for (const Json& cell : window["times"]) {
      if (cell["item"] == item) most_ = std::max(most_, cell["p90"].get<double>());
    }
  }
  std::string plot(const Json& cell) const {
    return html::interval_plot(percent(cell["p10"]), percent(cell["median"]), percent(cell["p90"]));
  }

 private:
  double percent(const Json& value) const { return most_ <= 0 ? 0 : 100 * value.get<double>() / most_; }
  double most_ = 0;
};

/// What the gates say of a window's form; a dash for a form that the window does not list.
std::string gates_of(const Json& window, const Json& name) {
  const auto form = std::find_if(window["forms"].begin(), window["forms"].end(),
                                 [&](const Json& listed) { return listed["form"] == name; });
  return form == window["forms"].end() ? "–" : html::verdict(text((*form)["gates"]));
}

html::Row time_row(const Json& window, const Json& cell, const TimeAxis& axis) {
  const double median = cell["median"].get<double>();
  return {.cells = {code(cell["form"]), gates_of(window, cell["form"]), milliseconds(median),
                    milliseconds(cell["p10"].get<double>()), milliseconds(cell["p90"].get<double>()),
                    axis.plot(cell),
                    fmt::format("{:.1f}", median > 0 ? 100 * cell["spread"].get<double>() / median : 0),
                    cell["count"].dump(),
                    cell["floor"].is_null() ? "–" : milliseconds(cell["floor"].get<double>()),
                    cell["suspicious"].get<bool>() ? html::verdict("suspicious") : ""}};
}

std::string times_table(const Json& window, const Json& item) {
  html::Table table{.caption = "Times on " + item["item"].get<std::string>(),
                    .columns = {{"Form"},
                                {"Gates"},
                                {"Median ms", true},
                                {"p10 ms", true},
                                {"p90 ms", true},
                                {"From 0: p10, median, p90"},
                                {"Spread %", true},
                                {"n", true},
                                {"Floor ms", true},
                                {"Note"}},
                    .rows = {}};
  const TimeAxis axis(window, item["item"]);
  for (const Json& cell : window["times"]) {
    if (cell["item"] == item["item"]) table.rows.push_back(time_row(window, cell, axis));
  }
  return html::table(table);
}

html::Row pair_row(const Json& window, const Json& pair, const html::RatioAxis& axis) {
  const bool clean = window["clean"].get<bool>();
  const bool suspicious = pair["suspicious"].get<bool>();
  const bool doubt = !clean || suspicious || pair["verdict"] == "inconclusive";
  std::string why;
  for (const Json& reason : pair["why"]) why += (why.empty() ? "" : "; ") + text(reason);
  return {.cells = {fmt::format("{} against {}", code(pair["candidate"]), code(pair["baseline"])),
                    ratio(pair["ratio"].get<double>(), pair["interval"]), ratio_plot(axis, pair, doubt),
                    fmt::format("{}/{}", pair["wins"].dump(), pair["pairs"].dump()),
                    verdict_in(clean, pair["verdict"].get<std::string>(), suspicious), narrow(why)}};
}

/// "Pairs: 15, of which 9 faster, 6 inconclusive"
std::string pair_counts(const Json& window, const Json& item) {
  std::map<std::string, std::size_t> verdicts;
  std::size_t count = 0;
  for (const Json& pair : window["pairs"]) {
    if (pair["item"] != item["item"]) continue;
    ++verdicts[pair["verdict"].get<std::string>()];
    ++count;
  }
  std::string text = fmt::format("Pairs: {}, of which", count);
  for (const auto& [verdict, number] : verdicts)
    text += fmt::format("{} {} {}", text.ends_with("which") ? "" : ",", number, verdict);
  return text;
}

std::string pairs_table(const Json& window, const Json& item) {
  const html::RatioAxis axis = ratio_axis(window["pairs"]);
  html::Table table{.caption = "Pairs on " + item["item"].get<std::string>(),
                    .columns = {{"Forms"},
                                {"Ratio [interval]"},
                                {"Ratio on a logarithmic axis", false, axis.ticks()},
                                {"Pairs won"},
                                {"Verdict"},
                                {"What is lacking"}},
                    .rows = {}};
  for (const Json& pair : window["pairs"]) {
    if (pair["item"] == item["item"]) table.rows.push_back(pair_row(window, pair, axis));
  }
  if (table.rows.size() <= kPairsInSight) return table.rows.empty() ? "" : html::table(table);
  return fold(pair_counts(window, item), html::table(table));
}

std::string samples_figure(const Json& window, const Json& item, Plots& plots) {
  std::vector<Plots::Series> series;
  for (const Json& form : window["forms"]) {
    for (const Json& samples : window["samples"]) {
      if (samples["item"] != item["item"] || samples["form"] != form["form"]) continue;
      series.push_back({.label = form["form"].get<std::string>(),
                        .points = {{"x", samples["start"]}, {"y", samples["wall"]}}});
    }
  }
  const auto name = item["item"].get<std::string>();
  return plots.figure("Every sample on " + name, "Times of " + name + " by form in the order they were taken",
                      "seconds since the window began", "ms", series, true);
}

std::string item_html(const Json& window, const Json& item, Plots& plots) {
  return fmt::format("<h4>{} <span class=\"quiet\">{}</span></h4>\n{}{}{}", text(item["item"]),
                     text(item["what"]), times_table(window, item), pairs_table(window, item),
                     fold("Every sample, in its order", samples_figure(window, item, plots)));
}

std::string row(const std::string& name, const std::string& html) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, html);
}

std::string surroundings(const Json& window) {
  const Json& seen = window["surroundings"];
  std::string others;
  for (const Json& other : seen["other_processes"]) {
    others += fmt::format("{}{} {:.1f} %", others.empty() ? "" : ", ", text(other["name"]),
                          100 * other["cpu"].get<double>());
  }
  return fmt::format(
      "load {} before; other processes took {:.1f} % of the processors, the hypervisor {:.1f} %; {:.0f} MiB "
      "free at the least{}{}",
      number(seen["load_before"]), 100 * seen["other_cpu"].get<double>(), 100 * seen["steal"].get<double>(),
      seen["available_memory"].get<double>() / kMebibyte, others.empty() ? "" : ". Busiest: ", others);
}

std::string order_of(const Json& window) {
  const Json& order = window["order"];
  if (!order.is_object()) return "–";
  return fmt::format(
      "{} processes a form, {} repetitions each, {} untimed; alive at once: {}; {} samples dropped",
      measure(order.value("processes", Json())), measure(order.value("repetitions", Json())),
      measure(order.value("warm_ups", Json())), measure(order.value("alive", Json())),
      measure(window["dropped_samples"]));
}

std::string forms_list(const Json& window) {
  std::string html;
  for (const Json& form : window["forms"]) {
    html += fmt::format("{}{}: {}, {} threads, calls of {} tokens, {} MiB resident: {}",
                        html.empty() ? "" : "<br>", code(form["form"]), text(form["precision"]),
                        form["threads"].dump(), form["call_tokens"].dump(), mebibytes(form["resident_bytes"]),
                        code(form["label"]));
  }
  return html;
}

std::string window_html(const Json& window, Plots& plots) {
  std::string reasons;
  for (const Json& reason : window["contention"]) reasons += fmt::format("<li>{}</li>\n", text(reason));
  if (!reasons.empty()) reasons = "<ul class=\"reasons\">\n" + reasons + "</ul>\n";
  std::string left_out;
  for (const Json& item : window["left_out_items"]) left_out += (left_out.empty() ? "" : ", ") + text(item);
  std::string html = fmt::format(
      "<article id=\"w-{}\"><h3>{} {}</h3>\n{}<dl>\n{}{}{}{}{}</dl>\n", text(window["receipt"]),
      text(window["plan"]), html::verdict(window["clean"].get<bool>() ? "clean" : "contended"), reasons,
      row("Window",
          fmt::format("{}, {}, {:.0f} s on {}, receipt {}, plan {}", code(window["id"]),
                      text(window["started"]), window["seconds"].get<double>(), text(window["device"]),
                      hash(window["receipt"]), code(window["plan_sha256"].get<std::string>().substr(0, 10)))),
      row("Order", order_of(window)), row("Surroundings", surroundings(window)),
      row("Forms", forms_list(window)), left_out.empty() ? "" : row("Other models' items", left_out));
  for (const Json& item : window["items"]) html += item_html(window, item, plots);
  return html + "</article>\n";
}

}  // namespace

Section windows_section(const Json& report, Plots& plots) {
  std::string body;
  for (auto window = report["windows"].rbegin(); window != report["windows"].rend(); ++window) {
    body += window_html(*window, plots);
  }
  return {.id = "windows",
          .heading = "Windows",
          .intro = "Times compare only inside one window. The newest stands first.",
          .body = body};
}

}  // namespace assay::lab::page
