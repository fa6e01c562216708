#include "lab/html/html.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/sha256.hpp"
#include "lab/embedded.hpp"

namespace assay::lab::html {
namespace {

/// What a verdict means, as a class of the sheet, and the sign that says it without colour.
struct Tone {
  std::string_view word;
  std::string_view style;
  std::string_view sign;
};

constexpr std::array kTones{
    Tone{"PASS", "good", "✓"},         Tone{"RED", "good", "✓"},        Tone{"clean", "good", "✓"},
    Tone{"faster", "good", "▲"},       Tone{"positive", "good", "✓"},   Tone{"integrated", "good", "✓"},
    Tone{"not growing", "good", "✓"},  Tone{"selected", "good", "★"},   Tone{"admitted", "good", "✓"},
    Tone{"ops passed", "good", "✓"},   Tone{"FAIL", "bad", "✕"},        Tone{"GREEN", "bad", "✕"},
    Tone{"INERT", "bad", "✕"},         Tone{"negative", "bad", "✕"},    Tone{"growing", "bad", "✕"},
    Tone{"refused", "bad", "✕"},       Tone{"suspicious", "open", "!"}, Tone{"contended", "open", "!"},
    Tone{"inconclusive", "open", "?"}, Tone{"slower", "plain", "▼"},    Tone{"pending", "open", "…"},
};

std::string base64_of_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::string policy(const std::vector<std::string>& scripts) {
  std::string allowed;
  for (const std::string& script : scripts) {
    allowed += fmt::format(" 'sha256-{}'", base64_of_hex(sha256_hex(std::as_bytes(std::span(script)))));
  }
  return fmt::format(
      "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src 'unsafe-inline'; "
      "script-src{}",
      allowed.empty() ? " 'none'" : allowed);
}

/// Ticks of a logarithmic axis: as round as its range allows.
constexpr std::array kRoundRatios{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7,  0.8,  0.9,  1.0,
                                  1.1,  1.2,  1.5,  2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0};
constexpr double kTickDistance = 20;  ///< percent of the axis, so that labels do not touch

std::string marks(double low, double middle, double high, std::string_view dot) {
  return fmt::format(
      "<i class=\"span\" style=\"left:{:.2f}%;width:{:.2f}%\"></i><i class=\"{}\" "
      "style=\"left:{:.2f}%\"></i>",
      low, high - low, dot, middle);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        const auto code = static_cast<unsigned char>(letter);
        if ((code < 0x20 && letter != '\t' && letter != '\n') || code == 0x7f) {
          html += "\xef\xbf\xbd";
        } else {
          html.push_back(letter);
        }
    }
  }
  return html;
}

std::string script_safe(std::string_view json) {
  std::string safe;
  for (const char letter : json) {
    if (letter == '<') {
      safe += "\\u003c";
    } else {
      safe.push_back(letter);
    }
  }
  return safe;
}

std::string document(const Page& page) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>{}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{}{}</style>\n</head>\n<body>\n",
      policy(page.scripts), escaped(page.title), embedded::kPageStyle, page.style);
  html += page.body;
  for (const std::string& script : page.scripts) html += "<script>" + script + "</script>\n";
  return html + "</body>\n</html>\n";
}

std::string verdict(std::string_view word) {
  const auto found =
      std::find_if(kTones.begin(), kTones.end(), [&](const Tone& tone) { return tone.word == word; });
  const Tone tone = found == kTones.end() ? Tone{word, "plain", "–"} : *found;
  return fmt::format("<span class=\"chip {}\"><span aria-hidden=\"true\">{}</span> {}</span>", tone.style,
                     tone.sign, escaped(word));
}

std::string table(const Table& table) {
  const std::string caption = escaped(table.caption);
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
      "aria-label=\"{0}\"><table><caption>{0}</caption>\n"
      "<thead><tr>",
      caption);
  for (const Column& column : table.columns) {
    const std::string label =
        column.html.empty() ? "" : fmt::format(" aria-label=\"{}\"", escaped(column.name));
    html += fmt::format("<th scope=\"col\"{}{}>{}</th>", column.number ? " class=\"number\"" : "", label,
                        column.html.empty() ? escaped(column.name) : column.html);
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const Row& row : table.rows) {
    html += row.style.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", row.style);
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const char* place = table.columns[i].number ? " class=\"number\"" : "";
      html += i == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", place, row.cells[i])
                     : fmt::format("<td{}>{}</td>", place, row.cells[i]);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

void RatioAxis::include(double ratio) {
  low_ = std::min(low_, ratio / 1.02);
  high_ = std::max(high_, ratio * 1.02);
}

double RatioAxis::percent(double ratio) const {
  const double place = (std::log(ratio) - std::log(low_)) / (std::log(high_) - std::log(low_));
  return 100 * std::clamp(place, 0.0, 1.0);
}

std::string RatioAxis::ticks() const {
  std::vector<double> shown{1};
  for (const double tick : kRoundRatios) {
    const bool apart = std::all_of(shown.begin(), shown.end(), [&](double other) {
      return std::abs(percent(other) - percent(tick)) >= kTickDistance;
    });
    if (tick >= low_ && tick <= high_ && apart) shown.push_back(tick);
  }
  std::string html = "<span class=\"track ticks\" aria-hidden=\"true\">";
  for (const double tick : shown) {
    html += fmt::format("<b style=\"left:{:.2f}%\">{}×</b>", percent(tick), tick);
  }
  return html + "</span>";
}

std::string interval_plot(double low, double middle, double high) {
  return "<span class=\"track\" aria-hidden=\"true\">" + marks(low, middle, high, "dot") + "</span>";
}

std::string ratio_plot(const RatioAxis& axis, double ratio, double low, double high, bool doubt) {
  return fmt::format(
      "<span class=\"track\" aria-hidden=\"true\"><i class=\"one\" style=\"left:{:.2f}%\"></i>{}</span>",
      axis.percent(1),
      marks(axis.percent(low), axis.percent(ratio), axis.percent(high), doubt ? "dot doubt" : "dot"));
}

}  // namespace assay::lab::html
