#include <algorithm>
#include <utility>

#include "lab/report/sections.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

Json turned(Json pair) {
  pair["baseline"].swap(pair["candidate"]);
  pair["wins"].swap(pair["losses"]);
  pair["ratio"] = 1 / pair["ratio"].get<double>();
  pair["interval"] = {1 / pair["interval"][1].get<double>(), 1 / pair["interval"][0].get<double>()};
  if (pair["verdict"] == "faster") {
    pair["verdict"] = "slower";
  } else if (pair["verdict"] == "slower") {
    pair["verdict"] = "faster";
  }
  return pair;
}

/// The names of the forms that were timed on an item, the least median first.
std::vector<std::string> by_median(const Json& window, const std::string& item) {
  std::vector<std::pair<double, std::string>> times;
  for (const Json& cell : window["times"]) {
    if (cell["item"] == item)
      times.emplace_back(cell["median"].get<double>(), cell["form"].get<std::string>());
  }
  std::stable_sort(times.begin(), times.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> forms;
  for (auto& [median, form] : times) forms.push_back(std::move(form));
  return forms;
}

bool admitted(const std::string& gates) {
  return gates == "PASS" || gates == "ops passed";
}

Json against(const Json& window, const std::string& item, const std::string& best, const std::string& other) {
  const auto pair = facing(window, item, other, best);
  if (!pair) return nullptr;
  Json json{{"form", other}};
  for (const char* field : {"ratio", "interval", "verdict", "wins", "pairs", "suspicious"})
    json[field] = (*pair)[field];
  return json;
}

Json fastest_on(const Json& window, const std::string& item,
                const std::map<std::string, std::string>& gates) {
  Json row{{"window", window["plan"]},
           {"receipt", window["receipt"]},
           {"clean", window["clean"]},
           {"item", item},
           {"form", nullptr},
           {"gates", nullptr},
           {"next", nullptr},
           {"baseline", nullptr},
           {"unadmitted", Json::array()}};
  std::vector<std::string> ranked;
  for (const std::string& form : by_median(window, item)) {
    if (admitted(gates.at(form))) {
      ranked.push_back(form);
    } else if (ranked.empty()) {
      row["unadmitted"].push_back({{"form", form}, {"gates", gates.at(form)}});
    }
  }
  if (ranked.empty()) return row;
  const std::string& best = ranked.front();
  row["form"] = best;
  row["gates"] = gates.at(best);
  if (ranked.size() > 1) row["next"] = against(window, item, best, ranked[1]);
  const auto first = window["forms"][0]["form"].get<std::string>();
  if (first != best && (ranked.size() < 2 || first != ranked[1]))
    row["baseline"] = against(window, item, best, first);
  return row;
}

}  // namespace

std::optional<Json> facing(const Json& window, const std::string& item, const std::string& baseline,
                           const std::string& candidate) {
  for (const Json& pair : window["pairs"]) {
    if (pair["item"] != item) continue;
    if (pair["baseline"] == baseline && pair["candidate"] == candidate) return pair;
    if (pair["baseline"] == candidate && pair["candidate"] == baseline) return turned(pair);
  }
  return std::nullopt;
}

void judge_forms(Json& window, const GateBook& book) {
  std::map<std::string, std::string> gates;
  for (Json& form : window["forms"]) {
    form["gates"] = book.of_run(form["forms"].get<std::string>(), form["precision"].get<std::string>());
    gates[form["form"].get<std::string>()] = form["gates"].get<std::string>();
  }
  window["fastest"] = Json::array();
  if (gates.size() < 2) return;
  for (const Json& item : window["items"]) {
    window["fastest"].push_back(fastest_on(window, item["item"].get<std::string>(), gates));
  }
}

}  // namespace assay::lab
