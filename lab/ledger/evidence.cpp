#include "lab/ledger/evidence.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

/// A member of a receipt by its path, of the type that is asked for.
class Reader {
 public:
  Reader(const Receipt& receipt, const Json& value, std::string path)
      : receipt_(receipt), value_(value), path_(std::move(path)) {}

  Reader at(const std::string& name) const {
    if (!value_.is_object() || !value_.contains(name)) refuse("no field '" + name + "'");
    return {receipt_, value_[name], path_ + "/" + name};
  }
  std::vector<Reader> items(std::optional<std::size_t> count = std::nullopt) const {
    if (!value_.is_array() || value_.size() != count.value_or(value_.size())) {
      refuse(count ? fmt::format("no list of {}", *count) : "no list");
    }
    std::vector<Reader> list;
    for (std::size_t i = 0; i < value_.size(); ++i) {
      list.emplace_back(receipt_, value_[i], fmt::format("{}/{}", path_, i));
    }
    return list;
  }
  std::string text() const {
    if (!value_.is_string()) refuse("no text");
    return value_.get<std::string>();
  }
  std::string sha256() const {
    constexpr std::size_t kDigits = 64;
    std::string digits = text();
    if (digits.size() != kDigits || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
      refuse("no SHA-256");
    }
    return digits;
  }
  bool boolean() const {
    if (!value_.is_boolean()) refuse("no true or false");
    return value_.get<bool>();
  }
  double number() const {
    if (!value_.is_number() || !std::isfinite(value_.get<double>())) refuse("no finite number");
    return value_.get<double>();
  }

 private:
  [[noreturn]] void refuse(const std::string& found) const {
    throw Error(ErrorKind::malformed,
                {.where = fmt::format("receipt {:.12}…, {}", receipt_.sha256, path_.empty() ? "/" : path_),
                 .found = found,
                 .expected = fmt::format("what a {} receipt holds", to_string(receipt_.kind))});
  }

  const Receipt& receipt_;
  const Json& value_;
  std::string path_;
};

Reader root(const Receipt& receipt) {
  return {receipt, receipt.body, ""};
}

std::optional<double> value_at(const Receipt& receipt, const std::string& pointer) {
  const Json::json_pointer place(pointer);
  if (!receipt.body.contains(place) || !receipt.body.at(place).is_number()) return std::nullopt;
  return receipt.body.at(place).get<double>();
}

PairFinding read_pair(const Reader& pair) {
  const std::vector<Reader> interval = pair.at("interval").items(2);
  PairFinding finding{.item = pair.at("item").text(),
                      .baseline = pair.at("baseline").text(),
                      .candidate = pair.at("candidate").text(),
                      .ratio = pair.at("ratio").number(),
                      .lower = interval[0].number(),
                      .upper = interval[1].number(),
                      .faster = pair.at("verdict").text() == "faster",
                      .doubt = {}};
  if (pair.at("suspicious").boolean()) finding.doubt = "a ratio that the window finds suspicious";
  return finding;
}

}  // namespace

GateFinding read_gate_finding(const Receipt& receipt) {
  const Reader gate = root(receipt).at("subject").at("gate");
  return {.gate_sha256 = gate.at("sha256").sha256(),
          .name = gate.at("name").text(),
          .pass = root(receipt).at("result").at("result").text() == "PASS",
          .forms = root(receipt).at("subject").at("forms").text()};
}

WindowFinding read_window_finding(const Receipt& receipt) {
  const Reader result = root(receipt).at("result");
  WindowFinding finding{.plan_sha256 = root(receipt).at("subject").at("plan").at("sha256").sha256(),
                        .clean = result.at("clean").boolean(),
                        .pairs = {},
                        .forms = {}};
  for (const Reader& form : root(receipt).at("subject").at("forms").items()) {
    finding.forms.emplace(form.at("name").text(), form.at("forms").text());
  }
  for (const Reader& pair : result.at("pairs").items()) finding.pairs.push_back(read_pair(pair));
  for (const Reader& cell : result.at("times").items()) {
    if (!cell.at("suspicious").boolean()) continue;
    for (PairFinding& pair : finding.pairs) {
      const std::string form = cell.at("form").text();
      if (pair.item == cell.at("item").text() && (form == pair.baseline || form == pair.candidate)) {
        pair.doubt = "a time of " + form + " below what the machine can do";
      }
    }
  }
  return finding;
}

Findings read_findings(const Rule& rule, const std::vector<Receipt>& receipts) {
  Findings findings;
  for (const Receipt& receipt : receipts) {
    if (receipt.kind == ReceiptKind::gate) findings.gates.push_back(read_gate_finding(receipt));
    if (receipt.kind == ReceiptKind::window) findings.windows.push_back(read_window_finding(receipt));
    for (std::size_t i = 0; i < rule.values.size(); ++i) {
      if (rule.values[i].kind != to_string(receipt.kind)) continue;
      findings.values.push_back({.clause = i, .value = value_at(receipt, rule.values[i].pointer)});
    }
  }
  return findings;
}

std::string made(const Receipt& receipt) {
  return receipt.body["made"].get<std::string>();
}

std::string device_id(const Receipt& receipt) {
  return root(receipt).at("device").at("id").text();
}

}  // namespace assay::lab
