#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "lab/report/entry_reader.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void contradiction(const JsonReader& reader, std::string found) {
  throw Error(ErrorKind::mismatch, {.where = reader.where(),
                                    .found = std::move(found),
                                    .expected = "a receipt that does not contradict itself"});
}

/// PASS or FAIL; anything else is no verdict.
bool passed(JsonReader& reader, const char* field) {
  const auto word = reader.required<std::string>(field);
  if (word != "PASS" && word != "FAIL") {
    throw Error(
        ErrorKind::malformed,
        {.where = reader.where(field), .found = fmt::format("'{}'", word), .expected = "PASS or FAIL"});
  }
  return word == "PASS";
}

/// Everything of a comparator's run but the fields named.
Json measures_of(const JsonReader& parent, const std::string& name, const std::set<std::string>& without) {
  JsonReader copy = parent;
  Json measures = Json::object();
  const auto fields = copy.required<std::map<std::string, nlohmann::json>>(name);
  for (const auto& [key, value] : fields) {
    if (!without.contains(key)) measures[key] = Json(value);
  }
  return measures;
}

Json arms_of(JsonReader& result) {
  Json arms = Json::array();
  auto outcomes = result.required<std::map<std::string, JsonReader>>("red_arms");
  JsonReader all = result.required<JsonReader>("red_arms");
  for (auto& [name, arm] : outcomes) {
    arms.push_back({{"arm", name},
                    {"outcome", arm.required<std::string>("outcome")},
                    {"cases_changed", arm.required<std::uint64_t>("cases_changed")},
                    {"measures", measures_of(all, name,
                                             {"arm", "outcome", "cases_changed", "cases_unchanged",
                                              "cases_left_out", "failures"})}});
  }
  return arms;
}

void check_verdict(const JsonReader& result, bool pass, bool run_passed, const Json& arms) {
  const bool all_red =
      std::all_of(arms.begin(), arms.end(), [](const Json& arm) { return arm["outcome"] == "RED"; });
  if (pass && arms.empty()) contradiction(result, "PASS without a red arm");
  if (pass != (run_passed && all_red)) {
    contradiction(result, fmt::format("{} of a run that {}, with {}", pass ? "PASS" : "FAIL",
                                      run_passed ? "passed" : "failed",
                                      all_red ? "every red arm RED" : "a red arm that is not RED"));
  }
}

}  // namespace

Json gate_entry(JsonReader subject, JsonReader result) {
  auto gate = subject.required<JsonReader>("gate");
  auto run = result.required<JsonReader>("run");
  const Json arms = arms_of(result);
  const bool pass = passed(result, "result");
  const bool run_passed = passed(run, "result");
  check_verdict(result, pass, run_passed, arms);
  Json entry{{"gate", gate.required<std::string>("name")},
             {"gate_sha256", gate.required<std::string>("sha256")},
             {"type", subject.required<std::string>("type")}};
  entry.update(take(subject, {"op"}));
  entry["model"] = take(subject, {"model_identity"})["model_identity"];
  entry.update(take(subject, {"fixture", "fixture_sha256"}));
  entry["precision"] = subject.required<std::string>("precision");
  entry["forms"] = subject.required<std::string>("forms");
  entry["comparator"] = result.required<std::string>("comparator");
  entry["thresholds"] = Json(result.required<nlohmann::json>("thresholds"));
  entry["cases"] = run.required<std::uint64_t>("cases");
  entry["measures"] = measures_of(result, "run", {"cases", "failures", "result"});
  entry["failures"] = run.required<std::vector<std::string>>("failures");
  entry["run"] = run_passed ? "PASS" : "FAIL";
  entry["red_arms"] = arms;
  entry["result"] = pass ? "PASS" : "FAIL";
  return entry;
}

Json sweep_entry(JsonReader subject, JsonReader result, const std::set<std::string>& models) {
  std::set<std::string> fixtures{""};
  for (JsonReader& fixture : subject.required<std::vector<JsonReader>>("fixtures")) {
    if (models.contains(fixture.required<std::string>("model_identity"))) {
      fixtures.insert(fixture.required<std::string>("fixture"));
    }
  }
  Json rows = Json::array();
  for (JsonReader& row : result.required<std::vector<JsonReader>>("rows")) {
    if (!fixtures.contains(row.required<std::string>("fixture"))) continue;
    Json entry{{"gate", row.required<std::string>("gate")},
               {"fixture", row.required<std::string>("fixture")},
               {"precision", row.required<std::string>("precision")},
               {"form", row.required<std::string>("form")},
               {"result", row.required<std::string>("result")}};
    if (const auto reason = row.optional<std::string>("reason")) entry["reason"] = *reason;
    if (const auto receipt = row.optional<std::string>("receipt")) entry["receipt"] = *receipt;
    rows.push_back(std::move(entry));
  }
  return {{"rows", std::move(rows)}};
}

Json bisect_entry(JsonReader subject, JsonReader result) {
  auto gate = subject.required<JsonReader>("gate");
  Json entry{{"gate", gate.required<std::string>("name")},
             {"gate_sha256", gate.required<std::string>("sha256")},
             {"model", take(subject, {"model_identity"})["model_identity"]},
             {"fixture", subject.required<std::string>("fixture")},
             {"precision", subject.required<std::string>("precision")},
             {"suspect", subject.required<std::string>("suspect")},
             {"elsewhere", subject.required<std::string>("elsewhere")}};
  for (const char* end : {"everywhere", "nowhere"}) {
    auto trial = result.required<JsonReader>(end);
    entry[end] = {{"result", passed(trial, "result") ? "PASS" : "FAIL"},
                  {"measures", Json(trial.required<nlohmann::json>("measures"))}};
  }
  for (const char* sets : {"layers", "parts"}) {
    entry[sets] = result.required<std::vector<std::vector<std::string>>>(sets);
  }
  entry["runs"] = result.required<std::vector<JsonReader>>("trials").size();
  return entry;
}

}  // namespace assay::lab
