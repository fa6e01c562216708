#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "decision/model.hpp"
#include "lab/decision_fixture.hpp"
#include "ops/form.hpp"

namespace assay::lab {

/// What a run's answers must hold against the oracle's, Δp being the difference of an option's probability.
struct DecisionBar {
  double near_tie =
      0.02;  ///< a row whose two largest oracle probabilities are no further apart is a near tie
  double max_delta = 0.02;    ///< of |Δp| over all options of all rows
  double mean_delta = 0.002;  ///< of the mean over rows of each row's mean |Δp|
};

/// The bar that a precision is held to: the default, and max |Δp| ≤ 1e-4 on the exact path.
DecisionBar default_bar(ops::Precision precision);

/// One row against its oracle.
struct RowComparison {
  std::string name;  ///< "r002.q0"
  bool near_tie = false;
  bool argmax_agrees = false;
  bool finite = false;
  double max_delta = 0;
  double mean_delta = 0;
  std::string token_difference;  ///< empty where the ids are the oracle's
};

/// The verdict on a whole run.
struct GateVerdict {
  std::size_t rows = 0;
  std::size_t decided = 0;  ///< rows that are no near ties
  std::size_t decided_agreeing = 0;
  std::size_t near_ties = 0;
  std::size_t near_ties_agreeing = 0;
  std::size_t rows_with_same_tokens = 0;
  double max_delta = 0;
  std::string worst_row;  ///< where max_delta is
  double mean_of_row_means = 0;
  bool finite = true;
  std::vector<std::string> failures;  ///< what was not met, the row named; the first few of each kind
  bool pass() const { return failures.empty(); }
};

/// A run that is wrong on purpose: the gate must fail it.
struct RedArm {
  std::string name;
  GateVerdict verdict;
  std::size_t left_out = 0;  ///< records that the change made too long
};

struct DecisionGateReport {
  std::string fixture;
  std::string fixture_sha256;
  std::string model_identity;
  std::string forms;
  ops::Precision precision = ops::Precision::fp32;
  DecisionBar bar;
  GateVerdict verdict;
  std::vector<RedArm> red_arms;

  /// The run passes and no red arm does.
  bool pass() const;
};

/// A row's probabilities against the oracle's, by the bar's near-tie margin. Sizes are equal.
RowComparison compare_row(std::string name, const std::vector<double>& oracle,
                          const std::vector<double>& found, const DecisionBar& bar);

/// Sums rows up and names what the bar does not admit. No rows is a failure.
GateVerdict judge(const std::vector<RowComparison>& rows, const DecisionBar& bar);

/// Runs the fixture's requests, and with `red` also its red arms: instructions negated, states swapped
/// between records. Red arms are judged by their answers alone; their token ids differ by design. Throws
/// Error(mismatch) for a fixture of another model (its temperature, or ids past the vocabulary),
/// Error(invalid_argument) for red arms on a fixture whose records all have one state.
DecisionGateReport run_decision_gate(decision::DecisionModel& model, const DecisionFixture& fixture,
                                     const DecisionBar& bar, bool red);

nlohmann::ordered_json to_json(const DecisionGateReport& report);
std::string to_text(const DecisionGateReport& report);

}  // namespace assay::lab
