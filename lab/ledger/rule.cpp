#include "lab/ledger/rule.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "lab/ledger/schema.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLargestRule = std::size_t{1} << 20;

template <class T>
std::optional<T> optional_field(const Json& json, const char* name) {
  return json.contains(name) ? std::optional<T>(json[name].get<T>()) : std::nullopt;
}

WindowClause read_window_clause(const Json& json, const std::string& where) {
  WindowClause clause{.item = optional_field<std::string>(json, "item"),
                      .baseline = optional_field<std::string>(json, "baseline"),
                      .candidate = optional_field<std::string>(json, "candidate"),
                      .min_ratio = json["min_ratio"].get<double>(),
                      .refuted_below = json.value("refuted_below", json["min_ratio"].get<double>()),
                      .interval_excludes_1 = json["interval_excludes_1"].get<bool>(),
                      .clean = json["clean"].get<bool>()};
  if (clause.refuted_below > clause.min_ratio) {
    throw Error(ErrorKind::invalid_argument,
                {.where = where + ".refuted_below",
                 .found = fmt::format("{}", clause.refuted_below),
                 .expected = fmt::format("at most min_ratio, {}", clause.min_ratio),
                 .advice = "a claim cannot be met and refuted by one ratio"});
  }
  return clause;
}

ValueClause read_value_clause(const Json& json, const std::string& where) {
  ValueClause clause{.kind = json["kind"].get<std::string>(),
                     .pointer = json["pointer"].get<std::string>(),
                     .at_least = optional_field<double>(json, "at_least"),
                     .at_most = optional_field<double>(json, "at_most")};
  if (clause.at_least && clause.at_most && *clause.at_least > *clause.at_most) {
    throw Error(ErrorKind::invalid_argument,
                {.where = where,
                 .found = fmt::format("at_least {} and at_most {}", *clause.at_least, *clause.at_most),
                 .expected = "bounds that some number meets"});
  }
  try {
    const Json::json_pointer pointer(clause.pointer);
  } catch (const Json::exception&) {
    throw Error(ErrorKind::invalid_argument, {.where = where + ".pointer",
                                              .found = "'" + clause.pointer + "'",
                                              .expected = "a JSON pointer such as /result/peak_bytes"});
  }
  return clause;
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

/// What the candidates of the selected pairs ran, by their names.
std::map<std::string, std::string> candidates_of(const WindowClause& clause,
                                                 const std::vector<WindowFinding>& windows) {
  std::map<std::string, std::string> candidates;
  for (const WindowFinding& window : windows) {
    for (const PairFinding& pair : window.pairs) {
      const auto forms = window.forms.find(pair.candidate);
      if (selects(clause, pair) && forms != window.forms.end()) candidates.insert(*forms);
    }
  }
  return candidates;
}

/// A gate of one op judges a run's form of it, one of a whole run all of its forms.
bool judged_forms(const GateFinding& gate, const std::string& run) {
  const std::set<std::string> all = words_of(run);
  const std::set<std::string> judged = words_of(gate.forms);
  return !judged.empty() && std::includes(all.begin(), all.end(), judged.begin(), judged.end());
}

ClauseOutcome judge_gates(const std::vector<std::string>& gate_sha256s, const std::vector<GateFinding>& gates,
                          const std::map<std::string, std::string>& candidates) {
  for (const GateFinding& gate : gates) {
    if (!gate.pass) return {"gates", Outcome::refuted, fmt::format("{} says FAIL", gate.name)};
  }
  const auto any = [&](const std::string& sha256, const auto& condition) {
    return std::any_of(gates.begin(), gates.end(), [&](const GateFinding& gate) {
      return gate.gate_sha256 == sha256 && condition(gate);
    });
  };
  for (const std::string& sha256 : gate_sha256s) {
    if (!any(sha256, [](const GateFinding&) { return true; })) {
      return {"gates", Outcome::open, fmt::format("no receipt of gate {:.12}", sha256)};
    }
    for (const auto& candidate : candidates) {
      if (any(sha256, [&](const GateFinding& gate) { return judged_forms(gate, candidate.second); }))
        continue;
      return {"gates", Outcome::open,
              fmt::format("no receipt of gate {:.12} on the forms of {}", sha256, candidate.first)};
    }
  }
  return {"gates", Outcome::holds, fmt::format("{} of {} receipts PASS", gates.size(), gates.size())};
}

ClauseOutcome judge_pair(const WindowClause& clause, const PairFinding& pair) {
  const std::string measured = fmt::format("{}, {} over {}: {:.4g} [{:.4g}, {:.4g}]", pair.item,
                                           pair.baseline, pair.candidate, pair.ratio, pair.lower, pair.upper);
  if (pair.upper < clause.refuted_below) {
    return {"window", Outcome::refuted, fmt::format("{}, all below {}", measured, clause.refuted_below)};
  }
  if (!pair.doubt.empty()) return {"window", Outcome::open, fmt::format("{}, {}", measured, pair.doubt)};
  if (pair.ratio < clause.min_ratio) {
    return {"window", Outcome::open, fmt::format("{}, less than {}", measured, clause.min_ratio)};
  }
  if (clause.interval_excludes_1 && pair.lower <= 1) {
    return {"window", Outcome::open, measured + ", an interval that does not exclude 1"};
  }
  if (clause.interval_excludes_1 && !pair.faster) {
    return {"window", Outcome::open, measured + ", which the window does not call faster"};
  }
  return {"window", Outcome::holds, measured};
}

/// The clause on one window: the worst pair speaks for it.
ClauseOutcome judge_window(const WindowClause& clause, const WindowFinding& window) {
  ClauseOutcome worst{"window", Outcome::open, "a window without a pair that the rule names"};
  bool any = false;
  for (const PairFinding& pair : window.pairs) {
    if (!selects(clause, pair)) continue;
    ClauseOutcome outcome = judge_pair(clause, pair);
    if (outcome.outcome == Outcome::refuted) return outcome;
    if (!any || outcome.outcome == Outcome::open) worst = std::move(outcome);
    any = true;
  }
  return worst;
}

ClauseOutcome judge_windows(const WindowClause& clause, const std::vector<WindowFinding>& windows) {
  ClauseOutcome worst{"window", Outcome::open, "no window receipt"};
  bool any = false;
  for (const WindowFinding& window : windows) {
    if (clause.clean && !window.clean) {
      if (!any) worst.because = "no clean window: what was measured was contended";
      continue;
    }
    ClauseOutcome outcome = judge_window(clause, window);
    if (outcome.outcome == Outcome::refuted) return outcome;
    if (!any || outcome.outcome == Outcome::open) worst = std::move(outcome);
    any = true;
  }
  return worst;
}

ClauseOutcome judge_value(const ValueClause& clause, std::size_t index,
                          const std::vector<ValueFinding>& values) {
  ClauseOutcome outcome{fmt::format("values[{}]", index), Outcome::open,
                        fmt::format("no {} receipt", clause.kind)};
  bool missing = false;
  for (const ValueFinding& finding : values) {
    if (finding.clause != index) continue;
    if (!finding.value) {
      missing = true;
      continue;
    }
    const double value = *finding.value;
    outcome.because = fmt::format("{} is {:.6g}", clause.pointer, value);
    outcome.outcome = Outcome::holds;
    if ((clause.at_least && value < *clause.at_least) || (clause.at_most && value > *clause.at_most)) {
      outcome.outcome = Outcome::refuted;
      return outcome;
    }
  }
  if (missing) return {outcome.clause, Outcome::open, "a receipt without a number at " + clause.pointer};
  return outcome;
}

}  // namespace

