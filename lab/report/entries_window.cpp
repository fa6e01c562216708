#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "lab/report/entry_reader.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMilliseconds = 1e3;

std::string describe_op(JsonReader& item) {
  std::string text = item.required<std::string>("op") + " alone:";
  const auto sizes = item.required<std::map<std::string, std::uint64_t>>("sizes");
  for (const auto& [name, size] : sizes) text += fmt::format(" {} {}", name, size);
  return text;
}

std::string describe_item(JsonReader& item) {
  if (item.has("op")) return describe_op(item);
  if (item.has("request")) return "the request " + item.required<std::string>("request");
  return fmt::format("a row of {} tokens, questions: {}", item.required<std::uint64_t>("row_tokens"),
                     item.required<std::uint64_t>("questions"));
}

/// The names that times and pairs may use, and the items that are of these models.
class Names {
 public:
  Names(JsonReader& subject, const std::set<std::string>& models) {
    for (JsonReader& item : subject.required<std::vector<JsonReader>>("items")) {
      const auto name = item.required<std::string>("name");
      const std::string model = item.has("op") ? "" : item.required<std::string>("model");
      known_["item"].insert(name);
      if (!model.empty() && !models.contains(model)) {
        left_out.push_back(name);
        continue;
      }
      kept_.insert(name);
      items.push_back(
          {{"item", name}, {"what", describe_item(item)}, {"model", model.empty() ? Json() : Json(model)}});
    }
    for (JsonReader& form : subject.required<std::vector<JsonReader>>("forms")) {
      const auto name = form.required<std::string>("name");
      for (const char* field : {"form", "baseline", "candidate"}) known_[field].insert(name);
    }
  }

  bool keeps(JsonReader& row) { return kept_.contains(named(row, "item")); }

  std::string named(JsonReader& row, const char* field) const {
    auto name = row.required<std::string>(field);
    if (!known_.at(field).contains(name)) {
      throw Error(ErrorKind::malformed, {.where = row.where(field),
                                         .found = fmt::format("'{}'", name),
                                         .expected = "a name of the subject's items and forms"});
    }
    return name;
  }

  Json items = Json::array();
  Json left_out = Json::array();

 private:
  std::map<std::string, std::set<std::string>> known_{
      {"item", {}}, {"form", {}}, {"baseline", {}}, {"candidate", {}}};
  std::set<std::string> kept_;
};

Json forms_json(JsonReader& subject, JsonReader& result) {
  const auto resident = result.required<std::map<std::string, std::uint64_t>>("resident_bytes");
  Json forms = Json::array();
  for (JsonReader& form : subject.required<std::vector<JsonReader>>("forms")) {
    const auto name = form.required<std::string>("name");
    const auto bytes = resident.find(name);
    forms.push_back({{"form", name},
                     {"precision", form.required<std::string>("precision")},
                     {"forms", form.required<std::string>("forms")},
                     {"threads", form.required<std::uint64_t>("threads")},
                     {"call_tokens", form.required<std::uint64_t>("call_tokens")},
                     {"resident_bytes", bytes == resident.end() ? Json() : Json(bytes->second)}});
  }
  return forms;
}

Json times_json(JsonReader& result, Names& names) {
  Json times = Json::array();
  for (JsonReader& cell : result.required<std::vector<JsonReader>>("times")) {
    if (!names.keeps(cell)) continue;
    Json row{{"item", names.named(cell, "item")}, {"form", names.named(cell, "form")}};
    for (const char* field : {"median", "p10", "p90", "spread"}) {
      row[field] = cell.required<double>(field) * kMilliseconds;
    }
    row["count"] = cell.required<std::uint64_t>("count");
    const auto floor = cell.required<nlohmann::json>("floor");
    row["floor"] = floor.is_number() ? Json(floor.get<double>() * kMilliseconds) : Json();
    row["suspicious"] = cell.required<bool>("suspicious");
    times.push_back(std::move(row));
  }
  return times;
}

