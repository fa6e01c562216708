#include <iterator>
#include <string>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "lab/window/window.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

Json item_json(const WindowItem& item, const ItemRun& run) {
  Json json{{"name", item.name}};
  if (!item.op.empty()) {
    json["op"] = item.op;
    json["sizes"] = item.sizes;
  } else {
    json["model"] = run.model;
    if (item.shape.empty()) {
      json["request"] = item.request.filename().string();
    } else {
      json["row_tokens"] = item.row_tokens;
      json["questions"] = item.questions;
    }
  }
  json["settling_runs"] = item.settling_runs;
  json["calls"] = item.calls;
  return json;
}

Json subject_json(const WindowReport& report) {
  Json items = Json::array();
  for (std::size_t i = 0; i < report.plan.items.size(); ++i) {
    items.push_back(item_json(report.plan.items[i], report.items[i]));
  }
  Json forms = Json::array();
  for (std::size_t i = 0; i < report.plan.forms.size(); ++i) {
    const WindowForm& form = report.plan.forms[i];
    forms.push_back({{"name", form.name},
                     {"precision", ops::to_string(form.precision)},
                     {"forms", report.forms[i].forms},
                     {"threads", report.forms[i].threads},
                     {"call_tokens", form.call_tokens}});
  }
  return {{"plan",
           {{"name", report.plan.name},
            {"sha256", report.plan.sha256},
            {"file", std::filesystem::path(report.plan.file).filename().string()}}},
          {"device", report.plan.device},
          {"items", std::move(items)},
          {"forms", std::move(forms)}};
}

Json rule_json(const PairRule& rule) {
  return {{"confidence", rule.confidence},
          {"min_wins", rule.min_wins},
          {"min_ratio", rule.min_ratio},
          {"min_pairs", rule.min_pairs},
          {"suspicious_ratio", rule.suspicious_ratio},
          {"resamples", rule.resamples},
          {"seed", rule.seed}};
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json times_json(const WindowReport& report) {
  Json times = Json::array();
  for (const Cell& cell : report.cells) {
    times.push_back({{"item", report.plan.items[cell.item].name},
                     {"form", report.plan.forms[cell.form].name},
                     {"median", cell.wall.median},
                     {"p10", cell.wall.p10},
                     {"p90", cell.wall.p90},
                     {"spread", cell.wall.spread},
                     {"count", cell.wall.count},
                     {"floor", cell.floor_seconds > 0 ? Json(cell.floor_seconds) : Json()},
                     {"suspicious", cell.suspicious}});
  }
  return times;
}

Json pairs_json(const WindowReport& report) {
  Json pairs = Json::array();
  for (const PairCell& pair : report.pairs) {
    const PairResult& result = pair.result;
    pairs.push_back({{"item", report.plan.items[pair.item].name},
                     {"baseline", report.plan.forms[pair.baseline].name},
                     {"candidate", report.plan.forms[pair.candidate].name},
                     {"pairs", result.pairs},
                     {"wins", result.wins},
                     {"losses", result.losses},
                     {"ratio", result.ratio},
                     {"interval", {result.interval.low, result.interval.high}},
                     {"verdict", to_string(result.verdict)},
                     {"suspicious", result.suspicious},
                     {"why", result.why}});
  }
  return pairs;
}

Json samples_json(const WindowReport& report) {
  Json samples = Json::array();
  for (const Sample& sample : report.samples) {
    samples.push_back({{"item", report.plan.items[sample.item].name},
                       {"form", report.plan.forms[sample.form].name},
                       {"process", sample.process},
                       {"repetition", sample.repetition},
                       {"order", sample.order},
                       {"start", sample.start},
                       {"wall_seconds", sample.wall_seconds},
                       {"event_seconds", number_or_null(sample.event_seconds)}});
  }
  return samples;
}

Json result_json(const WindowReport& report) {
  Json resident = Json::object();
  for (std::size_t i = 0; i < report.forms.size(); ++i) {
    resident[report.plan.forms[i].name] = report.forms[i].resident_bytes;
  }
  const StatedCeilings& ceilings = report.plan.ceilings;
  return {{"window", {{"id", report.id}, {"started", report.started}, {"seconds", report.seconds}}},
          {"clean", report.contention.empty()},
          {"contention", report.contention},
          {"order",
           {{"alive", to_string(report.plan.alive)},
            {"processes", report.plan.processes},
            {"repetitions", report.plan.repetitions},
            {"warm_ups", report.plan.warm_ups}}},
          {"rule", rule_json(report.plan.rule)},
          {"ceilings",
           {{"fp32_flops", number_or_null(ceilings.fp32_flops)},
            {"bf16_flops", number_or_null(ceilings.bf16_flops)},
            {"bytes_per_second", number_or_null(ceilings.bytes_per_second)}}},
          {"times", times_json(report)},
          {"pairs", pairs_json(report)},
          {"resident_bytes", std::move(resident)},
          {"dropped_samples", report.dropped},
          {"limits", to_json(report.plan.limits)},
          {"environment", to_json(report.environment)},
          {"samples", samples_json(report)}};
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.4g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.4g} ms", seconds * 1e3);
  return fmt::format("{:.4g} s", seconds);
}