std::string_view to_string(Evidence evidence) {
  constexpr std::array<std::string_view, 3> kNames{"positive", "negative", "inconclusive"};
  return kNames[static_cast<std::size_t>(evidence)];
}

std::string_view to_string(Outcome outcome) {
  constexpr std::array<std::string_view, 3> kNames{"holds", "refuted", "open"};
  return kNames[static_cast<std::size_t>(outcome)];
}

Rule read_rule(const Json& json, const std::string& where) {
  Rule rule{.gates_pass = json.contains("gates"), .window = {}, .values = {}};
  if (json.contains("window")) rule.window = read_window_clause(json["window"], where + ".window");
  if (!json.contains("values")) return rule;
  for (std::size_t i = 0; i < json["values"].size(); ++i) {
    rule.values.push_back(read_value_clause(json["values"][i], fmt::format("{}.values[{}]", where, i)));
  }
  return rule;
}

Json read_rule_file(const std::filesystem::path& file) {
  Json rule = parse_json_strictly(read_text_file(file, kLargestRule), file.string());
  experiment_schema().check_definition("rule", rule, file.string());
  read_rule(rule, file.string());
  return rule;
}

bool selects(const WindowClause& clause, const PairFinding& pair) {
  return clause.item.value_or(pair.item) == pair.item &&
         clause.baseline.value_or(pair.baseline) == pair.baseline &&
         clause.candidate.value_or(pair.candidate) == pair.candidate;
}

Judgement judge(const Rule& rule, const std::vector<std::string>& gate_sha256s, const Findings& findings) {
  Judgement judgement;
  const auto candidates =
      rule.window ? candidates_of(*rule.window, findings.windows) : std::map<std::string, std::string>();
  if (rule.gates_pass) judgement.clauses.push_back(judge_gates(gate_sha256s, findings.gates, candidates));
  if (rule.window) judgement.clauses.push_back(judge_windows(*rule.window, findings.windows));
  for (std::size_t i = 0; i < rule.values.size(); ++i) {
    judgement.clauses.push_back(judge_value(rule.values[i], i, findings.values));
  }
  const auto count = [&](Outcome outcome) {
    return static_cast<std::size_t>(
        std::count_if(judgement.clauses.begin(), judgement.clauses.end(),
                      [&](const ClauseOutcome& clause) { return clause.outcome == outcome; }));
  };
  if (count(Outcome::refuted) > 0) {
    judgement.evidence = Evidence::negative;
  } else if (!judgement.clauses.empty() && count(Outcome::holds) == judgement.clauses.size()) {
    judgement.evidence = Evidence::positive;
  }
  return judgement;
}

}  // namespace assay::lab
