#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "lab/cost/call_cost.hpp"
#include "lab/html/html.hpp"

namespace assay::lab {
namespace {

constexpr double kWidth = 760;
constexpr double kPlotTop = 16;
constexpr double kPlotBottom = 380;
constexpr double kPlotLeft = 64;
constexpr double kPlotRight = 744;
constexpr double kLegendTop = 440;
constexpr double kLegendLine = 20;

// Okabe and Ito's palette (Color Universal Design, 2008), which the colour-blind tell apart; black, which a
// dark page would hide, is left to the text.
constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                              "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f"};

constexpr const char* kStyle =
    "svg{--ink:#1f2328;--grid:#d7dbe0;--page:#ffffff}"
    "@media(prefers-color-scheme:dark){svg{--ink:#e6e8eb;--grid:#3a4048;--page:#15181c}}"
    "text{font:12px system-ui,sans-serif;fill:var(--ink)}.axis{stroke:var(--ink)}.grid{stroke:var(--grid)}"
    ".page{fill:var(--page)}.line{fill:none;stroke-width:1.5;stroke-dasharray:4 3}"
    ".fit{fill:none;stroke-width:1.5}.range{stroke-width:1}";

/// 1, 2 or 5 times a power of ten, such that about `count` of them reach `most`.
double tick_step(double most, double count) {
  const double raw = most / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

class Drawing {
 public:
  explicit Drawing(const CallCostReport& report) : report_(report) {
    for (const CostCurve& curve : report.curves) {
      for (const CostPoint& point : curve.points) {
        most_tokens_ = std::max(most_tokens_, static_cast<double>(point.tokens));
        most_time_ = std::max(
            {most_time_, point.time.p90 * 1e3, curve.fit.line.at(static_cast<double>(point.tokens))});
      }
    }
  }

  std::string draw() {
    const double height = kLegendTop + kLegendLine * static_cast<double>(report_.curves.size()) + 8;
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" "
        "aria-label=\"Time of one call over its tokens\"><style>{2}</style>"
        "<rect class=\"page\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n",
        kWidth, height, kStyle);
    axes();
    for (std::size_t i = 0; i < report_.curves.size(); ++i) curve(i);
    add("</svg>\n");
    return fmt::to_string(out_);
  }

 private:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }

  double x(double tokens) const { return kPlotLeft + (kPlotRight - kPlotLeft) * tokens / most_tokens_; }
  double y(double milliseconds) const {
    return kPlotBottom - (kPlotBottom - kPlotTop) * std::max(0.0, milliseconds) / most_time_;
  }

  void axes() {
    const double step = tick_step(most_time_, 6);
    for (double t = 0; t <= most_time_; t += step) {
      add("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
          "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
          kPlotLeft, kPlotRight, y(t), kPlotLeft - 6, y(t) + 4, t);
    }
    const double token_step = tick_step(most_tokens_, 8);
    for (double t = 0; t <= most_tokens_; t += token_step) {
      add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.4g}</text>\n", x(t), kPlotBottom + 18,
          t);
    }
    add("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{1:.1f}\" y=\"{3:.1f}\" text-anchor=\"end\">tokens in the call</text>"
        "<text x=\"{4:.1f}\" y=\"{5:.1f}\">ms</text>\n",
        kPlotLeft, kPlotRight, kPlotBottom, kPlotBottom + 38, kPlotLeft + 6, kPlotTop + 10);
  }

  template <class Cost>
  void path(std::string_view kind, const char* colour, double first, double last, const Cost& cost) {
    add("<path class=\"{}\" stroke=\"{}\" d=\"", kind, colour);
    // One point a pixel: steps are drawn as steep as the page can show.
    const auto points = static_cast<std::size_t>(std::max(2.0, x(last) - x(first)));
    for (std::size_t i = 0; i <= points; ++i) {
      const double tokens = first + (last - first) * static_cast<double>(i) / static_cast<double>(points);
      add("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", x(tokens), y(cost(tokens)));
    }
    add("\"/>\n");
  }

  void curve(std::size_t index) {
    const CostCurve& curve = report_.curves[index];
    const CostFit& fit = curve.fit;
    const char* colour = kColours[index % kColours.size()];
    const auto first = static_cast<double>(curve.points.front().tokens);
    const auto last = static_cast<double>(curve.points.back().tokens);
    path("line", colour, first, last, [&](double tokens) { return fit.line.at(tokens); });
    if (fit.chosen == CostShape::tiles) path("fit", colour, first, last, [&](double t) { return fit.at(t); });
    if (fit.chosen == CostShape::pieces) {
      for (const Piece& piece : fit.pieces.pieces) {
        path("fit", colour, piece.first_x, piece.last_x, [&](double t) { return piece.line.at(t); });
      }
    }
    for (const CostPoint& point : curve.points) {
      const double at = x(static_cast<double>(point.tokens));
      add("<line class=\"range\" stroke=\"{0}\" x1=\"{1:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{3:.1f}\"/>"
          "<circle fill=\"{0}\" cx=\"{1:.1f}\" cy=\"{4:.1f}\" r=\"3\"><title>{5} tokens: {6:.3f} ms "
          "({7:.3f} to {8:.3f})</title></circle>\n",
          colour, at, y(point.time.p10 * 1e3), y(point.time.p90 * 1e3), y(point.time.median * 1e3),
          point.tokens, point.time.median * 1e3, point.time.p10 * 1e3, point.time.p90 * 1e3);
    }
    const double row = kLegendTop + kLegendLine * static_cast<double>(index);
    add("<circle fill=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}: {:.2f} "
        "ms + "
        "{:.4f} ms a token, residual {:.3f} ms rms; chosen: {}</text>\n",
        colour, kPlotLeft, row, kPlotLeft + 12, row + 4, html::escaped(curve.label), fit.line.intercept,
        fit.line.slope, fit.line.residual_rms, to_string(fit.chosen));
  }

  const CallCostReport& report_;
  double most_tokens_ = 1;
  double most_time_ = 1e-9;
  fmt::memory_buffer out_;
};

}  // namespace

std::string to_svg(const CallCostReport& report) {
  return Drawing(report).draw();
}

std::string to_html(const CallCostReport& report) {
  return html::document({.title = "Call cost",
                         .style = "svg{width:100%;height:auto}pre{overflow-x:auto}\n",
                         .body = fmt::format("<main><h1>Call cost</h1>\n{}<pre>{}</pre></main>\n",
                                             to_svg(report), html::escaped(to_table(report)))});
}

}  // namespace assay::lab
