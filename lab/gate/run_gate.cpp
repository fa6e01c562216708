#include "lab/gate/run_gate.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kOutcomes{"RED", "GREEN", "INERT"};

struct ArmRun {
  ArmReport report;
  std::unique_ptr<Comparator> comparator;
};

void run_arm(Subject& subject, std::size_t index, const Answer& expected, const Answer& found, ArmRun& run) {
  const std::optional<Answer> wrong = is_input_arm(run.report.arm.name)
                                          ? subject.run_changed(index, run.report.arm.name)
                                          : made_wrong(run.report.arm, found);
  if (!wrong) {
    ++run.report.left_out;
  } else if (same_bits(*wrong, found)) {
    ++run.report.unchanged;
  } else {
    ++run.report.changed;
    run.comparator->add(subject.case_name(index), expected, *wrong);
  }
}

ArmReport finished(ArmRun run, std::size_t cases) {
  ArmReport& report = run.report;
  if (cases > 0 && report.left_out == cases) {
    throw Error(ErrorKind::limit_exceeded, {.where = "red arm " + report.arm.name,
                                            .found = "every case became too long",
                                            .expected = "cases with room for the change",
                                            .advice = "use a fixture with shorter records"});
  }
  if (report.changed == 0) return std::move(report);
  report.verdict = run.comparator->verdict();
  report.outcome = report.verdict.pass() ? ArmOutcome::green : ArmOutcome::red;
  return std::move(report);
}

Json arm_json(const ArmReport& report) {
  Json json = to_json(report.arm);
  json["cases_changed"] = report.changed;
  json["cases_unchanged"] = report.unchanged;
  json["cases_left_out"] = report.left_out;
  if (report.outcome != ArmOutcome::inert) {
    json.update(report.verdict.measures);
    json["failures"] = report.verdict.failures;
  }
  json["outcome"] = to_string(report.outcome);
  return json;
}

std::string arm_line(const ArmReport& report) {
  constexpr std::array<std::string_view, 3> kWords{"fails, as it must", "passes, which it must not",
                                                   "changed nothing, so it shows nothing"};
  std::string line =
      fmt::format("red arm {}: {}", report.arm.name, kWords[static_cast<std::size_t>(report.outcome)]);
  if (report.outcome != ArmOutcome::inert) {
    std::string measures;
    for (const auto& [name, value] : report.verdict.columns) {
      measures += fmt::format("{}{} {}", measures.empty() ? "" : ", ", name, printable(value));
    }
    line += fmt::format(" ({})", measures);
  }
  if (report.unchanged > 0) line += fmt::format("; {} unchanged by it", counted(report.unchanged, "case"));
  if (report.left_out > 0) line += fmt::format("; {} too long for it", counted(report.left_out, "case"));
  return line + "\n";
}

std::string subject_text(const Json& subject) {
  std::string text;
  for (auto it = subject.begin(); it != subject.end(); ++it) {
    const std::string value = it->is_string() ? it->get<std::string>() : it->dump();
    text += fmt::format("{:<22}{}\n", it.key(), printable(value));
  }
  return text;
}

std::string bar_text(const Bar& bar) {
  std::string text;
  const Json json = to_json(bar);
  for (auto it = json.begin(); it != json.end(); ++it) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", it.key(), it->dump());
  }
  return text.empty() ? std::string(comparator_name(bar)) : fmt::format("{}: {}", comparator_name(bar), text);
}

/// A line for every array where the comparator measured each by itself.
std::string arrays_text(const Json& measures) {
  std::string text;
  if (!measures.contains("arrays_by_name")) return text;
  constexpr std::array<const char*, 4> kShown{"nrmse", "snr_db", "pearson", "max_abs"};
  text +=
      fmt::format("  {:<24}{:>12}{:>12}{:>12}{:>12}\n", "array", kShown[0], kShown[1], kShown[2], kShown[3]);
  for (const auto& [name, array] : measures["arrays_by_name"].items()) {
    text += fmt::format("  {:<24}", printable(name));
    for (const char* measure : kShown) {
      const Json& value = array[measure];
      text += fmt::format("{:>12}", value.is_number()   ? fmt::format("{:.4g}", value.get<double>())
                                    : value.is_string() ? value.get<std::string>()
                                                        : "undefined");
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string_view to_string(ArmOutcome outcome) {
  return kOutcomes[static_cast<std::size_t>(outcome)];
}

bool GateReport::pass() const {
  return verdict.pass() && std::all_of(red_arms.begin(), red_arms.end(),
                                       [](const ArmReport& arm) { return arm.outcome == ArmOutcome::red; });
}

GateReport run_gate(const GateFile& gate, Subject& subject, const std::function<bool()>& stop) {
  GateReport report{.name = gate.name,
                    .sha256 = gate.sha256,
                    .bar = gate.bar,
                    .subject = subject.describe(),
                    .cases = subject.cases(),
                    .verdict = {},
                    .red_arms = {}};
  const auto comparator = make_comparator(gate.bar);
  std::vector<ArmRun> arms;
  for (const RedArm& arm : gate.red_arms)
    arms.push_back({{.arm = arm, .verdict = {}}, make_comparator(gate.bar)});
  for (std::size_t i = 0; i < report.cases; ++i) {
    if (stop && stop()) {
      throw Error(ErrorKind::cancelled, {.where = "gate " + gate.name, .found = "stopped on request"});
    }
    const Answer expected = subject.expected(i);
    const Answer found = subject.run(i);
    comparator->add(subject.case_name(i), expected, found);
    for (ArmRun& arm : arms) run_arm(subject, i, expected, found, arm);
  }
  report.verdict = comparator->verdict();
  for (ArmRun& arm : arms) report.red_arms.push_back(finished(std::move(arm), report.cases));
  return report;
}

Json receipt_subject(const GateReport& report) {
  Json json = report.subject;
  json["gate"] = {{"name", report.name}, {"sha256", nullptr}};
  if (!report.sha256.empty()) json["gate"]["sha256"] = report.sha256;
  return json;
}

Json receipt_result(const GateReport& report) {
  Json run{{"cases", report.cases}};
  run.update(report.verdict.measures);
  run["failures"] = report.verdict.failures;
  run["result"] = report.verdict.pass() ? "PASS" : "FAIL";
  Json json{{"comparator", comparator_name(report.bar)},
            {"thresholds", to_json(report.bar)},
            {"run", std::move(run)},
            {"red_arms", Json::object()}};
  for (const ArmReport& arm : report.red_arms) json["red_arms"][arm.arm.name] = arm_json(arm);
  json["result"] = report.pass() ? "PASS" : "FAIL";
  return json;
}

Json to_json(const GateReport& report) {
  Json json = receipt_subject(report);
  json.update(receipt_result(report));
  return json;
}

std::string to_text(const GateReport& report) {
  std::string text = fmt::format("{:<22}{}{}\n", "gate", printable(report.name),
                                 report.sha256.empty() ? "" : " (" + report.sha256.substr(0, 12) + ")");
  text += subject_text(report.subject);
  text += fmt::format("{:<22}{}\n", "bar", bar_text(report.bar));
  text += fmt::format("{:<22}{}\n", "cases", report.cases);
  for (const auto& [name, value] : report.verdict.columns) {
    text += fmt::format("{:<22}{}\n", name, printable(value));
  }
  text += arrays_text(report.verdict.measures);
  for (const std::string& failure : report.verdict.failures)
    text += fmt::format("  {}\n", printable(failure));
  for (const ArmReport& arm : report.red_arms) text += arm_line(arm);
  return text + (report.pass() ? "PASS\n" : "FAIL\n");
}

}  // namespace assay::lab
