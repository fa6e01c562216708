#include "lab/report/page_parts.hpp"

#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace assay::lab::page {
namespace {

constexpr int kShortHash = 10;

constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kWords{{
    {"max_abs_dp", "max |Δp|"},
    {"mean_of_row_mean_abs_dp", "mean |Δp|"},
    {"argmax_off_near_ties", "argmax off near ties"},
    {"nrmse", "NRMSE"},
    {"snr_db", "SNR dB"},
    {"max_abs", "max |Δ|"},
    {"rows_with_same_tokens", "same tokens"},
    {"log_spectral_db", "log-spectral dB"},
    {"pearson", "Pearson"},
}};

}  // namespace

std::string text(const Json& value) {
  if (value.is_null()) return "–";
  return html::escaped(value.is_string() ? value.get<std::string>() : value.dump());
}

std::string code(const Json& value) {
  return value.is_null() ? "–" : "<code>" + text(value) + "</code>";
}

std::string number(const Json& value) {
  return value.is_number() ? fmt::format("{:.4g}", value.get<double>()) : text(value);
}

std::string measure(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_integer()) return value.dump();
  if (value.is_number()) return fmt::format("{:.3g}", value.get<double>());
  return text(value);
}

std::string mebibytes(const Json& bytes) {
  return bytes.is_number() ? fmt::format("{:.1f}", bytes.get<double>() / kMebibyte) : text(bytes);
}

std::string milliseconds(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

std::string wrapped(const std::string& html) {
  return "<span class=\"wrap\">" + html + "</span>";
}

std::string narrow(const std::string& html) {
  return "<span class=\"wrap narrow\">" + html + "</span>";
}

std::string hash(const Json& sha256) {
  if (!sha256.is_string()) return "–";
  const std::string whole = html::escaped(sha256.get<std::string>());
  return fmt::format("<a href=\"#f-{0}\" title=\"{0}\"><code>{0:.{1}}</code></a>", whole, kShortHash);
}

std::string words(std::string_view name) {
  for (const auto& [from, to] : kWords) {
    if (from == name) return std::string(to);
  }
  std::string plain(name);
  for (char& letter : plain) {
    if (letter == '_') letter = ' ';
  }
  return plain;
}

std::string ratio(double ratio, const Json& interval) {
  return fmt::format("{:.3f}× [{:.3f}, {:.3f}]", ratio, interval[0].get<double>(), interval[1].get<double>());
}

std::string model_name(const Json& report, const Json& key) {
  for (const Json& model : report["about"]["models"]) {
    if (model["key"] == key) return text(model["name"]);
  }
  return text(key);
}

html::RatioAxis ratio_axis(const Json& rows) {
  html::RatioAxis axis;
  for (const Json& row : rows) {
    if (row["ratio"].is_null()) continue;
    for (const Json& bound : {row["ratio"], row["interval"][0], row["interval"][1]})
      axis.include(bound.get<double>());
  }
  return axis;
}

std::string ratio_plot(const html::RatioAxis& axis, const Json& row, bool doubt) {
  return html::ratio_plot(axis, row["ratio"].get<double>(), row["interval"][0].get<double>(),
                          row["interval"][1].get<double>(), doubt);
}

std::string verdict_in(bool clean, const std::string& verdict, bool suspicious) {
  if (!clean) return html::verdict("contended");
  return html::verdict(suspicious ? "suspicious" : verdict);
}

std::string fold(const std::string& summary, const std::string& body, bool open) {
  return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", open ? " open" : "",
                     html::escaped(summary), body);
}

std::string Plots::figure(const std::string& caption, const std::string& about, const std::string& x,
                          const std::string& y, const std::vector<Series>& series, bool zero) {
  Json plot{{"x", x}, {"y", y}, {"zero", zero}, {"series", Json::array()}};
  for (const Series& one : series) {
    Json data{{"label", one.label}};
    if (!one.points.is_null()) data["points"] = one.points;
    if (!one.line.is_null()) data["line"] = one.line;
    plot["series"].push_back(std::move(data));
  }
  plots_.push_back(std::move(plot));
  return fmt::format(
      "<figure data-plot=\"{}\"><figcaption>{}</figcaption>\n<div class=\"legend\"></div>\n"
      "<div class=\"plot\" role=\"img\" aria-label=\"{}\"></div>\n<p class=\"readout\"></p>\n"
      "<noscript>The drawing needs scripts; the numbers stand in the table.</noscript></figure>\n",
      plots_.size() - 1, html::escaped(caption), html::escaped(about));
}

std::string Plots::data() const {
  return "<script type=\"application/json\" id=\"plots\">" + html::script_safe(plots_.dump()) + "</script>\n";
}

}  // namespace assay::lab::page
