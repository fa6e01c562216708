#include "lab/selection/findings.hpp"

#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "ops/selection.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

std::optional<ops::Precision> precision_of(const Json& json) {
  for (const ops::Precision precision : {ops::Precision::fp32, ops::Precision::bf16}) {
    if (json == ops::to_string(precision)) return precision;
  }
  return std::nullopt;
}

void read_gate(const Receipt& receipt, const KnownGates& known, SelectionFindings& findings) {
  const Json& subject = receipt.body.at("subject");
  const Json& gate = subject.at("gate");
  if (!gate.at("sha256").is_string() || !known.contains(gate.at("sha256").get<std::string>())) {
    findings.unused.push_back(fmt::format("{}: its gate, {}, is none of those that stand", receipt.sha256,
                                          gate.at("name").get<std::string>()));
    return;
  }
  const auto precision = precision_of(subject.at("precision"));
  if (!precision) {
    findings.unused.push_back(receipt.sha256 + ": no precision that a run has");
    return;
  }
  findings.verdicts.push_back({.sha256 = receipt.sha256,
                               .op_gate = subject.at("type") == "op",
                               .op = subject.value("op", std::string()),
                               .precision = *precision,
                               .forms = forms_by_op(subject.at("forms").get<std::string>()),
                               .gate = gate.at("name").get<std::string>(),
                               .pass = receipt.body.at("result").at("result") == "PASS"});
}

/// The op in which two forms of a plan differ, where they differ in one alone and in nothing else.
std::optional<std::string> one_difference(const Json& a, const Json& b) {
  for (const char* field : {"precision", "threads", "call_tokens"}) {
    if (a.at(field) != b.at(field)) return std::nullopt;
  }
  const FormsByOp first = forms_by_op(a.at("forms").get<std::string>());
  const FormsByOp second = forms_by_op(b.at("forms").get<std::string>());
  std::optional<std::string> op;
  for (const auto& [name, form] : first) {
    const auto other = second.find(name);
    if (other == second.end() || other->second == form) continue;
    if (op) return std::nullopt;
    op = name;
  }
  return op;
}

void read_window(const Receipt& receipt, SelectionFindings& findings) {
  const Json& result = receipt.body.at("result");
  if (!result.at("clean").get<bool>()) {
    findings.unused.push_back(receipt.sha256 + ": a contended window");
    return;
  }
  std::map<std::string, const Json*> forms;
  for (const Json& form : receipt.body.at("subject").at("forms"))
    forms[form.at("name").get<std::string>()] = &form;
  for (const Json& pair : result.at("pairs")) {
    const Json& baseline = *forms.at(pair.at("baseline").get<std::string>());
    const Json& candidate = *forms.at(pair.at("candidate").get<std::string>());
    const auto op = one_difference(baseline, candidate);
    const auto precision = precision_of(baseline.at("precision"));
    if (!op || !precision) continue;
    findings.comparisons.push_back(
        {.sha256 = receipt.sha256,
         .op = *op,
         .precision = *precision,
         .baseline = forms_by_op(baseline.at("forms").get<std::string>()).at(*op),
         .candidate = forms_by_op(candidate.at("forms").get<std::string>()).at(*op),
         .item = pair.at("item").get<std::string>(),
         .verdict = pair.at("verdict").get<std::string>(),
         .ratio = pair.at("ratio").get<double>(),
         .low = pair.at("interval").at(0).get<double>(),
         .high = pair.at("interval").at(1).get<double>(),
         .suspicious = pair.at("suspicious").get<bool>()});
  }
}

}  // namespace

FormsByOp forms_by_op(const std::string& text) {
  FormsByOp forms;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) forms[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return forms;
}

bool op_gate_counts(const std::string& op, ops::Precision gate, ops::Precision run) {
  return gate == run || !ops::has_forms_by_precision(op);
}

SelectionFindings read_selection_findings(const std::vector<Receipt>& receipts, const KnownGates& known,
                                          const std::string& device) {
  SelectionFindings findings;
  for (const Receipt& receipt : receipts) {
    if (receipt.kind != ReceiptKind::gate && receipt.kind != ReceiptKind::window) continue;
    try {
      const Json& id = receipt.body.at("device").at("id");
      if (id != device) {
        findings.unused.push_back(fmt::format("{}: of another device, {}", receipt.sha256, id.dump()));
      } else if (receipt.kind == ReceiptKind::gate) {
        read_gate(receipt, known, findings);
      } else {
        read_window(receipt, findings);
      }
    } catch (const std::exception& error) {
      throw Error(ErrorKind::malformed,
                  {.where = receipt.file.string(),
                   .found = error.what(),
                   .expected = fmt::format("the fields of a {} receipt", to_string(receipt.kind))});
    }
  }
  return findings;
}

}  // namespace assay::lab
