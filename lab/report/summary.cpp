#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "lab/report/sections.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

std::size_t count_if(const Json& rows, const char* field, const Json& value) {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [&](const Json& row) { return row[field] == value; }));
}

/// Why files are refused, in words; see RefusedFile.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kCauses{{
    {"bytes", "whose bytes are not those of a receipt by that name"},
    {"contents", "whose fields are not those of its kind, or contradict each other"},
    {"device", "of another device"},
    {"model", "about another model"},
    {"gate", "by a gate that has changed since or that no file fixes"},
    {"build", "made by another build (--build chooses)"},
    {"missing", "named by a sweep but not there"},
    {"record", "a selection or a ledger that cannot be taken"},
}};

/// What a reader must not overlook.
class Attention {
 public:
  explicit Attention(const Json& report) : report_(report) {}

  Json list() {
    gates();
    windows();
    costs();
    records();
    return std::move(list_);
  }

 private:
  void add(const char* tone, const char* section, std::string text) {
    list_.push_back({{"tone", tone}, {"section", section}, {"text", std::move(text)}});
  }

  void gates() {
    for (const Json& gate : report_["gates"]) {
      if (!gate["latest"].get<bool>() || gate["result"] == "PASS") continue;
      add("bad", "gates",
          fmt::format("Gate {} failed: {}, {}{}", gate["gate"].get<std::string>(),
                      gate["label"].get<std::string>(), gate["precision"].get<std::string>(),
                      gate["run"] == "PASS" ? "; a run that is wrong on purpose passed it" : ""));
    }
  }

  void windows() {
    for (const Json& window : report_["windows"]) {
      const auto plan = window["plan"].get<std::string>();
      if (!window["clean"].get<bool>()) {
        add("open", "windows", fmt::format("Window {} was contended: its times are no evidence", plan));
      }
      const std::size_t suspicious = count_if(window["pairs"], "suspicious", true);
      if (suspicious > 0) {
        add("open", "windows",
            fmt::format("Window {} has {} pair{} too far apart to be believed without a look", plan,
                        suspicious, suspicious == 1 ? "" : "s"));
      }
    }
  }

  void costs() {
    for (const Json& growth : report_["growth"]) {
      if (growth["verdict"] == "not growing") continue;
      const bool growing = growth["verdict"] == "growing";
      add(growing ? "bad" : "open", "growth",
          fmt::format("Memory while call lengths change: {}, {:.0f} bytes a call",
                      growth["verdict"].get<std::string>(), growth["slope_bytes_per_call"].get<double>()));
    }
  }

  void records() {
    refused();
    if (report_["about"]["build"] == "any") {
      add("open", "sources", "Receipts of several builds may stand side by side here");
    }
    if (report_["selection"].is_object() && !report_["selection"]["differences"].empty()) {
      add("open", "selection",
          fmt::format("The selection and the receipts here disagree: {}",
                      counted(report_["selection"]["differences"].size(), "choice")));
    }
    if (report_["ledger"].is_object() && !report_["ledger"]["problems"].empty()) {
      add("bad", "experiments",
          fmt::format("The ledger does not pass its audit: {}",
                      counted(report_["ledger"]["problems"].size(), "problem")));
    }
  }

  void refused() {
    std::map<std::string, std::size_t> causes;
    for (const Json& file : report_["refused"]) ++causes[file["cause"].get<std::string>()];
    for (const auto& [cause, words] : kCauses) {
      const auto found = causes.find(std::string(cause));
      if (found == causes.end()) continue;
      add(cause == "bytes" || cause == "contents" ? "bad" : "open", "refused",
          fmt::format("Refused and used nowhere here: {}, {}", counted(found->second, "file"), words));
    }
  }

  const Json& report_;
  Json list_ = Json::array();
};

Json experiments(const Json& ledger) {
  std::map<std::string, std::size_t> counts;
  if (ledger.is_object()) {
    for (const Json& experiment : ledger["experiments"]) ++counts[experiment["evidence"].get<std::string>()];
  }
  return counts;
}

}  // namespace

Json summary_of(const Json& report) {
  Json latest = Json::array();
  for (const Json& gate : report["gates"]) {
    if (gate["latest"].get<bool>()) latest.push_back(gate["result"]);
  }
  const auto passed = std::count(latest.begin(), latest.end(), "PASS");
  Json fastest = Json::array();
  for (const Json& window : report["windows"]) {
    for (const Json& row : window["fastest"]) fastest.push_back(row);
  }
  std::stable_sort(fastest.begin(), fastest.end(), [](const Json& a, const Json& b) {
    return a["clean"].get<bool>() && !b["clean"].get<bool>();
  });
  return {{"gates",
           {{"passed", passed},
            {"failed", static_cast<std::ptrdiff_t>(latest.size()) - passed},
            {"not_run", report["not_run"].size()}}},
          {"windows",
           {{"clean", count_if(report["windows"], "clean", true)},
            {"contended", count_if(report["windows"], "clean", false)}}},
          {"receipts",
           {{"used", count_if(report["sources"], "kind", "receipt")}, {"refused", report["refused"].size()}}},
          {"experiments", experiments(report["ledger"])},
          {"fastest", std::move(fastest)},
          {"attention", Attention(report).list()}};
}

}  // namespace assay::lab
