#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ops/form.hpp"

/// The decision bar: what a decision model's answers must hold against the oracle's, Δp being the difference
/// of an option's probability. The bar is the one by which the measured forms of Kev-4B were admitted.
namespace assay::lab {

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
struct DecisionVerdict {
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

/// A row's probabilities against the oracle's, by the bar's near-tie margin. Sizes are equal.
RowComparison compare_row(std::string name, const std::vector<double>& oracle,
                          const std::vector<double>& found, const DecisionBar& bar);

/// Sums rows up and names what the bar does not admit. No rows is a failure.
DecisionVerdict judge(const std::vector<RowComparison>& rows, const DecisionBar& bar);

}  // namespace assay::lab