/// Text that came from a plan, on one line whatever is in it.
std::string shown(const Json& text) {
  return printable(text.get<std::string>());
}

/// Two names for one run: what differs between them is the machine's noise.
void append_same_runs(fmt::memory_buffer& out, const Json& forms) {
  const auto run = [](Json form) {
    form.erase("name");
    return form;
  };
  for (std::size_t b = 0; b < forms.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      if (run(forms[a]) != run(forms[b])) continue;
      fmt::format_to(std::back_inserter(out), "    {} and {} are the same run by two names\n",
                     shown(forms[a]["name"]), shown(forms[b]["name"]));
    }
  }
}

void append_times(fmt::memory_buffer& out, const Json& times) {
  fmt::format_to(std::back_inserter(out), "{:<20} {:<20} {:>11} {:>11} {:>11} {:>11} {:>5}\n", "item", "form",
                 "median", "p10", "p90", "spread", "n");
  for (const Json& cell : times) {
    fmt::format_to(std::back_inserter(out), "{:<20} {:<20} {:>11} {:>11} {:>11} {:>11} {:>5}{}\n",
                   shown(cell["item"]), shown(cell["form"]), duration(cell["median"].get<double>()),
                   duration(cell["p10"].get<double>()), duration(cell["p90"].get<double>()),
                   duration(cell["spread"].get<double>()), cell["count"].get<std::size_t>(),
                   cell["suspicious"].get<bool>()
                       ? "  SUSPICIOUS: below the floor of " + duration(cell["floor"].get<double>())
                       : "");
  }
}

void append_pairs(fmt::memory_buffer& out, const Json& pairs) {
  for (const Json& pair : pairs) {
    const std::size_t count = pair["pairs"].get<std::size_t>();
    fmt::format_to(
        std::back_inserter(out), "{}: {} against {}: {}{}, {}/{} won, ratio {:.3f} [{:.3f}, {:.3f}]\n",
        shown(pair["item"]), shown(pair["candidate"]), shown(pair["baseline"]), shown(pair["verdict"]),
        pair["suspicious"].get<bool>() ? " (SUSPICIOUS)" : "", pair["wins"].get<std::size_t>(), count,
        pair["ratio"].get<double>(), pair["interval"][0].get<double>(), pair["interval"][1].get<double>());
    for (const Json& why : pair["why"]) {
      fmt::format_to(std::back_inserter(out), "    {}\n", shown(why));
    }
  }
}

}  // namespace

Json to_receipt(const WindowReport& report) {
  return make_receipt(ReceiptKind::window, subject_json(report), result_json(report));
}

std::string to_text(const Json& receipt) {
  const Json& result = receipt.at("result");
  const bool clean = result.at("clean").get<bool>();
  fmt::memory_buffer out;
  fmt::format_to(std::back_inserter(out), "window {} of plan \"{}\", {:.1f} s: {}\n",
                 shown(result.at("window").at("id")), shown(receipt.at("subject").at("plan").at("name")),
                 result.at("window").at("seconds").get<double>(), clean ? "clean" : "CONTENDED");
  for (const Json& reason : result.at("contention")) {
    fmt::format_to(std::back_inserter(out), "    {}\n", shown(reason));
  }
  if (!clean) {
    for (const Json& other : result.at("environment").at("other_processes")) {
      fmt::format_to(std::back_inserter(out), "    {}: {:.1f} % of the processors\n", shown(other.at("name")),
                     100 * other.at("cpu").get<double>());
    }
  }
  append_same_runs(out, receipt.at("subject").at("forms"));
  append_times(out, result.at("times"));
  append_pairs(out, result.at("pairs"));
  return fmt::to_string(out);
}

}  // namespace assay::lab
