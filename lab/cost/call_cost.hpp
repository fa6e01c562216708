#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/cost/cost_fit.hpp"
#include "lab/cost/measured_model.hpp"
#include "ops/selection.hpp"

/// What one call (a backbone run of n tokens from zero states) takes, over n.
namespace assay::lab {

struct CallCostOptions {
  /// Tokens, each 1 to 8,192, at least three different ones. Most of the defaults are no multiples of a
  /// register tile, so that tiles show.
  std::vector<std::size_t> lengths = {1,  4,  9,  16,  21,  32,  38,  48,  57,
                                      64, 75, 96, 117, 128, 150, 192, 230, 256};
  std::size_t rounds = 5;  ///< timed calls of every length, 3 to 1000
  std::size_t threads = 0;
  ops::Precision precision = ops::Precision::bf16;
  std::vector<ops::FormOverrides> curves = {
      {}};  ///< one curve each, 1 to 8; each holds its own packed weights
};

struct CostPoint {
  std::size_t tokens = 0;
  std::vector<double> seconds;  ///< of each timed call, in the order of the rounds
  Summary time;                 ///< of `seconds`
};

struct CostCurve {
  std::string label;              ///< what the curve was asked for as: "default" or "op=name,…"
  std::string forms;              ///< ops::describe of what ran
  std::vector<CostPoint> points;  ///< tokens ascending
  CostFit fit;                    ///< of the medians, in milliseconds
};

struct CallCostReport {
  CallCostOptions options;
  std::size_t threads = 0;
  nlohmann::ordered_json model;
  std::vector<CostCurve> curves;
};

/// The order of one round's `count` measurements: rotated by a third of the list every two rounds, and every
/// second round backwards, so that a drift of the machine falls on all alike and none always follows the
/// same.
std::vector<std::size_t> balanced_order(std::size_t count, std::size_t round);

/// Times `call(curve, tokens)`: every one once untimed, the longest first, then rounds in balanced order over
/// curves and lengths together, and fits. `labels` has one text a curve.
/// Throws Error(invalid_argument) naming what is out of range.
std::vector<CostCurve> sweep_calls(const CallCostOptions& options, const std::vector<std::string>& labels,
                                   const std::function<void(std::size_t curve, std::size_t tokens)>& call,
                                   const std::function<void(std::string_view)>& progress);

CallCostReport measure_call_cost(const ModelChoice& choice, const CallCostOptions& options,
                                 const std::function<void(std::string_view)>& progress);

/// A call-cost receipt. subject: {"model", "precision", "threads", "curves": [{"label", "forms"}], "lengths",
/// "rounds"}. result: {"unit": "milliseconds", "curves": [{"label", "forms", "fit": F (see CostFit),
/// "points":
/// [{"tokens", "median", "p10", "p90", "min", "max", "samples"}]}]}.
nlohmann::ordered_json call_cost_subject(const CallCostReport& report);
nlohmann::ordered_json to_json(const CallCostReport& report);
std::string to_table(const CallCostReport& report);

/// An SVG drawing: medians with p10 to p90, the line, and the chosen shape where it is another. It has no
/// scripts and follows the reader's light or dark scheme.
std::string to_svg(const CallCostReport& report);

/// The drawing and the table in one HTML file that needs nothing else.
std::string to_html(const CallCostReport& report);

}  // namespace assay::lab
