#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "base/sha256.hpp"
#include "lab/json_reader.hpp"
#include "lab/ledger/check.hpp"
#include "lab/ledger/render.hpp"
#include "lab/report/sections.hpp"

/// What a report takes of the records beside receipts: the ledger and the device's selection.
namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

void refuse(Json& refused, const std::filesystem::path& file, const std::string& reason) {
  refused.push_back({{"file", file.string()}, {"sha256", nullptr}, {"cause", "record"}, {"reason", reason}});
}

Json pairs_json(const std::vector<PairFinding>& pairs) {
  Json list = Json::array();
  for (const PairFinding& pair : pairs) {
    list.push_back({{"item", pair.item},
                    {"baseline", pair.baseline},
                    {"candidate", pair.candidate},
                    {"ratio", pair.ratio},
                    {"interval", {pair.lower, pair.upper}},
                    {"doubt", pair.doubt}});
  }
  return list;
}

Json receipts_json(const Experiment& experiment, const std::set<std::string>& used) {
  Json list = Json::array();
  if (!experiment.body().contains("receipts")) return list;
  for (const Json& receipt : experiment.body()["receipts"]) {
    list.push_back({{"sha256", receipt["sha256"]},
                    {"kind", receipt["kind"]},
                    {"used", used.contains(receipt["sha256"].get<std::string>())}});
  }
  return list;
}

Json experiment_json(const LedgerView::Entry& entry, const std::set<std::string>& used) {
  const Experiment& experiment = entry.experiment;
  const bool decided = experiment.state() == ExperimentState::decided;
  return {{"id", experiment.id()},
          {"subject", experiment.text("subject")},
          {"hypothesis", experiment.text("hypothesis")},
          {"mechanism", experiment.text("mechanism")},
          {"risk", experiment.text("risk")},
          {"evidence", decided ? experiment.evidence() : "pending"},
          {"disposition", decided ? experiment.disposition() : std::string(to_string(experiment.state()))},
          {"result", entry.result},
          {"pairs", pairs_json(entry.pairs)},
          {"receipts", receipts_json(experiment, used)}};
}

Json imported_json(const LedgerView::Record& record) {
  Json evidence = Json::object();
  for (const auto& [word, count] : count_values(record.ledger.table, "Evidence")) evidence[word] = count;
  return {
      {"name", record.name}, {"rows", record.ledger.table.rows.size()}, {"evidence", std::move(evidence)}};
}

/// A selection's rows as they are; reading is strict.
Json judged_rows(JsonReader& root, const char* field) {
  Json rows = Json::array();
  for (JsonReader& row : root.required<std::vector<JsonReader>>(field)) {
    rows.push_back({{"op", row.required<std::string>("op")},
                    {"precision", row.required<std::string>("precision")},
                    {"form", row.required<std::string>("form")},
                    {"why", row.required<std::string>("why")},
                    {"receipts", row.required<std::vector<std::string>>("receipts")}});
    row.finish();
  }
  return rows;
}

/// Where a selection chooses what these receipts do not speak for.
Json differences(const Json& choices, const Json& forms) {
  Json list = Json::array();
  for (const Json& choice : choices) {
    const auto same_op = [&](const Json& form) {
      return form["op"] == choice["op"] && form["precision"] == choice["precision"] &&
             form["state"] == "selected";
    };
    const auto selected = std::find_if(forms.begin(), forms.end(), same_op);
    const std::string here = selected == forms.end() ? "none" : (*selected)["form"].get<std::string>();
    if (here == choice["form"].get<std::string>()) continue;
    list.push_back(fmt::format("{} at {}: the selection has {}, the receipts of this report speak for {}",
                               choice["op"].get<std::string>(), choice["precision"].get<std::string>(),
                               choice["form"].get<std::string>(), here));
  }
  return list;
}

Json read_selection(const std::filesystem::path& file, const std::string& device) {
  JsonFile json = read_json_file(file);
  const auto schema = json.root.required<std::string>("schema");
  const auto of = json.root.required<std::string>("device");
  if (schema != "assay.selection/1") {
    throw Error(ErrorKind::unsupported,
                {.where = json.root.where("schema"), .found = schema, .expected = "assay.selection/1"});
  }
  if (of != device) {
    throw Error(ErrorKind::mismatch, {.where = json.root.where("device"), .found = of, .expected = device});
  }
  Json selection{{"file", file.string()},
                 {"made", json.root.required<std::string>("made")},
                 {"choices", judged_rows(json.root, "choices")},
                 {"refused", judged_rows(json.root, "refused")}};
  json.root.finish();
  return selection;
}

}  // namespace

Json source_of(const std::filesystem::path& file, const std::string& kind) {
  const MappedFile mapped = MappedFile::open(file);
  return {{"file", file.string()},
          {"bytes", mapped.bytes().size()},
          {"sha256", sha256_hex(mapped.bytes())},
          {"kind", kind}};
}

Json ledger_section(const std::filesystem::path& folder, const Admission& admission, Json& refused,
                    Json& sources) {
  if (folder.empty() || !is_directory_path(folder / "experiments")) return nullptr;
  std::set<std::string> used;
  for (const AdmittedReceipt& admitted : admission.admitted) used.insert(admitted.receipt.sha256);
  try {
    const Ledger ledger(folder);
    const LedgerView shown = view(ledger);
    const LedgerAudit audit = check(ledger);
    Json section{{"experiments", Json::array()},
                 {"imported", Json::array()},
                 {"problems", audit.problems},
                 {"notes", audit.notes}};
    for (const LedgerView::Entry& entry : shown.entries) {
      section["experiments"].push_back(experiment_json(entry, used));
      sources.push_back(source_of(entry.experiment.file(), "experiment"));
    }
    for (const LedgerView::Record& record : shown.records)
      section["imported"].push_back(imported_json(record));
    return section;
  } catch (const Error& error) {
    refuse(refused, folder, error.what());
    return nullptr;
  }
}

Json selection_section(const std::filesystem::path& file, const std::string& device, const Json& forms,
                       Json& refused, Json& sources) {
  if (file.empty() || !path_exists(file)) return nullptr;
  try {
    Json selection = read_selection(file, device);
    selection["differences"] = differences(selection["choices"], forms);
    sources.push_back(source_of(file, "selection"));
    return selection;
  } catch (const Error& error) {
    refuse(refused, file, error.what());
    return nullptr;
  }
}

}  // namespace assay::lab
