#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/report/page_parts.hpp"

namespace assay::lab::page {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
/// Places of a fitted curve that a plot is drawn from.
constexpr std::size_t kCurvePlaces = 240;

/// "kev-tiny-hybrid/run, bf16, 2 threads"
std::string run_of(const Json& report, const Json& entry) {
  return fmt::format("{}, {}, {} threads", model_name(report, entry["model"]), text(entry["precision"]),
                     entry["threads"].dump());
}

/// The chosen shape at a length, as cost_fit.hpp defines the shapes.
double fitted(const Json& fit, double tokens) {
  const auto line = [&](const Json& of) { return of["a"].get<double>() + of["b"].get<double>() * tokens; };
  if (fit["chosen"] == "tiles" && fit["tiles"].is_object()) {
    const Json& tiles = fit["tiles"];
    return line(tiles) + tiles["c"].get<double>() * std::ceil(tokens / tiles["tile"].get<double>());
  }
  if (fit["chosen"] == "pieces") {
    for (const Json& piece : fit["pieces"]["pieces"]) {
      if (tokens <= piece["last"].get<double>()) return line(piece);
    }
    if (!fit["pieces"]["pieces"].empty()) return line(fit["pieces"]["pieces"].back());
  }
  return line(fit["line"]);
}

Json fitted_line(const Json& curve) {
  const Json& points = curve["points"];
  const double first = points.front()["tokens"].get<double>();
  const double last = points.back()["tokens"].get<double>();
  Json line{{"x", Json::array()}, {"y", Json::array()}};
  for (std::size_t i = 0; i <= kCurvePlaces; ++i) {
    const double tokens = first + (last - first) * static_cast<double>(i) / static_cast<double>(kCurvePlaces);
    line["x"].push_back(tokens);
    line["y"].push_back(fitted(curve["fit"], tokens));
  }
  return line;
}

Json measured_points(const Json& curve) {
  Json points{{"x", Json::array()}, {"y", Json::array()}, {"low", Json::array()}, {"high", Json::array()}};
  for (const Json& point : curve["points"]) {
    points["x"].push_back(point["tokens"]);
    points["y"].push_back(point["median"]);
    points["low"].push_back(point["p10"]);
    points["high"].push_back(point["p90"]);
  }
  return points;
}

std::string chosen_of(const Json& fit) {
  if (fit["chosen"] == "tiles" && fit["tiles"].is_object()) {
    return fmt::format("tiles of {} tokens, {:.3g} ms each", number(fit["tiles"]["tile"]),
                       fit["tiles"]["c"].get<double>());
  }
  if (fit["chosen"] == "pieces") return fmt::format("{} pieces", fit["pieces"]["pieces"].size());
  return text(fit["chosen"]);
}

html::Row fit_row(const Json& curve) {
  const Json& line = curve["fit"]["line"];
  return {.cells = {
              code(curve["label"]), milliseconds(line["a"].get<double>()), number(line["b"]),
              fmt::format("{} to {}", number(line["b_interval"]["low"]), number(line["b_interval"]["high"])),
              number(line["residual_rms"]), chosen_of(curve["fit"]), wrapped(code(curve["differs"]))}};
}

std::string points_table(const Json& cost) {
  html::Table table{.caption = "Points of the curves",
                    .columns = {{"Curve"},
                                {"Tokens", true},
                                {"Median ms", true},
                                {"p10 ms", true},
                                {"p90 ms", true},
                                {"Fit ms", true},
                                {"Tokens/s", true}},
                    .rows = {}};
  for (const Json& curve : cost["curves"]) {
    for (const Json& point : curve["points"]) {
      const double tokens = point["tokens"].get<double>();
      const double median = point["median"].get<double>();
      table.rows.push_back(
          {.cells = {code(curve["label"]), point["tokens"].dump(), milliseconds(median),
                     milliseconds(point["p10"].get<double>()), milliseconds(point["p90"].get<double>()),
                     milliseconds(fitted(curve["fit"], tokens)),
                     fmt::format("{:.0f}", median > 0 ? 1e3 * tokens / median : 0)}});
    }
  }
  return fold("The points", html::table(table));
}

std::string call_cost_html(const Json& report, const Json& cost, Plots& plots) {
  html::Table table{.caption = "Fits",
                    .columns = {{"Curve"},
                                {"A call, ms", true},
                                {"A token, ms", true},
                                {"95 % interval"},
                                {"Residual rms, ms", true},
                                {"Chosen shape"},
                                {"Forms"}},
                    .rows = {}};
  std::vector<Plots::Series> series;
  std::string about = "Time of one call over its tokens";
  for (const Json& curve : cost["curves"]) {
    table.rows.push_back(fit_row(curve));
    if (curve["points"].empty()) continue;
    series.push_back({.label = curve["label"].get<std::string>(),
                      .points = measured_points(curve),
                      .line = fitted_line(curve)});
    const Json& line = curve["fit"]["line"];
    about += fmt::format("; {}: {:.3g} ms and {:.3g} ms a token", curve["label"].get<std::string>(),
                         line["a"].get<double>(), line["b"].get<double>());
  }
  return fmt::format(
             "<article><h3>{}</h3>\n<p class=\"quiet\">{} timed calls of every length; receipt {}, {}</p>\n",
             run_of(report, cost), cost["rounds"].dump(), hash(cost["receipt"]), text(cost["made"])) +
         plots.figure("Medians with p10 to p90, and the chosen shape", about, "tokens in the call",
                      "ms a call", series, true) +
         html::table(table) + points_table(cost) + "</article>\n";
}

std::string bar(double share) {
  return fmt::format(
      "<span class=\"gauge\" aria-hidden=\"true\"><i class=\"bar\" style=\"width:{:.2f}%\"></i></span>",
      100 * std::clamp(share, 0.0, 1.0));
}

std::string bench_html(const Json& report, const Json& bench) {
  html::Table table{.caption = "Passes of synthetic weights",
                    .columns = {{"Row tokens"},
                                {"Questions", true},
                                {"Tokens", true},
                                {"Median ms", true},
                                {"Min ms", true},
                                {"Max ms", true},
                                {"Tokens/s", true},
                                {"TFLOP/s", true},
                                {"Share by op"}},
                    .rows = {}};
  for (const Json& one : bench["cases"]) {
    std::string ops;
    for (const Json& op : one["ops"]) {
      ops += fmt::format("{}{} {:.1f} %", ops.empty() ? "" : ", ", text(op["op"]),
                         100 * op["share"].get<double>());
    }
    table.rows.push_back(
        {.cells = {one["row_tokens"].dump(), one["questions"].dump(), one["total_tokens"].dump(),
                   milliseconds(one["median"].get<double>()), milliseconds(one["min"].get<double>()),
                   milliseconds(one["max"].get<double>()), number(one["tokens_per_second"]),
                   number(one["tflops"]), wrapped(ops)}});
  }
  return fmt::format(
      "<article><h3>Passes: {}</h3>\n<p class=\"quiet\">Weights {} MiB, peak {} MiB; {} timed passes a case; "
      "receipt {}, {}</p>\n{}</article>\n",
      run_of(report, bench), mebibytes(bench["weight_bytes"]), mebibytes(bench["peak_bytes"]),
      bench["repeat"].dump(), hash(bench["receipt"]), text(bench["made"]), html::table(table));
}

html::Row footprint_row(const Json& report, const Json& entry, double most) {
  html::Row row{.cells = {run_of(report, entry)}};
  for (const Json& stage : entry["stages"]) row.cells.push_back(mebibytes(stage["resident"]));
  row.cells.resize(5, "–");
  row.cells.push_back(mebibytes(entry["peak"]));
  row.cells.push_back(bar(most > 0 ? entry["peak"].get<double>() / most : 0));
  const Json weights = entry["devices"].empty() ? Json() : entry["devices"][0]["weight_bytes"];
  row.cells.push_back(mebibytes(weights));
  row.cells.push_back(fmt::format("{} calls to {} tokens", entry["calls"].dump(), entry["tokens"].dump()));
  row.cells.push_back(wrapped(code(entry["label"])));
  row.cells.push_back(hash(entry["receipt"]));
  return row;
}

std::string growth_html(const Json& report, const Json& entry, Plots& plots) {
  const Json& held = entry["held"];
  Plots::Series samples{.label = "held after each call",
                        .points = {{"x", held["call"]}, {"y", Json::array()}}};
  for (const Json& bytes : held["bytes"]) samples.points["y"].push_back(bytes.get<double>() / kMebibyte);
  Plots::Series blocks{
      .label = "block medians", .points = nullptr, .line = {{"x", Json::array()}, {"y", Json::array()}}};
  const double block = entry["block_calls"].get<double>();
  for (std::size_t i = 0; i < entry["block_medians_bytes"].size(); ++i) {
    blocks.line["x"].push_back((static_cast<double>(i) + 0.5) * block);
    blocks.line["y"].push_back(entry["block_medians_bytes"][i].get<double>() / kMebibyte);
  }
  const Json& interval = entry["interval"];
  const std::string slope =
      fmt::format("{:.1f} bytes a call, {:.1f} % interval {:.1f} to {:.1f}; the limit is {:.0f}",
                  entry["slope_bytes_per_call"].get<double>(), 100 * interval["confidence"].get<double>(),
                  interval["low"].get<double>(), interval["high"].get<double>(),
                  entry["threshold_bytes_per_call"].get<double>());
  return fmt::format(
             "<article><h3>{} {}</h3>\n<p>{}. {} calls of {} to {} tokens, {} different lengths; {:.0f} KiB "
             "more at the end "
             "than at the start; receipt {}, {}</p>\n",
             run_of(report, entry), html::verdict(text(entry["verdict"])), slope, entry["calls"].dump(),
             entry["shortest"].dump(), entry["longest"].dump(), entry["distinct_lengths"].dump(),
             entry["total_bytes"].get<double>() / 1024, hash(entry["receipt"]), text(entry["made"])) +
         plots.figure("Bytes that the process holds of its own", "Memory held after each call: " + slope,
                      "call", "MiB", {samples, blocks}, false) +
         "</article>\n";
}

/// What a line took as a bar, its floor as a mark.
std::string gauge(const Json& line, double longest) {
  const double scale = longest > 0 ? 100 / longest : 0;
  return fmt::format(
      "<span class=\"gauge\" aria-hidden=\"true\"><i class=\"bar\" style=\"width:{:.2f}%\"></i><i "
      "class=\"floor\" "
      "style=\"left:{:.2f}%\"></i></span>",
      std::min(100.0, scale * line["milliseconds"].get<double>()),
      std::min(100.0, scale * line["floor_milliseconds"].get<double>()));
}

html::Row profile_row(const Json& line, double longest) {
  const double arithmetic = line["arithmetic_milliseconds"].get<double>();
  const double movement = line["movement_milliseconds"].get<double>();
  const double seconds = line["milliseconds"].get<double>() / 1e3;
  return {.cells = {
              code(line["op"]), code(line["form"]), text(line["shape"]), number(line["calls"]),
              milliseconds(line["milliseconds"].get<double>()), gauge(line, longest),
              fmt::format("{:.1f}", 100 * line["share"].get<double>()),
              milliseconds(line["floor_milliseconds"].get<double>()),
              arithmetic >= movement ? "arithmetic" : "memory",
              line["times_floor"].is_null() ? "–" : fmt::format("{:.2f}", line["times_floor"].get<double>()),
              fmt::format("{:.1f}", seconds > 0 ? line["operations"].get<double>() / seconds / kGiga : 0),
              fmt::format("{:.1f}", seconds > 0 ? line["bytes"].get<double>() / seconds / kGiga : 0),
              text(line["parts"])}};
}

std::string profile_html(const Json& report, const Json& entry) {
  html::Table table{.caption = "Wall time by op, form and shape",
                    .columns = {{"Op"},
                                {"Form"},
                                {"Shape"},
                                {"Calls", true},
                                {"ms", true},
                                {"Time, and its floor as a mark"},
                                {"Share %", true},
                                {"Floor ms", true},
                                {"Bound by"},
                                {"Times floor", true},
                                {"GFLOP/s", true},
                                {"GB/s", true},
                                {"Parts"}},
                    .rows = {}};
  double longest = 0;
  for (const Json& line : entry["lines"]) longest = std::max(longest, line["milliseconds"].get<double>());
  for (const Json& line : entry["lines"]) table.rows.push_back(profile_row(line, longest));
  const std::string what = entry["tokens"].is_null() ? "a request " + hash(entry["request"])
                                                     : fmt::format("{} tokens", entry["tokens"].dump());
  const std::string ceilings = entry["ceilings"].get<std::string>().size() == 64
                                   ? "those of receipt " + hash(entry["ceilings"])
                                   : text(entry["ceilings"]);
  return fmt::format(
      "<article><h3>{}</h3>\n<p>A pass over {} took {} ms on average of {}; {} ms of it in no op. Ceilings: "
      "{}; "
      "receipt {}, {}</p>\n{}</article>\n",
      run_of(report, entry), what, milliseconds(entry["wall"].get<double>()), entry["passes"].dump(),
      milliseconds(entry["unaccounted"].get<double>()), ceilings, hash(entry["receipt"]), text(entry["made"]),
      html::table(table));
}

html::Row rate_row(std::vector<std::string> first, const Json& rate, double unit) {
  for (const char* field : {"median", "max"})
    first.push_back(fmt::format("{:.3g}", rate[field].get<double>() / unit));
  const double median = rate["median"].get<double>();
  const double width = rate["max"].get<double>() - rate["min"].get<double>();
  first.push_back(fmt::format("{:.1f}", median > 0 ? 100 * width / median : 0));
  return {.cells = std::move(first)};
}

std::string ceilings_html(const Json& entry) {
  html::Table peaks{.caption = "Arithmetic",
                    .columns = {{"Kernel"},
                                {"Precision"},
                                {"Threads", true},
                                {"TFLOP/s", true},
                                {"Best", true},
                                {"Spread %", true}},
                    .rows = {}};
  for (const Json& peak : entry["peaks"]) {
    peaks.rows.push_back(rate_row({code(peak["kernel"]), text(peak["precision"]), peak["threads"].dump()},
                                  peak["operations_per_second"], kTera));
  }
  html::Table memory{.caption = "Memory",
                     .columns = {{"Level"},
                                 {"Access"},
                                 {"Threads", true},
                                 {"Working set KiB", true},
                                 {"GB/s", true},
                                 {"Best", true},
                                 {"Spread %", true}},
                     .rows = {}};
  for (const Json& rate : entry["bandwidths"]) {
    memory.rows.push_back(rate_row({text(rate["level"]), text(rate["access"]), rate["threads"].dump(),
                                    fmt::format("{:.0f}", rate["working_set_bytes"].get<double>() / 1024)},
                                   rate["bytes_per_second"], kGiga));
  }
  return fmt::format(
      "<article><h3>Measured {}</h3>\n<p>Receipt {}. Medians; the spread is best minus worst over the "
      "median.</p>\n{}{}"
      "</article>\n",
      text(entry["made"]), hash(entry["receipt"]), html::table(peaks), html::table(memory));
}

/// Newest first.
template <class Render>
std::string each(const Json& entries, const Render& render) {
  std::string html;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) html += render(*entry);
  return html;
}

}  // namespace

