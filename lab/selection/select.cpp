#include "lab/selection/select.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/path.hpp"
#include "lab/gate/gate_file.hpp"
#include "ops/selection.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;
using FormsByOp = std::map<std::string, std::string>;

constexpr std::array kPrecisions = {ops::Precision::fp32, ops::Precision::bf16};

/// "op=name op=name" to a map.
FormsByOp forms_by_op(const std::string& text) {
  FormsByOp forms;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) forms[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return forms;
}

std::optional<ops::Precision> precision_of(const Json& json) {
  for (const ops::Precision precision : kPrecisions) {
    if (json == ops::to_string(precision)) return precision;
  }
  return std::nullopt;
}

/// A gate receipt, as far as it counts here.
struct GateFinding {
  std::string sha256;
  bool op_gate = false;  ///< of one op; else of a whole run
  std::string op;        ///< of an op gate
  ops::Precision precision = ops::Precision::fp32;
  FormsByOp forms;
  std::string gate;  ///< its name
  bool pass = false;
};

/// Two forms of one op in one clean window.
struct Comparison {
  std::string sha256;
  std::string op;
  ops::Precision precision = ops::Precision::fp32;
  std::string baseline;
  std::string candidate;
  std::string item;
  std::string verdict;  ///< of the candidate: "faster", "slower", "inconclusive"
  double ratio = 0;     ///< baseline's time over candidate's
  double low = 0;
  double high = 0;
  bool suspicious = false;
};

struct Findings {
  std::vector<GateFinding> gates;
  std::vector<Comparison> comparisons;
  std::vector<std::string> unused;
};

