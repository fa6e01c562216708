#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "lab/report/entry_reader.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

/// Points that a plot of a growing process shows; more are not told apart on a page.
constexpr std::size_t kHeldPoints = 600;

Json run_fields(JsonReader& subject) {
  return {{"model", model_key(subject.required<JsonReader>("model"))},
          {"precision", subject.required<std::string>("precision")},
          {"threads", subject.required<std::uint64_t>("threads")},
          {"forms", subject.required<std::string>("forms")}};
}

template <class T>
Json numbers(JsonReader& from, std::initializer_list<const char*> fields) {
  Json taken = Json::object();
  for (const char* field : fields) taken[field] = from.required<T>(field);
  return taken;
}

Json fit_json(JsonReader fit) {
  auto line = fit.required<JsonReader>("line");
  auto interval = line.required<JsonReader>("b_interval");
  Json json{{"chosen", fit.required<std::string>("chosen")},
            {"line", numbers<double>(line, {"a", "b", "residual_rms"})},
            {"tiles", nullptr}};
  json["line"]["b_interval"] = numbers<double>(interval, {"low", "high"});
  if (!fit.required<nlohmann::json>("tiles").is_null()) {
    auto tiles = fit.required<JsonReader>("tiles");
    json["tiles"] = numbers<double>(tiles, {"tile", "a", "b", "c", "residual_rms"});
  }
  auto pieces = fit.required<JsonReader>("pieces");
  json["pieces"] = numbers<double>(pieces, {"residual_rms"});
  json["pieces"]["pieces"] = Json::array();
  for (JsonReader& piece : pieces.required<std::vector<JsonReader>>("pieces")) {
    json["pieces"]["pieces"].push_back(numbers<double>(piece, {"first", "last", "a", "b"}));
  }
  return json;
}

Json curve_json(JsonReader& curve) {
  Json points = Json::array();
  for (JsonReader& point : curve.required<std::vector<JsonReader>>("points")) {
    Json row{{"tokens", point.required<std::uint64_t>("tokens")}};
    row.update(numbers<double>(point, {"median", "p10", "p90", "min", "max"}));
    points.push_back(std::move(row));
  }
  return {{"label", curve.required<std::string>("label")},
          {"forms", curve.required<std::string>("forms")},
          {"fit", fit_json(curve.required<JsonReader>("fit"))},
          {"points", std::move(points)}};
}

/// Evenly thinned, with the last one kept.
Json held_json(const std::vector<double>& bytes) {
  const std::size_t step = std::max<std::size_t>(1, (bytes.size() + kHeldPoints - 1) / kHeldPoints);
  Json calls = Json::array();
  Json held = Json::array();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % step != 0 && i + 1 != bytes.size()) continue;
    calls.push_back(i + 1);
    held.push_back(bytes[i]);
  }
  return {{"call", std::move(calls)}, {"bytes", std::move(held)}};
}

Json line_json(JsonReader& line) {
  Json row{{"op", line.required<std::string>("op")},
           {"form", line.required<std::string>("form")},
           {"shape", line.required<std::string>("shape")},
           {"parts", line.required<std::string>("parts")}};
  row.update(
      numbers<double>(line, {"calls", "milliseconds", "share", "operations", "bytes", "floor_milliseconds",
                             "arithmetic_milliseconds", "movement_milliseconds"}));
  const auto factor = line.required<nlohmann::json>("times_floor");
  row["times_floor"] = factor.is_number() ? Json(factor.get<double>()) : Json();
  return row;
}

Json summary_json(JsonReader summary) {
  return numbers<double>(summary, {"median", "min", "max", "p10", "p90", "spread"});
}

}  // namespace

Json call_cost_entry(JsonReader subject, JsonReader result) {
  Json entry{{"model", model_key(subject.required<JsonReader>("model"))},
             {"precision", subject.required<std::string>("precision")},
             {"threads", subject.required<std::uint64_t>("threads")},
             {"rounds", subject.required<std::uint64_t>("rounds")},
             {"curves", Json::array()}};
  for (JsonReader& curve : result.required<std::vector<JsonReader>>("curves")) {
    entry["curves"].push_back(curve_json(curve));
  }
  return entry;
}

Json footprint_entry(JsonReader subject, JsonReader result) {
  Json entry = run_fields(subject);
  entry.update(numbers<std::uint64_t>(subject, {"tokens", "calls"}));
  auto process = result.required<JsonReader>("process");
  entry["stages"] = Json::array();
  for (JsonReader& stage : process.required<std::vector<JsonReader>>("stages")) {
    Json row{{"stage", stage.required<std::string>("stage")}};
    row.update(numbers<std::uint64_t>(
        stage, {"resident", "proportional", "anonymous", "file_mapped", "swapped", "peak"}));
    entry["stages"].push_back(std::move(row));
  }
  entry["peak"] = process.required<std::uint64_t>("peak");
  entry["devices"] = Json::array();
  for (JsonReader& device : result.required<std::vector<JsonReader>>("devices")) {
    Json row{{"device", device.required<std::string>("device")}};
    row.update(numbers<std::uint64_t>(device, {"weight_bytes", "scratch_bytes"}));
    entry["devices"].push_back(std::move(row));
  }
  return entry;
}

