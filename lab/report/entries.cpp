#include "lab/report/entries.hpp"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "lab/report/entry_reader.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

Json fields_of(const Receipt& receipt, const std::set<std::string>& models) {
  JsonReader root = reader_of(receipt);
  auto subject = root.required<JsonReader>("subject");
  auto result = root.required<JsonReader>("result");
  switch (receipt.kind) {
    case ReceiptKind::gate:
      return gate_entry(subject, result);
    case ReceiptKind::sweep:
      return sweep_entry(subject, result, models);
    case ReceiptKind::bisect:
      return bisect_entry(subject, result);
    case ReceiptKind::window:
      return window_entry(subject, result, models);
    case ReceiptKind::call_cost:
      return call_cost_entry(subject, result);
    case ReceiptKind::footprint:
      return footprint_entry(subject, result);
    case ReceiptKind::growth:
      return growth_entry(subject, result);
    case ReceiptKind::profile:
      return profile_entry(subject, result);
    case ReceiptKind::ceilings:
      return ceilings_entry(subject, result);
    case ReceiptKind::bench:
      return bench_entry(subject, result);
  }
  return {};
}

}  // namespace

JsonReader reader_of(const Receipt& receipt) {
  const auto body = std::make_shared<const nlohmann::json>(receipt.body);
  return JsonReader(JsonPlace(body, fmt::format("receipt {:.12}", receipt.sha256), {}));
}

std::string model_key(JsonReader model) {
  if (model.has("identity")) return model.required<std::string>("identity");
  return "synthetic " + model.required<std::string>("shape");
}

Json take(JsonReader& from, std::initializer_list<const char*> fields) {
  Json taken = Json::object();
  for (const char* field : fields) {
    const auto value = from.optional<nlohmann::json>(field);
    taken[field] = value ? Json(*value) : Json();
  }
  return taken;
}

std::set<std::string> models_of(const Receipt& receipt) {
  JsonReader root = reader_of(receipt);
  auto subject = root.required<JsonReader>("subject");
  std::set<std::string> models;
  switch (receipt.kind) {
    case ReceiptKind::gate:
    case ReceiptKind::bisect:
      if (const auto identity = subject.optional<std::string>("model_identity")) models.insert(*identity);
      break;
    case ReceiptKind::sweep:
      for (JsonReader& fixture : subject.required<std::vector<JsonReader>>("fixtures")) {
        models.insert(fixture.required<std::string>("model_identity"));
      }
      break;
    case ReceiptKind::window:
      for (JsonReader& item : subject.required<std::vector<JsonReader>>("items")) {
        if (!item.has("op")) models.insert(item.required<std::string>("model"));
      }
      break;
    case ReceiptKind::ceilings:
      break;
    default:
      models.insert(model_key(subject.required<JsonReader>("model")));
  }
  return models;
}

std::string build_of(const Receipt& receipt) {
  JsonReader root = reader_of(receipt);
  auto program = root.required<JsonReader>("program");
  const auto commit = program.required<std::string>("commit");
  if (commit.empty() || program.required<bool>("modified")) {
    return "program " + program.required<std::string>("sha256");
  }
  return fmt::format("commit {}, {}", commit, program.required<std::string>("build"));
}

Json entry_of(const Receipt& receipt, const std::set<std::string>& models) {
  Json entry{{"receipt", receipt.sha256},
             {"kind", to_string(receipt.kind)},
             {"made", receipt.body.at("made")},
             {"build", build_of(receipt)}};
  entry.update(fields_of(receipt, models));
  return entry;
}

}  // namespace assay::lab
