#include "lab/decision_gate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "decision/answer.hpp"

namespace assay::lab {
namespace {

constexpr std::size_t kFailuresShown = 5;  // of each kind
constexpr double kExactMaxDelta = 1e-4;

/// Where two id sequences part, or nothing.
template <class T>
std::string difference(std::string_view what, const std::vector<T>& oracle, const std::vector<T>& found) {
  const auto [a, b] = std::mismatch(oracle.begin(), oracle.end(), found.begin(), found.end());
  if (a == oracle.end() && b == found.end()) return {};
  const auto show = [](auto place, auto end) {
    return place == end ? std::string("the end") : fmt::format("{}", *place);
  };
  return fmt::format("{}: {} at {}, the oracle has {}", what, show(b, found.end()), a - oracle.begin(),
                     show(a, oracle.end()));
}

std::string token_difference(const FixtureRecord& record, const FixtureRow& row,
                             const decision::RequestRows& rows, std::size_t question) {
  for (const auto& part :
       {difference("state ids", record.state_ids, rows.state),
        difference("question ids", row.branch_ids, rows.questions[question].tokens),
        difference("option ends", row.option_ends, rows.questions[question].option_ends)}) {
    if (!part.empty()) return part;
  }
  return {};
}

double top_two_margin(const std::vector<double>& probabilities) {
  if (probabilities.size() < 2) return 1.0;
  std::vector<double> sorted = probabilities;
  std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(), std::greater<>());
  return sorted[0] - sorted[1];
}

void check_same_model(const decision::DecisionModel& model, const DecisionFixture& fixture) {
  const auto refuse = [&](std::string where, std::string found, std::string expected) {
    throw Error(ErrorKind::mismatch,
                {fmt::format("{}: {}", fixture.file, where), std::move(found), std::move(expected),
                 "use the fixture that was made with this checkpoint"});
  };
  if (static_cast<float>(fixture.temperature) != model.head().temperature) {
    refuse("temperature", fmt::format("{}", fixture.temperature),
           fmt::format("the checkpoint's {}", model.head().temperature));
  }
  const auto outside = [&](std::int32_t id) {
    return id < 0 || static_cast<std::size_t>(id) >= model.config().vocabulary_size;
  };
  for (const FixtureRecord& record : fixture.records) {
    bool bad = std::any_of(record.state_ids.begin(), record.state_ids.end(), outside);
    for (const FixtureRow& row : record.rows) {
      bad = bad || std::any_of(row.branch_ids.begin(), row.branch_ids.end(), outside);
    }
    if (bad) {
      refuse(record.id, "token ids outside the vocabulary",
             fmt::format("ids below {}", model.config().vocabulary_size));
    }
  }
}

/// The record's answers to `request` beside the oracle's to its own.
void compare_record(decision::DecisionModel& model, const FixtureRecord& record,
                    const decision::Request& request, bool compare_tokens, const DecisionBar& bar,
                    std::vector<RowComparison>& out) {
  std::optional<decision::Decision> decision;
  try {
    decision = model.decide(request);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::non_finite) throw;
  }
  std::optional<decision::RequestRows> tokens;
  if (compare_tokens) tokens = model.rows(request);
  for (std::size_t i = 0; i < record.rows.size(); ++i) {
    const FixtureRow& row = record.rows[i];
    const std::string name = fmt::format("{}.{}", record.id, row.question);
    const std::vector<double> none(row.probabilities.size(), std::nan(""));
    out.push_back(
        compare_row(name, row.probabilities, decision ? decision->questions[i].probabilities : none, bar));
    if (tokens) out.back().token_difference = token_difference(record, row, *tokens, i);
  }
}

using Change = std::function<decision::Request(std::size_t record)>;

RedArm run_red_arm(decision::DecisionModel& model, const DecisionFixture& fixture, const DecisionBar& bar,
                   std::string name, const Change& change) {
  RedArm arm;
  arm.name = std::move(name);
  std::vector<RowComparison> rows;
  for (std::size_t i = 0; i < fixture.records.size(); ++i) {
    try {
      compare_record(model, fixture.records[i], change(i), false, bar, rows);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::limit_exceeded) throw;
      ++arm.left_out;
    }
  }
  if (rows.empty()) {
    throw Error(ErrorKind::limit_exceeded,
                {fmt::format("red arm {}", arm.name), "every record became too long",
                 "records with room for the change", "use a fixture with shorter records"});
  }
  arm.verdict = judge(rows, bar);
  return arm;
}

decision::Request with_negated_instructions(const FixtureRecord& record) {
  decision::Request request = record.request;
  for (decision::Question& question : request.questions) {
    question.instructions = "Give the opposite of the right answer: " + question.instructions;
  }
  return request;
}