Section call_cost_section(const Json& report, Plots& plots) {
  return {.id = "call-cost",
          .heading = "Call cost",
          .intro =
              "The time of one call over its tokens. These commands take no lock: they say where to look, "
              "and no form "
              "is called faster by them.",
          .body = each(report["call_cost"],
                       [&](const Json& cost) { return call_cost_html(report, cost, plots); }) +
                  each(report["bench"], [&](const Json& bench) { return bench_html(report, bench); })};
}

Section footprint_section(const Json& report) {
  Section section{.id = "footprint",
                  .heading = "Footprint",
                  .intro = "Resident MiB of a fresh process that does nothing but this.",
                  .body = {}};
  if (report["footprint"].empty()) return section;
  double most = 0;
  for (const Json& entry : report["footprint"]) most = std::max(most, entry["peak"].get<double>());
  html::Table table{.caption = "Memory of a process",
                    .columns = {{"Run"},
                                {"Start", true},
                                {"Loaded", true},
                                {"First use", true},
                                {"End", true},
                                {"Peak", true},
                                {"Peak, compared"},
                                {"Weights", true},
                                {"Calls"},
                                {"Forms"},
                                {"Receipt"}},
                    .rows = {}};
  for (auto entry = report["footprint"].rbegin(); entry != report["footprint"].rend(); ++entry) {
    table.rows.push_back(footprint_row(report, *entry, most));
  }
  section.body = html::table(table);
  return section;
}

Section growth_section(const Json& report, Plots& plots) {
  return {
      .id = "growth",
      .heading = "Growth",
      .intro = "Does the process keep growing while call lengths keep changing?",
      .body = each(report["growth"], [&](const Json& entry) { return growth_html(report, entry, plots); })};
}

Section profile_section(const Json& report) {
  return {.id = "profile",
          .heading = "Profile",
          .intro =
              "Where a pass goes, each line against the least that this machine would need: 1.0 cannot get "
              "faster here.",
          .body = each(report["profile"], [&](const Json& entry) { return profile_html(report, entry); })};
}

Section ceilings_section(const Json& report) {
  return {.id = "ceilings",
          .heading = "Ceilings",
          .intro = "What the device can do at best.",
          .body = each(report["ceilings"], ceilings_html)};
}

}  // namespace assay::lab::page