Json growth_entry(JsonReader subject, JsonReader result) {
  Json entry = run_fields(subject);
  entry["verdict"] = result.required<std::string>("verdict");
  entry["slope_bytes_per_call"] = result.required<double>("slope_bytes_per_call");
  auto interval = result.required<JsonReader>("interval");
  entry["interval"] = numbers<double>(interval, {"low", "high", "confidence"});
  entry.update(
      numbers<double>(result, {"threshold_bytes_per_call", "total_bytes", "before_bytes", "trimmed_bytes"}));
  entry.update(
      numbers<std::uint64_t>(result, {"calls", "distinct_lengths", "shortest", "longest", "block_calls"}));
  entry["steps"] = Json::array();
  for (JsonReader& step : result.required<std::vector<JsonReader>>("steps")) {
    entry["steps"].push_back(
        {{"call", step.required<std::uint64_t>("call")}, {"bytes", step.required<double>("bytes")}});
  }
  entry["block_medians_bytes"] = result.required<std::vector<double>>("block_medians_bytes");
  entry["held"] = held_json(result.required<std::vector<double>>("held_bytes"));
  return entry;
}

Json profile_entry(JsonReader subject, JsonReader result) {
  Json entry = run_fields(subject);
  entry["passes"] = subject.required<std::uint64_t>("passes");
  entry.update(take(subject, {"tokens", "request"}));
  entry["ceilings"] = subject.required<std::string>("ceilings");
  entry["wall"] = result.required<double>("wall_milliseconds");
  entry["unaccounted"] = result.required<double>("unaccounted_milliseconds");
  entry["passes_milliseconds"] = result.required<std::vector<double>>("passes_milliseconds");
  entry["lines"] = Json::array();
  for (JsonReader& line : result.required<std::vector<JsonReader>>("lines"))
    entry["lines"].push_back(line_json(line));
  return entry;
}

Json ceilings_entry(JsonReader subject, JsonReader result) {
  auto caches = result.required<JsonReader>("caches");
  Json entry{{"threads", subject.required<std::vector<std::uint64_t>>("threads")},
             {"caches", numbers<std::uint64_t>(caches, {"l1_bytes", "l2_bytes", "l3_bytes"})},
             {"peaks", Json::array()},
             {"bandwidths", Json::array()}};
  for (JsonReader& peak : result.required<std::vector<JsonReader>>("peaks")) {
    entry["peaks"].push_back(
        {{"kernel", peak.required<std::string>("kernel")},
         {"precision", peak.required<std::string>("precision")},
         {"threads", peak.required<std::uint64_t>("threads")},
         {"operations_per_second", summary_json(peak.required<JsonReader>("operations_per_second"))}});
  }
  for (JsonReader& rate : result.required<std::vector<JsonReader>>("bandwidths")) {
    entry["bandwidths"].push_back(
        {{"level", rate.required<std::string>("level")},
         {"access", rate.required<std::string>("access")},
         {"threads", rate.required<std::uint64_t>("threads")},
         {"working_set_bytes", rate.required<std::uint64_t>("working_set_bytes")},
         {"bytes_per_second", summary_json(rate.required<JsonReader>("bytes_per_second"))}});
  }
  return entry;
}

Json bench_entry(JsonReader subject, JsonReader result) {
  Json entry = run_fields(subject);
  entry["repeat"] = subject.required<std::uint64_t>("repeat");
  entry.update(numbers<std::uint64_t>(result, {"parameters", "weight_bytes", "peak_bytes"}));
  entry["load_seconds"] = result.required<double>("load_seconds");
  entry["cases"] = Json::array();
  for (JsonReader& one : result.required<std::vector<JsonReader>>("cases")) {
    Json row = numbers<std::uint64_t>(one, {"row_tokens", "questions", "total_tokens"});
    auto time = one.required<JsonReader>("milliseconds");
    row.update(numbers<double>(time, {"median", "min", "max"}));
    row.update(numbers<double>(one, {"tokens_per_second", "tflops"}));
    row["ops"] = Json::array();
    for (JsonReader& op : one.required<std::vector<JsonReader>>("ops")) {
      row["ops"].push_back({{"op", op.required<std::string>("op")}, {"share", op.required<double>("share")}});
    }
    entry["cases"].push_back(std::move(row));
  }
  return entry;
}

}  // namespace assay::lab
