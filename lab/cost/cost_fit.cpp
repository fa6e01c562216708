#include "lab/cost/cost_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace assay::lab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kExact = 1e-9;
constexpr std::size_t kMostPieces = 4;

double tiles_of(double tokens, std::size_t tile) {
  return std::ceil(tokens / static_cast<double>(tile));
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Least squares on tokens and tiles, both about their means; none where the two say the same.
std::optional<TileFit> fit_tiles(std::span<const double> x, std::span<const double> y, std::size_t tile) {
  std::vector<double> t(x.size());
  std::transform(x.begin(), x.end(), t.begin(), [&](double tokens) { return tiles_of(tokens, tile); });
  const double mx = mean(x);
  const double mt = mean(t);
  const double my = mean(y);
  double xx = 0, tt = 0, xt = 0, xy = 0, ty = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    tt += (t[i] - mt) * (t[i] - mt);
    xt += (x[i] - mx) * (t[i] - mt);
    xy += (x[i] - mx) * (y[i] - my);
    ty += (t[i] - mt) * (y[i] - my);
  }
  const double determinant = xx * tt - xt * xt;
  if (determinant <= kExact * xx * tt) return std::nullopt;
  TileFit fit;
  fit.tile = tile;
  fit.per_token = (xy * tt - ty * xt) / determinant;
  fit.per_tile = (ty * xx - xy * xt) / determinant;
  fit.intercept = my - fit.per_token * mx - fit.per_tile * mt;
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double residual = y[i] - fit.at(x[i]);
    squares += residual * residual;
  }
  fit.residual_rms = std::sqrt(squares / static_cast<double>(x.size()));
  // A step down at every tile is no tile.
  return fit.per_tile > 0 ? std::optional(fit) : std::nullopt;
}

TileFit best_tiles(std::span<const double> x, std::span<const double> y) {
  TileFit best;
  for (const std::size_t tile : tile_candidates()) {
    const std::optional<TileFit> fit = fit_tiles(x, y, tile);
    if (fit && (best.tile == 0 || fit->residual_rms < best.residual_rms)) best = *fit;
  }
  return best;
}

/// JSON has no infinity: too few points for a criterion are null.
nlohmann::ordered_json criterion_json(double criterion) {
  return std::isfinite(criterion) ? nlohmann::ordered_json(criterion) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json tiles_json(const CostFit& fit) {
  if (fit.tiles.tile == 0) return nullptr;
  return {{"tile", fit.tiles.tile},
          {"a", fit.tiles.intercept},
          {"b", fit.tiles.per_token},
          {"c", fit.tiles.per_tile},
          {"residual_rms", fit.tiles.residual_rms},
          {"criterion", criterion_json(fit.tiles_criterion)}};
}

}  // namespace

std::string_view to_string(CostShape shape) {
  switch (shape) {
    case CostShape::tiles:
      return "tiles";
    case CostShape::pieces:
      return "pieces";
    case CostShape::line:
      break;
  }
  return "line";
}

double TileFit::at(double tokens) const {
  return intercept + per_token * tokens + per_tile * tiles_of(tokens, tile);
}

double CostFit::at(double tokens) const {
  if (chosen == CostShape::tiles) return tiles.at(tokens);
  if (chosen == CostShape::line) return line.at(tokens);
  const auto distance = [&](const Piece& piece) {
    return std::max({piece.first_x - tokens, tokens - piece.last_x, 0.0});
  };
  return std::min_element(pieces.pieces.begin(), pieces.pieces.end(),
                          [&](const Piece& a, const Piece& b) { return distance(a) < distance(b); })
      ->line.at(tokens);
}

std::span<const std::size_t> tile_candidates() {
  static constexpr std::array<std::size_t, 9> kTiles{4, 6, 8, 12, 16, 24, 32, 64, 128};
  return kTiles;
}

CostFit fit_cost(std::span<const double> tokens, std::span<const double> cost) {
  CostFit fit;
  fit.line = fit_line(tokens, cost);
  fit.tiles = best_tiles(tokens, cost);
  const auto n = static_cast<double>(tokens.size());
  const double floor = kExact * std::abs(mean(cost)) + std::numeric_limits<double>::min();
  const auto criterion = [&](double rms, double parameters) {
    const double left = n - parameters - 2;
    return left > 0 ? 2 * n * std::log(std::max(rms, floor)) + n * std::log(n) * parameters / left
                    : kInfinity;
  };
  fit.line_criterion = criterion(fit.line.residual_rms, 2);
  if (fit.tiles.tile != 0) {
    const double choice = 2 * std::log(static_cast<double>(tile_candidates().size()));
    fit.tiles_criterion = criterion(fit.tiles.residual_rms, 4) + choice;
  }
  for (std::size_t most = 1; most <= kMostPieces; ++most) {
    PiecewiseFit pieces = fit_piecewise(tokens, cost, most);
    const double value = criterion(pieces.residual_rms, 3 * static_cast<double>(pieces.pieces.size()) - 1);
    if (most > 1 && value >= fit.pieces_criterion) continue;
    fit.pieces = std::move(pieces);
    fit.pieces_criterion = value;
  }
  if (fit.tiles_criterion < fit.line_criterion) fit.chosen = CostShape::tiles;
  if (fit.pieces_criterion < std::min(fit.line_criterion, fit.tiles_criterion))
    fit.chosen = CostShape::pieces;
  return fit;
}

nlohmann::ordered_json to_json(const CostFit& fit) {
  nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
  for (const Piece& piece : fit.pieces.pieces) {
    pieces.push_back({{"first", piece.first_x},
                      {"last", piece.last_x},
                      {"a", piece.line.intercept},
                      {"b", piece.line.slope}});
  }
  return {{"chosen", to_string(fit.chosen)},
          {"line",
           {{"a", fit.line.intercept},
            {"b", fit.line.slope},
            {"b_interval", {{"low", fit.line.slope_interval.low}, {"high", fit.line.slope_interval.high}}},
            {"residual_rms", fit.line.residual_rms},
            {"criterion", criterion_json(fit.line_criterion)}}},
          {"tiles", tiles_json(fit)},
          {"pieces",
           {{"pieces", std::move(pieces)},
            {"residual_rms", fit.pieces.residual_rms},
            {"criterion", criterion_json(fit.pieces_criterion)}}}};
}

}  // namespace assay::lab
