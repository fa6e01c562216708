#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/window/statistics.hpp"

/// What a call costs as a function of its tokens: three shapes, and which of them the measured lengths
/// support.
namespace assay::lab {

enum class CostShape {
  line,    ///< a + b · tokens
  tiles,   ///< a + b · tokens + c · ⌈tokens / tile⌉: what a last, part-filled tile costs is paid whole
  pieces,  ///< lines over consecutive ranges of tokens (fit_piecewise)
};
std::string_view to_string(CostShape shape);

struct TileFit {
  std::size_t tile = 0;  ///< tokens; 0: no candidate divides the lengths unevenly, so there is no such fit
  double intercept = 0;  ///< a
  double per_token = 0;  ///< b
  double per_tile = 0;   ///< c, over 0
  double residual_rms = 0;
  double at(double tokens) const;
};

struct CostFit {
  CostShape chosen = CostShape::line;
  LineFit line;
  TileFit tiles;
  PiecewiseFit pieces;
  double line_criterion = std::numeric_limits<double>::infinity();
  double tiles_criterion = std::numeric_limits<double>::infinity();
  double pieces_criterion = std::numeric_limits<double>::infinity();
  double at(double tokens) const;  ///< by the chosen shape; between pieces the nearer one's line
};

/// Rows of register tiles that products are cut into, for they are what makes steps.
std::span<const std::size_t> tile_candidates();

/// Fits all three by least squares and chooses the least criterion, in n points and k parameters:
///   n·ln(Σr²/n) + k·ln(n)·n / (n − k − 2)
/// Schwarz's, corrected for few points (McQuarrie, "A small-sample correction for the Schwarz SIC model
/// selection criterion", 1999). k is 2 for the line, 4 for tiles, 3·pieces − 1 for pieces, whose ends are
/// parameters. The tile, being the best of several tried, pays 2·ln(candidates) more (Chen and Chen,
/// "Extended Bayesian information criteria for model selection with large model spaces", 2008, with γ = 1).
/// Residuals below 10⁻⁹ of the mean cost count as that, so that exact data do not choose by rounding. Where n
/// ≤ k + 2 a criterion is infinite. Ties go to the simpler, in the order above. Throws
/// Error(invalid_argument) for fewer than two different lengths; `tokens` ascends.
CostFit fit_cost(std::span<const double> tokens, std::span<const double> cost);

/// {"chosen", "line": {"a", "b", "b_interval": {"low", "high"}, "residual_rms", "criterion"},
///  "tiles": {"tile", "a", "b", "c", "residual_rms", "criterion"} or null,
///  "pieces": {"pieces": [{"first", "last", "a", "b"}], "residual_rms", "criterion"}}; costs in
/// milliseconds, an infinite criterion null.
nlohmann::ordered_json to_json(const CostFit& fit);

}  // namespace assay::lab