Json pair_json(JsonReader& pair, const Names& names) {
  const auto interval = pair.required<std::vector<double>>("interval");
  const auto ratio = pair.required<double>("ratio");
  if (interval.size() != 2 || interval[0] <= 0 || interval[1] < interval[0] || ratio <= 0) {
    throw Error(ErrorKind::malformed, {.where = pair.where("interval"),
                                       .found = "no interval of a ratio of times",
                                       .expected = "two numbers above 0, the lower one first"});
  }
  return {{"item", names.named(pair, "item")},
          {"baseline", names.named(pair, "baseline")},
          {"candidate", names.named(pair, "candidate")},
          {"pairs", pair.required<std::uint64_t>("pairs")},
          {"wins", pair.required<std::uint64_t>("wins")},
          {"losses", pair.required<std::uint64_t>("losses")},
          {"ratio", ratio},
          {"interval", interval},
          {"verdict", pair.required<std::string>("verdict")},
          {"suspicious", pair.required<bool>("suspicious")},
          {"why", pair.required<std::vector<std::string>>("why")}};
}

Json samples_json(JsonReader& result, Names& names) {
  std::map<std::pair<std::string, std::string>, std::pair<Json, Json>> series;
  for (JsonReader& sample : result.required<std::vector<JsonReader>>("samples")) {
    if (!names.keeps(sample)) continue;
    auto& [starts, walls] = series[{names.named(sample, "item"), names.named(sample, "form")}];
    starts.push_back(sample.required<double>("start"));
    walls.push_back(sample.required<double>("wall_seconds") * kMilliseconds);
  }
  Json samples = Json::array();
  for (auto& [key, values] : series) {
    samples.push_back({{"item", key.first},
                       {"form", key.second},
                       {"start", std::move(values.first)},
                       {"wall", std::move(values.second)}});
  }
  return samples;
}

Json surroundings_json(JsonReader environment) {
  auto before = environment.required<JsonReader>("before");
  auto whole = environment.required<JsonReader>("whole");
  Json others = Json::array();
  for (JsonReader& other : environment.required<std::vector<JsonReader>>("other_processes")) {
    others.push_back({{"name", other.required<std::string>("name")}, {"cpu", other.required<double>("cpu")}});
  }
  const auto load = before.required<std::vector<double>>("load");
  return {{"cores", environment.required<std::uint64_t>("cores")},
          {"load_before", load.empty() ? Json() : Json(load.front())},
          {"other_cpu", whole.required<double>("other_cpu")},
          {"steal", whole.required<double>("steal")},
          {"available_memory", whole.required<std::uint64_t>("available_memory")},
          {"other_processes", std::move(others)}};
}

void check_contention(const JsonReader& result, bool clean, bool reasons) {
  if (clean != reasons) return;
  throw Error(ErrorKind::mismatch, {.where = result.where("clean"),
                                    .found = clean ? "a clean window with reasons to be contended"
                                                   : "a contended one without reasons",
                                    .expected = "a receipt that does not contradict itself"});
}

}  // namespace

Json window_entry(JsonReader subject, JsonReader result, const std::set<std::string>& models) {
  auto plan = subject.required<JsonReader>("plan");
  auto window = result.required<JsonReader>("window");
  Names names(subject, models);
  const bool clean = result.required<bool>("clean");
  const auto contention = result.required<std::vector<std::string>>("contention");
  check_contention(result, clean, !contention.empty());
  Json entry{{"id", window.required<std::string>("id")},
             {"plan", plan.required<std::string>("name")},
             {"plan_sha256", plan.required<std::string>("sha256")},
             {"device", subject.required<std::string>("device")},
             {"started", window.required<std::string>("started")},
             {"seconds", window.required<double>("seconds")},
             {"clean", clean},
             {"contention", contention}};
  entry.update(take(result, {"order", "rule", "limits", "ceilings", "dropped_samples"}));
  entry["items"] = names.items;
  entry["left_out_items"] = names.left_out;
  entry["forms"] = forms_json(subject, result);
  entry["times"] = times_json(result, names);
  entry["pairs"] = Json::array();
  for (JsonReader& pair : result.required<std::vector<JsonReader>>("pairs")) {
    if (names.keeps(pair)) entry["pairs"].push_back(pair_json(pair, names));
  }
  entry["surroundings"] = surroundings_json(result.required<JsonReader>("environment"));
  entry["samples"] = samples_json(result, names);
  return entry;
}

}  // namespace assay::lab