void read_gate(const Receipt& receipt, const KnownGates& known, Findings& findings) {
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
  findings.gates.push_back({.sha256 = receipt.sha256,
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

void read_window(const Receipt& receipt, Findings& findings) {
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

Findings read_findings(const std::vector<Receipt>& receipts, const KnownGates& known,
                       const std::string& device) {
  Findings findings;
  for (const Receipt& receipt : receipts) {
    if (receipt.kind != ReceiptKind::gate && receipt.kind != ReceiptKind::window) continue;
    if (receipt.body.at("device").at("id") != device) {
      findings.unused.push_back(fmt::format("{}: of another device, {}", receipt.sha256,
                                            receipt.body.at("device").at("id").dump()));
      continue;
    }
    try {
      if (receipt.kind == ReceiptKind::gate) {
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

/// Judges the forms of one op at one precision.
class Judge {
 public:
  Judge(const Findings& findings, std::string op, ops::Precision precision)
      : findings_(findings), op_(std::move(op)), precision_(precision) {}

  FormJudgement eligibility(const ops::FormListing& form, bool& eligible) const {
    FormJudgement judgement{
        .op = op_, .precision = precision_, .form = std::string(form.info.name), .why = {}};
    eligible = false;
    if (!form.supported) {
      judgement.why = form.why;
      return judgement;
    }
    const GateFinding* latest = nullptr;
    for (const GateFinding& gate : findings_.gates) {
      if (!about(gate, judgement.form)) continue;
      if (gate.op_gate) {
        latest = &gate;
      } else if (!gate.pass) {
        judgement.why = fmt::format("gate {} failed for a run with it", gate.gate);
        judgement.receipts = {gate.sha256};
        return judgement;
      }
    }
    if (latest == nullptr) {
      judgement.why = "no receipt of a gate for it";
      return judgement;
    }
    judgement.receipts = {latest->sha256};
    eligible = latest->pass;
    judgement.why = fmt::format("gate {} {}", latest->gate, latest->pass ? "passed" : "failed");
    return judgement;
  }

  /// The candidate's case against the form to beat: the largest ratio where it wins, nothing otherwise.
  std::optional<double> beats(const std::string& incumbent, FormJudgement& candidate) const {
    std::optional<double> best;
    std::string doubt = fmt::format("never timed beside {} in a clean window", incumbent);
    for (const Comparison& comparison : findings_.comparisons) {
      const auto facing = oriented(comparison, incumbent, candidate.form);
      if (!facing) continue;
      candidate.receipts.push_back(comparison.sha256);
      const std::string measured = fmt::format("{:.3g}x [{:.3g}, {:.3g}] of {} on {}", facing->ratio,
                                               facing->low, facing->high, incumbent, comparison.item);
      if (comparison.suspicious) {
        doubt = measured + " is too good to be believed";
      } else if (facing->verdict == "slower") {
        candidate.why += ", but slower: " + measured;
        return std::nullopt;
      } else if (facing->verdict == "faster") {
        if (!best || facing->ratio > *best) doubt = "faster: " + measured;
        best = std::max(best.value_or(0), facing->ratio);
      } else if (!best) {
        doubt = "not shown to be faster: " + measured;
      }
    }
    candidate.why += ", " + doubt;
    return best;
  }

 private:
  bool about(const GateFinding& gate, const std::string& form) const {
    if (gate.op_gate && gate.op != op_) return false;
    // A form other than a product's computes in fp32 whatever the run's precision, and so does its gate.
    const bool same_arithmetic = gate.precision == precision_ || (gate.op_gate && op_ != "matmul");
    if (!same_arithmetic) return false;
    const auto found = gate.forms.find(op_);
    return found != gate.forms.end() && found->second == form;
  }

  std::optional<Comparison> oriented(const Comparison& comparison, const std::string& incumbent,
                                     const std::string& candidate) const {
    if (comparison.op != op_ || comparison.precision != precision_) return std::nullopt;
    if (comparison.baseline == incumbent && comparison.candidate == candidate) return comparison;
    if (comparison.baseline != candidate || comparison.candidate != incumbent) return std::nullopt;
    Comparison turned = comparison;
    turned.ratio = 1 / comparison.ratio;
    turned.low = 1 / comparison.high;
    turned.high = 1 / comparison.low;
    if (comparison.verdict == "faster") turned.verdict = "slower";
    if (comparison.verdict == "slower") turned.verdict = "faster";
    return turned;
  }

  const Findings& findings_;
  std::string op_;
  ops::Precision precision_;
};

bool serves(const ops::FormListing& form, ops::Precision precision) {
  return form.op != "matmul" || form.info.precision == precision;
}

void judge_op(const Findings& findings, const std::string& op, ops::Precision precision,
              const std::vector<ops::FormListing>& listings, SelectionReport& report) {
  const Judge judge(findings, op, precision);
  std::vector<FormJudgement> judged;
  std::vector<std::size_t> eligible;
  std::optional<std::size_t> incumbent;
  for (const ops::FormListing& form : listings) {
    if (form.op != op || !serves(form, precision)) continue;
    bool may = false;
    judged.push_back(judge.eligibility(form, may));
    if (!may) continue;
    eligible.push_back(judged.size() - 1);
    const bool by_default = precision == ops::Precision::fp32 ? form.selected_fp32 : form.selected_bf16;
    if (by_default) incumbent = judged.size() - 1;
  }
  if (!incumbent && !eligible.empty()) incumbent = eligible.front();
  std::optional<std::size_t> chosen = incumbent;
  double largest = 0;
  for (const std::size_t index : eligible) {
    if (index == *incumbent) continue;
    const auto ratio = judge.beats(judged[*incumbent].form, judged[index]);
    if (ratio && *ratio > largest) {
      largest = *ratio;
      chosen = index;
    }
  }
  if (chosen) judged[*chosen].chosen = true;
  if (chosen && chosen == incumbent) judged[*chosen].why += ", and nothing eligible was shown to be faster";
  report.judgements.insert(report.judgements.end(), judged.begin(), judged.end());
}

Json judgements_json(const SelectionReport& report, bool chosen) {
  Json list = Json::array();
  for (const FormJudgement& judgement : report.judgements) {
    if (judgement.chosen != chosen) continue;
    list.push_back({{"op", judgement.op},
                    {"precision", ops::to_string(judgement.precision)},
                    {"form", judgement.form},
                    {"why", judgement.why},
                    {"receipts", judgement.receipts}});
  }
  return list;
}

}  // namespace

SelectionReport select_by_receipts(const std::vector<Receipt>& receipts, const KnownGates& gates,
                                   const std::string& device) {
  Findings findings = read_findings(receipts, gates, device);
  const std::vector<ops::FormListing> listings = ops::list_forms();
  SelectionReport report{.device = device, .judgements = {}, .unused = std::move(findings.unused)};
  std::vector<std::string> ops;
  for (const ops::FormListing& form : listings) {
    if (std::ranges::find(ops, form.op) == ops.end()) ops.emplace_back(form.op);
  }
  for (const std::string& op : ops) {
    for (const ops::Precision precision : kPrecisions) judge_op(findings, op, precision, listings, report);
  }
  return report;
}

Json to_json(const SelectionReport& report) {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return {{"schema", "assay.selection/1"},
          {"device", report.device},
          {"made", fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", now)},
          {"choices", judgements_json(report, true)},
          {"refused", judgements_json(report, false)}};
}

std::string to_text(const SelectionReport& report) {
  std::string text = fmt::format("selection for {}\n", report.device);
  for (const FormJudgement& judgement : report.judgements) {
    text += fmt::format("{} {:<17} {:<5} {:<15} {}\n", judgement.chosen ? "*" : " ", judgement.op,
                        ops::to_string(judgement.precision), judgement.form, judgement.why);
  }
  for (const std::string& reason : report.unused) text += fmt::format("not used: {}\n", reason);
  return text;
}

KnownGates read_known_gates(const std::filesystem::path& folder) {
  if (!is_directory_path(folder)) {
    throw Error(ErrorKind::missing, {.where = folder.string(), .found = "no folder of gates"});
  }
  KnownGates gates;
  for (const auto& file : list_directory(folder)) {
    if (file.extension() != ".json") continue;
    const GateFile gate = read_gate_file(file);
    gates.emplace(gate.sha256, gate.name);
  }
  return gates;
}

}  // namespace assay::lab
