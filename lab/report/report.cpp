#include "lab/report/report.hpp"

#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/path.hpp"
#include "lab/ledger/ledger.hpp"
#include "lab/receipt/build_info.hpp"
#include "lab/report/sections.hpp"
#include "lab/selection/select.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

Json about_json(const Admission& admission) {
  Json device = admission.machine.is_object() ? admission.machine : Json{{"id", admission.scope.device}};
  Json models = Json::array();
  for (const ReportModel& model : admission.scope.models) {
    models.push_back({{"key", model.key}, {"name", model.name}});
  }
  return {{"device", std::move(device)}, {"models", std::move(models)}, {"build", admission.scope.build}};
}

Json bars_json(const Json& gates) {
  Json bars = Json::array();
  std::set<std::string> seen;
  for (const Json& gate : gates) {
    if (!seen.insert(gate["gate_sha256"].get<std::string>()).second) continue;
    bars.push_back({{"gate", gate["gate"]},
                    {"sha256", gate["gate_sha256"]},
                    {"type", gate["type"]},
                    {"comparator", gate["comparator"]},
                    {"thresholds", gate["thresholds"]}});
  }
  return bars;
}

/// Rows of sweeps that no gate ran for, each once.
Json not_run_json(const Json& sweeps) {
  Json rows = Json::array();
  std::set<std::tuple<std::string, std::string, std::string, std::string>> seen;
  for (const Json& sweep : sweeps) {
    for (Json row : sweep["rows"]) {
      if (row["result"] != "not run") continue;
      const auto key = std::make_tuple(row["gate"].get<std::string>(), row["fixture"].get<std::string>(),
                                       row["precision"].get<std::string>(), row["form"].get<std::string>());
      if (!seen.insert(key).second) continue;
      row.erase("result");
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Json refused_json(const Admission& admission) {
  Json refused = Json::array();
  for (const RefusedFile& file : admission.refused) {
    refused.push_back({{"file", file.file},
                       {"sha256", file.sha256.empty() ? Json() : Json(file.sha256)},
                       {"cause", file.cause},
                       {"reason", file.reason}});
  }
  return refused;
}

/// Sweeps name the receipts of their rows; what they name and is not used here was refused or is missing.
void refuse_missing(const Json& sweeps, const Admission& admission, Json& refused) {
  std::set<std::string> known;
  for (const AdmittedReceipt& admitted : admission.admitted) known.insert(admitted.receipt.sha256);
  for (const RefusedFile& file : admission.refused) known.insert(std::filesystem::path(file.file).stem());
  for (const Json& sweep : sweeps) {
    for (const Json& row : sweep["rows"]) {
      if (!row.contains("receipt") || !known.insert(row["receipt"].get<std::string>()).second) continue;
      refused.push_back(
          {{"file", row["receipt"].get<std::string>() + ".json"},
           {"sha256", row["receipt"]},
           {"cause", "missing"},
           {"reason", fmt::format("a sweep names it as {} of gate {} on {}, but it is not here",
                                  row["result"].get<std::string>(), row["gate"].get<std::string>(),
                                  row["form"].get<std::string>())}});
    }
  }
}

Json sources_json(const Admission& admission, const std::filesystem::path& gates, const Json& bars) {
  Json sources = Json::array();
  for (const AdmittedReceipt& admitted : admission.admitted) {
    sources.push_back(source_of(admitted.receipt.file, "receipt"));
  }
  std::set<std::string> used;
  for (const Json& bar : bars) used.insert(bar["sha256"].get<std::string>());
  for (const auto& file : list_directory(gates)) {
    if (file.extension() != ".json") continue;
    Json source = source_of(file, "gate");
    if (used.contains(source["sha256"].get<std::string>())) sources.push_back(std::move(source));
  }
  return sources;
}

Json program_json() {
  const BuildInfo build = build_info();
  return {{"version", build.version},
          {"commit", build.commit},
          {"modified", build.modified},
          {"build", build.build}};
}

void label_gates(Json& gates, const GateBook& book, const Json& defaults) {
  for (Json& gate : gates) {
    const auto forms = gate["forms"].get<std::string>();
    gate["label"] =
        gate["type"] == "op" ? forms : label_of(forms, gate["precision"].get<std::string>(), defaults);
    gate["latest"] = book.latest(gate);
  }
}

/// What runs of cost receipts and windows are called for short.
void label_runs(Json& report) {
  const Json& defaults = report["default_forms"];
  const auto label = [&](Json& run, const Json& precision) {
    run["label"] = label_of(run["forms"].get<std::string>(), precision.get<std::string>(), defaults);
  };
  for (const char* kind : {"footprint", "growth", "profile", "bench"}) {
    for (Json& entry : report[kind]) label(entry, entry["precision"]);
  }
  for (Json& cost : report["call_cost"]) {
    for (Json& curve : cost["curves"])
      curve["differs"] =
          label_of(curve["forms"].get<std::string>(), cost["precision"].get<std::string>(), defaults);
  }
  for (Json& window : report["windows"]) {
    for (Json& form : window["forms"]) label(form, form["precision"]);
  }
}

const Json kLeftOut{
    "the timed calls of call costs one by one, of which the points here are medians and quantiles",
    "what the machine did in each second of a window",
    "what a red arm's run missed, line by line",
    "samples of growth beyond 600, evenly thinned",
};

constexpr const char* kWhat =
    "Every form of a model's ops that was judged on one device: gates against the author's fp32 oracle, "
    "windows "
    "of timing, what a call costs and holds, the selection, and what was refused and why. Times compare only "
    "inside one window. Every number comes from a file under sources, named by its SHA-256.";

}  // namespace

Json make_report(const ReportOptions& options) {
  const KnownGates known = read_known_gates(options.gates);
  const Admission admission = admit(options.receipts, known, options.scope);
  Json refused = refused_json(admission);
  const Json sweeps = entries_of(admission, ReceiptKind::sweep);
  refuse_missing(sweeps, admission, refused);

  Json report{
      {"schema", "assay.report/1"},     {"what", kWhat},     {"made", utc_now()}, {"program", program_json()},
      {"about", about_json(admission)}, {"summary", nullptr}};
  Json gates = entries_of(admission, ReceiptKind::gate);
  const GateBook book(gates);
  report["bars"] = bars_json(gates);
  const std::vector<ops::FormListing> listings = forms_of_device(admission.machine);
  report["default_forms"] = default_forms(listings);
  label_gates(gates, book, report["default_forms"]);
  report["forms"] = forms_section(admission, known, book, listings);
  report["windows"] = entries_of(admission, ReceiptKind::window);
  for (Json& window : report["windows"]) judge_forms(window, book);
  report["gates"] = std::move(gates);
  report["not_run"] = not_run_json(sweeps);
  report["bisections"] = entries_of(admission, ReceiptKind::bisect);
  report["call_cost"] = entries_of(admission, ReceiptKind::call_cost);
  report["footprint"] = entries_of(admission, ReceiptKind::footprint);
  report["growth"] = entries_of(admission, ReceiptKind::growth);
  report["profile"] = entries_of(admission, ReceiptKind::profile);
  report["ceilings"] = entries_of(admission, ReceiptKind::ceilings);
  report["bench"] = entries_of(admission, ReceiptKind::bench);
  label_runs(report);
  Json sources = sources_json(admission, options.gates, report["bars"]);
  report["ledger"] = ledger_section(options.ledger, admission, refused, sources);
  report["selection"] =
      selection_section(options.selection, admission.scope.device, report["forms"], refused, sources);
  report["refused"] = std::move(refused);
  report["sources"] = std::move(sources);
  report["left_out"] = kLeftOut;
  report["summary"] = summary_of(report);
  return report;
}

Json entries_of(const Admission& admission, ReceiptKind kind) {
  Json entries = Json::array();
  for (const AdmittedReceipt& admitted : admission.admitted) {
    if (admitted.receipt.kind == kind) entries.push_back(admitted.entry);
  }
  return entries;
}

}  // namespace assay::lab
