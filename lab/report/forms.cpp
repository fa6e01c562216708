#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "device/cpu_features.hpp"
#include "lab/report/sections.hpp"
#include "lab/selection/select.hpp"
#include "ops/form_listing.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

/// The instruction sets of the device that receipts were made on, as device::describe says them; words of
/// newer programs are none that a form here needs.
device::CpuFeatureSet features_of(const Json& machine) {
  if (!machine.is_object()) return device::cpu_features();
  const std::string described = "+" + machine.value("features", std::string()) + "+";
  device::CpuFeatureSet features = 0;
  for (device::CpuFeatureSet bit = 1; bit != 0; bit <<= 1) {
    if (described.find("+" + device::describe(bit) + "+") != std::string::npos) features |= bit;
  }
  return features;
}

/// What selections are made from.
std::vector<Receipt> judging_receipts(const Admission& admission) {
  std::vector<Receipt> receipts;
  for (const AdmittedReceipt& admitted : admission.admitted) {
    if (admitted.receipt.kind == ReceiptKind::gate || admitted.receipt.kind == ReceiptKind::window) {
      receipts.push_back(admitted.receipt);
    }
  }
  return receipts;
}

Json gates_json(const GateBook& book, const FormJudgement& judgement) {
  const std::string precision(ops::to_string(judgement.precision));
  Json json{{"op", nullptr}, {"runs_passed", 0}, {"runs_failed", 0}};
  if (const Json* gate = book.of_form(judgement.op, judgement.form, precision)) {
    json["op"] = {{"result", (*gate)["result"]}, {"receipt", (*gate)["receipt"]}};
  }
  for (const char* measure : {"max_abs_dp", "mean_of_row_mean_abs_dp"}) json[measure] = nullptr;
  std::size_t passed = 0;
  std::size_t failed = 0;
  for (const Json* run : book.runs_with(judgement.op, judgement.form, precision)) {
    ++((*run)["result"] == "PASS" ? passed : failed);
    for (const char* measure : {"max_abs_dp", "mean_of_row_mean_abs_dp"}) {
      const Json value = (*run)["measures"].value(measure, Json());
      if (!value.is_number()) continue;
      if (json[measure].is_null() || json[measure].get<double>() < value.get<double>()) json[measure] = value;
    }
  }
  json["runs_passed"] = passed;
  json["runs_failed"] = failed;
  return json;
}

Json against_json(const SelectionFindings& findings, const FormJudgement& judgement) {
  Json list = Json::array();
  for (const FormComparison& comparison : findings.comparisons) {
    if (comparison.op != judgement.op || comparison.precision != judgement.precision ||
        comparison.candidate != judgement.form) {
      continue;
    }
    list.push_back({{"baseline", comparison.baseline},
                    {"item", comparison.item},
                    {"ratio", comparison.ratio},
                    {"interval", {comparison.low, comparison.high}},
                    {"verdict", comparison.verdict},
                    {"suspicious", comparison.suspicious},
                    {"receipt", comparison.sha256}});
  }
  return list;
}

const ops::FormListing* listing_of(const std::vector<ops::FormListing>& listings,
                                   const FormJudgement& judgement) {
  const auto found = std::find_if(listings.begin(), listings.end(), [&](const ops::FormListing& listing) {
    return listing.op == judgement.op && listing.info.name == judgement.form;
  });
  return found == listings.end() ? nullptr : &*found;
}

std::string state_of(const FormJudgement& judgement, const Json& gates) {
  if (judgement.chosen) return "selected";
  const bool passed = gates["op"].is_object() && gates["op"]["result"] == "PASS" && gates["runs_failed"] == 0;
  return passed ? "admitted" : "refused";
}

}  // namespace

std::vector<ops::FormListing> forms_of_device(const Json& machine) {
  return ops::list_forms_of(features_of(machine));
}

Json forms_section(const Admission& admission, const KnownGates& gates, const GateBook& book,
                   const std::vector<ops::FormListing>& listings) {
  const std::vector<Receipt> receipts = judging_receipts(admission);
  const SelectionReport report = select_by_receipts(receipts, gates, admission.scope.device, listings);
  const SelectionFindings findings = read_selection_findings(receipts, gates, admission.scope.device);
  Json forms = Json::array();
  for (const FormJudgement& judgement : report.judgements) {
    const ops::FormListing* listing = listing_of(listings, judgement);
    Json row{{"op", judgement.op},
             {"precision", ops::to_string(judgement.precision)},
             {"form", judgement.form},
             {"device", admission.scope.device}};
    if (listing != nullptr) {
      row["summary"] = listing->info.summary;
      row["layout"] = listing->info.layout;
      row["needs"] = device::describe(listing->info.needs);
    }
    Json verdicts = gates_json(book, judgement);
    row["state"] = state_of(judgement, verdicts);
    row["why"] = judgement.why;
    row["receipts"] = judgement.receipts;
    row["gates"] = std::move(verdicts);
    row["against"] = against_json(findings, judgement);
    forms.push_back(std::move(row));
  }
  return forms;
}

}  // namespace assay::lab