/// The record with the state of the next one (around the end) that has another.
decision::Request with_swapped_state(const DecisionFixture& fixture, std::size_t index) {
  decision::Request request = fixture.records[index].request;
  for (std::size_t step = 1; step < fixture.records.size(); ++step) {
    const auto& other = fixture.records[(index + step) % fixture.records.size()].request.state;
    if (other != request.state) {
      request.state = other;
      return request;
    }
  }
  throw Error(ErrorKind::invalid_argument, {fixture.file, "one state in all records", "two states or more",
                                            "the red arm that swaps states needs a fixture with several"});
}

void add_failures(const std::vector<RowComparison>& rows,
                  const std::function<bool(const RowComparison&)>& failed,
                  const std::function<std::string(const RowComparison&)>& describe, GateVerdict& verdict) {
  std::size_t count = 0;
  for (const RowComparison& row : rows) {
    if (!failed(row)) continue;
    if (++count <= kFailuresShown) verdict.failures.push_back(fmt::format("{}: {}", row.name, describe(row)));
  }
  if (count > kFailuresShown)
    verdict.failures.push_back(fmt::format("and {} more rows like it", count - kFailuresShown));
}

void find_failures(const std::vector<RowComparison>& rows, const DecisionBar& bar, GateVerdict& verdict) {
  if (rows.empty()) verdict.failures.push_back("no rows");
  add_failures(
      rows, [](const auto& row) { return !row.token_difference.empty(); },
      [](const auto& row) { return row.token_difference; }, verdict);
  add_failures(
      rows, [](const auto& row) { return !row.finite; }, [](const auto&) { return "not finite"; }, verdict);
  add_failures(
      rows, [](const auto& row) { return row.finite && !row.near_tie && !row.argmax_agrees; },
      [](const auto&) { return "another option than the oracle's"; }, verdict);
  add_failures(
      rows, [&](const auto& row) { return row.finite && row.max_delta > bar.max_delta; },
      [&](const auto& row) {
        return fmt::format("max |Δp| {:.3g} over {:.3g}", row.max_delta, bar.max_delta);
      },
      verdict);
  if (verdict.mean_of_row_means > bar.mean_delta) {
    verdict.failures.push_back(
        fmt::format("mean of row means {:.3g} over {:.3g}", verdict.mean_of_row_means, bar.mean_delta));
  }
}

nlohmann::ordered_json verdict_json(const GateVerdict& verdict) {
  return {{"rows", verdict.rows},
          {"argmax_off_near_ties", fmt::format("{}/{}", verdict.decided_agreeing, verdict.decided)},
          {"near_ties_agreeing", fmt::format("{}/{}", verdict.near_ties_agreeing, verdict.near_ties)},
          {"rows_with_same_tokens", verdict.rows_with_same_tokens},
          {"max_abs_dp", verdict.max_delta},
          {"worst_row", verdict.worst_row},
          {"mean_of_row_mean_abs_dp", verdict.mean_of_row_means},
          {"finite", verdict.finite},
          {"failures", verdict.failures},
          {"result", verdict.pass() ? "PASS" : "FAIL"}};
}

std::string red_arm_line(const RedArm& arm) {
  const GateVerdict& verdict = arm.verdict;
  std::string line = fmt::format("red arm, {}: argmax {}/{}, max |Δp| {:.3g}: {}", arm.name,
                                 verdict.decided_agreeing, verdict.decided, verdict.max_delta,
                                 verdict.pass() ? "passes, which it must not" : "fails, as it must");
  if (arm.left_out > 0) line += fmt::format(" ({} records too long for it)", arm.left_out);
  return line + "\n";
}

}  // namespace

DecisionBar default_bar(ops::Precision precision) {
  DecisionBar bar;
  if (precision == ops::Precision::fp32) bar.max_delta = kExactMaxDelta;
  return bar;
}

bool DecisionGateReport::pass() const {
  return verdict.pass() &&
         std::none_of(red_arms.begin(), red_arms.end(), [](const RedArm& arm) { return arm.verdict.pass(); });
}

RowComparison compare_row(std::string name, const std::vector<double>& oracle,
                          const std::vector<double>& found, const DecisionBar& bar) {
  RowComparison row;
  row.name = std::move(name);
  row.near_tie = top_two_margin(oracle) <= bar.near_tie;
  row.finite = std::all_of(found.begin(), found.end(), [](double p) { return std::isfinite(p); });
  if (!row.finite) return row;
  row.argmax_agrees = decision::argmax(oracle) == decision::argmax(found);
  double sum = 0;
  for (std::size_t i = 0; i < oracle.size(); ++i) {
    const double delta = std::fabs(oracle[i] - found[i]);
    row.max_delta = std::max(row.max_delta, delta);
    sum += delta;
  }
  row.mean_delta = sum / static_cast<double>(oracle.size());
  return row;
}

