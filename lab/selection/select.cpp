#include "lab/selection/select.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
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

constexpr std::array kPrecisions = {ops::Precision::fp32, ops::Precision::bf16};

/// Judges the forms of one op at one precision.
class Judge {
 public:
  Judge(const SelectionFindings& findings, std::string op, ops::Precision precision)
      : findings_(findings), op_(std::move(op)), precision_(precision) {}

  FormJudgement eligibility(const ops::FormListing& form, bool& eligible) const {
    FormJudgement judgement{
        .op = op_, .precision = precision_, .form = std::string(form.info.name), .why = {}};
    eligible = false;
    if (!form.supported) {
      judgement.why = form.why;
      return judgement;
    }
    const FormVerdict* latest = nullptr;
    for (const FormVerdict& gate : findings_.verdicts) {
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
    for (const FormComparison& comparison : findings_.comparisons) {
      const auto facing = oriented(comparison, incumbent, candidate.form);
      if (!facing) continue;
      candidate.receipts.push_back(comparison.sha256);
      const std::string measured = fmt::format("{:.3g}x [{:.3g}, {:.3g}] of {} on {}", facing->ratio,
                                               facing->low, facing->high, incumbent, comparison.item);
      if (comparison.suspicious) {
        doubt = measured + " is too far from 1 to be believed without a look";
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
  bool about(const FormVerdict& gate, const std::string& form) const {
    if (gate.op_gate && gate.op != op_) return false;
    if (gate.op_gate ? !op_gate_counts(op_, gate.precision, precision_) : gate.precision != precision_)
      return false;
    const auto found = gate.forms.find(op_);
    return found != gate.forms.end() && found->second == form;
  }

  std::optional<FormComparison> oriented(const FormComparison& comparison, const std::string& incumbent,
                                         const std::string& candidate) const {
    if (comparison.op != op_ || comparison.precision != precision_) return std::nullopt;
    if (comparison.baseline == incumbent && comparison.candidate == candidate) return comparison;
    if (comparison.baseline != candidate || comparison.candidate != incumbent) return std::nullopt;
    FormComparison turned = comparison;
    turned.ratio = 1 / comparison.ratio;
    turned.low = 1 / comparison.high;
    turned.high = 1 / comparison.low;
    if (comparison.verdict == "faster") turned.verdict = "slower";
    if (comparison.verdict == "slower") turned.verdict = "faster";
    return turned;
  }

  const SelectionFindings& findings_;
  std::string op_;
  ops::Precision precision_;
};

bool serves(const ops::FormListing& form, ops::Precision precision) {
  return !ops::has_forms_by_precision(form.op) || form.info.precision == precision;
}

void judge_op(const SelectionFindings& findings, const std::string& op, ops::Precision precision,
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
                                   const std::string& device, const std::vector<ops::FormListing>& forms) {
  SelectionFindings findings = read_selection_findings(receipts, gates, device);
  SelectionReport report{.device = device, .judgements = {}, .unused = std::move(findings.unused)};
  std::vector<std::string> ops;
  for (const ops::FormListing& form : forms) {
    if (std::ranges::find(ops, form.op) == ops.end()) ops.emplace_back(form.op);
  }
  for (const std::string& op : ops) {
    for (const ops::Precision precision : kPrecisions) judge_op(findings, op, precision, forms, report);
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
