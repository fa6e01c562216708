#include "lab/cost/call_cost.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "device/thread_pool.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxLength = 8192;
constexpr std::size_t kMaxLengths = 500;
constexpr std::size_t kMinRounds = 3;
constexpr std::size_t kMaxRounds = 1000;
constexpr std::size_t kMaxCurves = 8;

void require(bool holds, std::string_view flag, std::string found, std::string expected) {
  if (holds) return;
  throw Error(ErrorKind::invalid_argument, {std::string(flag), std::move(found), std::move(expected)});
}

/// The lengths, ascending, each once.
std::vector<std::size_t> checked_lengths(const CallCostOptions& options) {
  const std::set<std::size_t> lengths(options.lengths.begin(), options.lengths.end());
  for (const std::size_t length : lengths) {
    require(length >= 1 && length <= kMaxLength, "--lengths", fmt::format("{}", length),
            fmt::format("1 to {} tokens", kMaxLength));
  }
  require(lengths.size() >= 3 && lengths.size() <= kMaxLengths, "--lengths",
          fmt::format("{} different lengths", lengths.size()), fmt::format("3 to {}", kMaxLengths));
  require(options.rounds >= kMinRounds && options.rounds <= kMaxRounds, "--rounds",
          fmt::format("{}", options.rounds), fmt::format("{} to {}", kMinRounds, kMaxRounds));
  return {lengths.begin(), lengths.end()};
}

std::string label_of(const ops::FormOverrides& forms) {
  std::string label;
  for (const auto& [op, name] : forms) label += (label.empty() ? "" : ",") + op + "=" + name;
  return label.empty() ? "default" : label;
}

std::vector<std::string> checked_labels(const std::vector<ops::FormOverrides>& curves) {
  require(!curves.empty() && curves.size() <= kMaxCurves, "--forms", fmt::format("{} curves", curves.size()),
          fmt::format("1 to {}", kMaxCurves));
  std::vector<std::string> labels;
  for (const ops::FormOverrides& forms : curves) {
    labels.push_back(label_of(forms));
    require(std::count(labels.begin(), labels.end(), labels.back()) == 1, "--forms", labels.back() + " twice",
            "every curve once");
  }
  return labels;
}

void fit_curve(CostCurve& curve) {
  std::vector<double> tokens;
  std::vector<double> milliseconds;
  for (CostPoint& point : curve.points) {
    point.time = summarize(point.seconds);
    tokens.push_back(static_cast<double>(point.tokens));
    milliseconds.push_back(point.time.median * 1e3);
  }
  curve.fit = fit_cost(tokens, milliseconds);
}

Json point_json(const CostPoint& point) {
  Json samples = Json::array();
  for (const double seconds : point.seconds) samples.push_back(seconds * 1e3);
  return {{"tokens", point.tokens},       {"median", point.time.median * 1e3}, {"p10", point.time.p10 * 1e3},
          {"p90", point.time.p90 * 1e3},  {"min", point.time.min * 1e3},       {"max", point.time.max * 1e3},
          {"samples", std::move(samples)}};
}

void append_fit(fmt::memory_buffer& out, const CostFit& fit) {
  const auto line = std::back_inserter(out);
  fmt::format_to(
      line,
      "  line    {:.3f} ms + {:.4f} ms a token ({:.4f} to {:.4f}); residual {:.3f} ms rms; criterion "
      "{:.1f}\n",
      fit.line.intercept, fit.line.slope, fit.line.slope_interval.low, fit.line.slope_interval.high,
      fit.line.residual_rms, fit.line_criterion);
  if (fit.tiles.tile != 0) {
    fmt::format_to(
        line,
        "  tiles   {:.3f} ms + {:.4f} ms a token + {:.4f} ms a tile of {}; residual {:.3f} ms rms; "
        "criterion {:.1f}\n",
        fit.tiles.intercept, fit.tiles.per_token, fit.tiles.per_tile, fit.tiles.tile, fit.tiles.residual_rms,
        fit.tiles_criterion);
  }
  fmt::format_to(line, "  pieces ");
  for (const Piece& piece : fit.pieces.pieces) {
    fmt::format_to(line, " {:.0f}-{:.0f}: {:.3f} + {:.4f}/token;", piece.first_x, piece.last_x,
                   piece.line.intercept, piece.line.slope);
  }
  fmt::format_to(line, " residual {:.3f} ms rms; criterion {:.1f}\n  chosen  {}\n", fit.pieces.residual_rms,
                 fit.pieces_criterion, to_string(fit.chosen));
}

}  // namespace

std::vector<std::size_t> balanced_order(std::size_t count, std::size_t round) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (count == 0) return order;
  const std::size_t shift = round / 2 * std::max<std::size_t>(1, count / 3) % count;
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shift), order.end());
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

