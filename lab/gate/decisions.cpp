#include "lab/gate/decisions.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "decision/answer.hpp"

namespace assay::lab {
namespace {

constexpr std::size_t kRowsShown = 5;  // of each kind
constexpr double kExactMaxDelta = 1e-4;

double top_two_margin(const std::vector<double>& probabilities) {
  if (probabilities.size() < 2) return 1.0;
  std::vector<double> sorted = probabilities;
  std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(), std::greater<>());
  return sorted[0] - sorted[1];
}

void add_failures(const std::vector<RowComparison>& rows,
                  const std::function<bool(const RowComparison&)>& failed,
                  const std::function<std::string(const RowComparison&)>& describe,
                  DecisionVerdict& verdict) {
  std::size_t count = 0;
  for (const RowComparison& row : rows) {
    if (!failed(row)) continue;
    if (++count <= kRowsShown) verdict.failures.push_back(fmt::format("{}: {}", row.name, describe(row)));
  }
  if (count > kRowsShown)
    verdict.failures.push_back(fmt::format("and {} more rows like it", count - kRowsShown));
}

void find_failures(const std::vector<RowComparison>& rows, const DecisionBar& bar, DecisionVerdict& verdict) {
  if (rows.empty()) verdict.failures.emplace_back("no rows");
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

}  // namespace

DecisionBar default_bar(ops::Precision precision) {
  DecisionBar bar;
  if (precision == ops::Precision::fp32) bar.max_delta = kExactMaxDelta;
  return bar;
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

DecisionVerdict judge(const std::vector<RowComparison>& rows, const DecisionBar& bar) {
  DecisionVerdict verdict;
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

}  // namespace assay::lab