GateVerdict judge(const std::vector<RowComparison>& rows, const DecisionBar& bar) {
  GateVerdict verdict;
  verdict.rows = rows.size();
  double sum = 0;
  for (const RowComparison& row : rows) {
    (row.near_tie ? verdict.near_ties : verdict.decided) += 1;
    if (row.argmax_agrees) (row.near_tie ? verdict.near_ties_agreeing : verdict.decided_agreeing) += 1;
    if (row.token_difference.empty()) ++verdict.rows_with_same_tokens;
    verdict.finite = verdict.finite && row.finite;
    if (row.max_delta > verdict.max_delta) {
      verdict.max_delta = row.max_delta;
      verdict.worst_row = row.name;
    }
    sum += row.mean_delta;
  }
  if (!rows.empty()) verdict.mean_of_row_means = sum / static_cast<double>(rows.size());
  find_failures(rows, bar, verdict);
  return verdict;
}

DecisionGateReport run_decision_gate(decision::DecisionModel& model, const DecisionFixture& fixture,
                                     const DecisionBar& bar, bool red) {
  check_same_model(model, fixture);
  DecisionGateReport report;
  report.fixture = fixture.file;
  report.fixture_sha256 = fixture.sha256;
  report.model_identity = model.identity();
  report.forms = ops::describe(model.selection());
  report.precision = model.precision();
  report.bar = bar;
  std::vector<RowComparison> rows;
  for (const FixtureRecord& record : fixture.records) {
    compare_record(model, record, record.request, true, bar, rows);
  }
  report.verdict = judge(rows, bar);
  if (red) {
    report.red_arms.push_back(run_red_arm(model, fixture, bar, "negated instructions", [&](std::size_t i) {
      return with_negated_instructions(fixture.records[i]);
    }));
    report.red_arms.push_back(run_red_arm(model, fixture, bar, "swapped states",
                                          [&](std::size_t i) { return with_swapped_state(fixture, i); }));
  }
  return report;
}

nlohmann::ordered_json to_json(const DecisionGateReport& report) {
  nlohmann::ordered_json json = {{"gate", "decision"},
                                 {"fixture", report.fixture},
                                 {"fixture_sha256", report.fixture_sha256},
                                 {"model_identity", report.model_identity},
                                 {"precision", ops::to_string(report.precision)},
                                 {"forms", report.forms},
                                 {"bar",
                                  {{"near_tie_margin", report.bar.near_tie},
                                   {"max_abs_dp", report.bar.max_delta},
                                   {"mean_of_row_mean_abs_dp", report.bar.mean_delta}}},
                                 {"run", verdict_json(report.verdict)}};
  if (!report.red_arms.empty()) {
    auto& arms = json["red_arms"] = nlohmann::ordered_json::object();
    for (const RedArm& arm : report.red_arms) {
      arms[arm.name] = verdict_json(arm.verdict);
      arms[arm.name]["records_left_out"] = arm.left_out;
    }
  }
  json["result"] = report.pass() ? "PASS" : "FAIL";
  return json;
}

std::string to_text(const DecisionGateReport& report) {
  const GateVerdict& verdict = report.verdict;
  std::string text = fmt::format("{} ({})\n{} {}\n", report.fixture, report.fixture_sha256.substr(0, 12),
                                 ops::to_string(report.precision), report.forms);
  text += fmt::format("rows                  {}\n", verdict.rows);
  text += fmt::format("argmax off near ties  {}/{}\n", verdict.decided_agreeing, verdict.decided);
  text += fmt::format("near ties agreeing    {}/{}\n", verdict.near_ties_agreeing, verdict.near_ties);
  text += fmt::format("token ids equal       {}/{}\n", verdict.rows_with_same_tokens, verdict.rows);
  text += fmt::format("max |Δp|              {:.3g} (bar {:.3g}){}\n", verdict.max_delta,
                      report.bar.max_delta, verdict.worst_row.empty() ? "" : " at " + verdict.worst_row);
  text += fmt::format("mean of row means     {:.3g} (bar {:.3g})\n", verdict.mean_of_row_means,
                      report.bar.mean_delta);
  text += fmt::format("finite                {}\n", verdict.finite ? "yes" : "no");
  for (const std::string& failure : verdict.failures) text += fmt::format("  {}\n", failure);
  for (const RedArm& arm : report.red_arms) text += red_arm_line(arm);
  return text + (report.pass() ? "PASS\n" : "FAIL\n");
}

}  // namespace assay::lab
