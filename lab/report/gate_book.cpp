#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lab/report/sections.hpp"
#include "lab/selection/findings.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

std::string text_or_nothing(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

ops::Precision precision_named(const Json& name) {
  return name == ops::to_string(ops::Precision::fp32) ? ops::Precision::fp32 : ops::Precision::bf16;
}

bool of_op(const Json& gate) {
  return gate["type"] == "op";
}

bool has_form(const Json& gate, const std::string& op, const std::string& form) {
  const FormsByOp forms = forms_by_op(gate["forms"].get<std::string>());
  const auto found = forms.find(op);
  return found != forms.end() && found->second == form;
}

}  // namespace

GateBook::Key GateBook::key_of(const Json& gate) {
  return {gate["gate_sha256"].get<std::string>(), text_or_nothing(gate["fixture_sha256"]),
          gate["precision"].get<std::string>(), gate["forms"].get<std::string>()};
}

GateBook::GateBook(const Json& gates) {
  for (const Json& gate : gates) latest_[key_of(gate)] = &gate;
}

bool GateBook::latest(const Json& gate) const {
  const auto found = latest_.find(key_of(gate));
  return found != latest_.end() && (*found->second)["receipt"] == gate["receipt"];
}

std::string GateBook::of_run(const std::string& forms, const std::string& precision) const {
  bool passed = false;
  for (const auto& [key, gate] : latest_) {
    if (of_op(*gate) || (*gate)["precision"] != precision || (*gate)["forms"] != forms) continue;
    if ((*gate)["result"] == "FAIL") return "FAIL";
    passed = true;
  }
  bool all = true;
  for (const auto& [op, form] : forms_by_op(forms)) {
    const Json* gate = of_form(op, form, precision);
    if (gate != nullptr && (*gate)["result"] == "FAIL") return "FAIL";
    all = all && gate != nullptr;
  }
  if (passed) return "PASS";
  return all ? "ops passed" : "no gate";
}

const Json* GateBook::of_form(const std::string& op, const std::string& form,
                              const std::string& precision) const {
  const Json* found = nullptr;
  for (const auto& [key, gate] : latest_) {
    if (!of_op(*gate) || (*gate)["op"] != op) continue;
    if (!op_gate_counts(op, precision_named((*gate)["precision"]), precision_named(precision))) continue;
    if (!has_form(*gate, op, form)) continue;
    if (found == nullptr || (*found)["made"] < (*gate)["made"]) found = gate;
  }
  return found;
}

std::vector<const Json*> GateBook::runs_with(const std::string& op, const std::string& form,
                                             const std::string& precision) const {
  std::vector<const Json*> runs;
  for (const auto& [key, gate] : latest_) {
    if (!of_op(*gate) && (*gate)["precision"] == precision && has_form(*gate, op, form)) runs.push_back(gate);
  }
  return runs;
}

Json default_forms(const std::vector<ops::FormListing>& listings) {
  Json forms{{"fp32", Json::object()}, {"bf16", Json::object()}};
  for (const ops::FormListing& listing : listings) {
    if (listing.selected_fp32) forms["fp32"][std::string(listing.op)] = listing.info.name;
    if (listing.selected_bf16) forms["bf16"][std::string(listing.op)] = listing.info.name;
  }
  return forms;
}

std::string label_of(const std::string& forms, const std::string& precision, const Json& defaults) {
  std::vector<std::string> parts;
  const Json ordinary = defaults.value(precision, Json::object());
  for (const auto& [op, form] : forms_by_op(forms)) {
    if (ordinary.value(op, std::string()) != form) parts.push_back(op + "=" + form);
  }
  return parts.empty() ? "default forms" : fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace assay::lab