std::vector<CostCurve> sweep_calls(const CallCostOptions& options, const std::vector<std::string>& labels,
                                   const std::function<void(std::size_t curve, std::size_t tokens)>& call,
                                   const std::function<void(std::string_view)>& progress) {
  const std::vector<std::size_t> lengths = checked_lengths(options);
  const std::vector<std::size_t> longest_first(lengths.rbegin(), lengths.rend());
  std::vector<CostCurve> curves(labels.size());
  for (std::size_t c = 0; c < curves.size(); ++c) {
    curves[c].label = labels[c];
    for (const std::size_t length : lengths) curves[c].points.push_back({length, {}, {}});
    for (const std::size_t length : longest_first) call(c, length);
    progress(fmt::format("warmed up: {}", labels[c]));
  }
  const std::size_t count = curves.size() * lengths.size();
  for (std::size_t round = 0; round < options.rounds; ++round) {
    for (const std::size_t i : balanced_order(count, round)) {
      CostPoint& point = curves[i % curves.size()].points[i / curves.size()];
      const auto begin = std::chrono::steady_clock::now();
      call(i % curves.size(), point.tokens);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      point.seconds.push_back(took.count());
    }
    progress(fmt::format("round {} of {}", round + 1, options.rounds));
  }
  for (CostCurve& curve : curves) fit_curve(curve);
  return curves;
}

CallCostReport measure_call_cost(const ModelChoice& choice, const CallCostOptions& options,
                                 const std::function<void(std::string_view)>& progress) {
  const std::vector<std::size_t> lengths = checked_lengths(options);
  const std::vector<std::string> labels = checked_labels(options.curves);
  std::vector<ops::Selection> selections;
  for (const ops::FormOverrides& forms : options.curves) {
    selections.push_back(ops::select_forms(options.precision, forms));
  }
  const MeasuredModel model = open_model(choice);
  require(lengths.back() <= model.config.max_positions, "--lengths", fmt::format("{}", lengths.back()),
          fmt::format("at most the model's {} positions", model.config.max_positions));
  device::ThreadPool threads(options.threads);
  std::vector<std::unique_ptr<backbone::Backbone>> backbones;
  for (std::size_t c = 0; c < selections.size(); ++c) {
    progress(fmt::format("loading: {}", labels[c]));
    backbones.push_back(
        std::make_unique<backbone::Backbone>(model.config, model.weights, selections[c], threads));
  }
  const std::vector<std::int32_t> tokens = some_tokens(model.config, lengths.back());
  CallCostReport report{
      .options = options, .threads = threads.size(), .model = model.description, .curves = {}};
  report.curves = sweep_calls(
      options, labels,
      [&](std::size_t curve, std::size_t length) {
        run_one_call(*backbones[curve], std::span(tokens).first(length));
      },
      progress);
  for (std::size_t c = 0; c < selections.size(); ++c) report.curves[c].forms = ops::describe(selections[c]);
  return report;
}

Json call_cost_subject(const CallCostReport& report) {
  Json curves = Json::array();
  for (const CostCurve& curve : report.curves) {
    curves.push_back({{"label", curve.label}, {"forms", curve.forms}});
  }
  return {{"model", report.model},
          {"precision", ops::to_string(report.options.precision)},
          {"threads", report.threads},
          {"curves", std::move(curves)},
          {"lengths", checked_lengths(report.options)},
          {"rounds", report.options.rounds}};
}

Json to_json(const CallCostReport& report) {
  Json curves = Json::array();
  for (const CostCurve& curve : report.curves) {
    Json points = Json::array();
    for (const CostPoint& point : curve.points) points.push_back(point_json(point));
    curves.push_back({{"label", curve.label},
                      {"forms", curve.forms},
                      {"fit", to_json(curve.fit)},
                      {"points", std::move(points)}});
  }
  return {{"unit", "milliseconds"}, {"curves", std::move(curves)}};
}

std::string to_table(const CallCostReport& report) {
  fmt::memory_buffer out;
  const auto line = std::back_inserter(out);
  fmt::format_to(line, "{}, {}, {}, {}\n", report.model.dump(), ops::to_string(report.options.precision),
                 counted(report.threads, "thread"), counted(report.options.rounds, "round"));
  for (const CostCurve& curve : report.curves) {
    fmt::format_to(line, "\n{} ({})\n{:>8} {:>11} {:>11} {:>11} {:>11} {:>10}\n", curve.label, curve.forms,
                   "tokens", "median ms", "p10 ms", "p90 ms", "fit ms", "tokens/s");
    for (const CostPoint& point : curve.points) {
      const auto tokens = static_cast<double>(point.tokens);
      fmt::format_to(line, "{:>8} {:>11.3f} {:>11.3f} {:>11.3f} {:>11.3f} {:>10.0f}\n", point.tokens,
                     point.time.median * 1e3, point.time.p10 * 1e3, point.time.p90 * 1e3,
                     curve.fit.at(tokens), tokens / point.time.median);
    }
    append_fit(out, curve.fit);
  }
  return fmt::to_string(out);
}

}  // namespace assay::lab
