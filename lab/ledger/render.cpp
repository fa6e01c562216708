#include "lab/ledger/render.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/file.hpp"
#include "lab/embedded.hpp"
#include "lab/html/html.hpp"
#include "lab/ledger/evidence.hpp"
#include "lab/ledger/folder.hpp"

namespace assay::lab {
namespace {

using html::escaped;
using Json = nlohmann::ordered_json;

constexpr int kShortHash = 10;

/// Text on one line, as a cell of a table wants it; what would be an HTML tag stays text.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char letter : text) {
    const bool space = letter == ' ' || letter == '\n' || letter == '\r' || letter == '\t';
    if (space && (line.empty() || line.back() == ' ')) continue;
    if (letter == '<') {
      line += "&lt;";
    } else {
      line.push_back(space ? ' ' : letter);
    }
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

std::string evidence_of(const Experiment& experiment) {
  return experiment.state() == ExperimentState::decided ? experiment.evidence() : "pending";
}

std::string disposition_of(const Experiment& experiment) {
  if (experiment.state() == ExperimentState::decided) return experiment.disposition();
  return std::string(to_string(experiment.state()));
}

std::string result_of(const Experiment& experiment) {
  if (experiment.state() != ExperimentState::decided) return "";
  std::vector<std::string> parts;
  for (const Json& finding : experiment.body()["decision"]["findings"]) {
    parts.push_back(fmt::format("{}: {} ({})", finding["clause"].get<std::string>(),
                                finding["because"].get<std::string>(),
                                finding["outcome"].get<std::string>()));
  }
  const Json& last = experiment.body()["decision"]["dispositions"].back();
  return fmt::format("{}. {}", fmt::join(parts, "; "), last["reason"].get<std::string>());
}

std::vector<PairFinding> selected_pairs(const Ledger& ledger, const Experiment& experiment) {
  std::vector<PairFinding> pairs;
  if (experiment.state() < ExperimentState::recorded || !experiment.rule().window) return pairs;
  const WindowClause clause = *experiment.rule().window;
  for (const Receipt& receipt : ledger.receipts_of(experiment)) {
    if (receipt.kind != ReceiptKind::window) continue;
    const WindowFinding window = read_window_finding(receipt);
    for (PairFinding pair : window.pairs) {
      if (!selects(clause, pair)) continue;
      if (!window.clean) pair.doubt += pair.doubt.empty() ? "contended" : ", contended";
      pairs.push_back(std::move(pair));
    }
  }
  return pairs;
}

html::RatioAxis axis_of(const LedgerView& view) {
  html::RatioAxis axis;
  for (const auto& entry : view.entries) {
    for (const PairFinding& pair : entry.pairs) {
      for (const double ratio : {pair.lower, pair.ratio, pair.upper}) axis.include(ratio);
    }
  }
  return axis;
}

std::string plot(const PairFinding& pair, const html::RatioAxis& axis) {
  return fmt::format(
      "<div class=\"pair\"><span class=\"what\">{}: {} / {}</span>{}<span class=\"ratio\">{:.3f}× [{:.3f}, "
      "{:.3f}]{}</span></div>",
      escaped(pair.item), escaped(pair.baseline), escaped(pair.candidate),
      html::ratio_plot(axis, pair.ratio, pair.lower, pair.upper, !pair.doubt.empty()), pair.ratio, pair.lower,
      pair.upper, pair.doubt.empty() ? "" : " " + escaped(pair.doubt));
}

std::string chip(const std::string& text) {
  return text.empty() ? "" : html::verdict(text);
}

std::string row(std::string_view name, const std::string& html) {
  return html.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>", escaped(name), html);
}

std::string file_link(std::string_view folder, const Json& sha256, const std::string& text) {
  return fmt::format("<a href=\"{}/{}.json\">{}</a> ", folder, sha256.get<std::string>(), escaped(text));
}

std::string experiment_link(const std::optional<std::string>& id) {
  return id ? fmt::format("<a href=\"#{}\">{}</a>", *id, *id) : "";
}

/// One entry's frame: what filters look at stands in its data attributes.
std::string article(const std::string& id, const std::string& subsystem, const std::string& evidence,
                    const std::string& disposition, const std::string& title, const std::string& body) {
  return fmt::format(
      "<article id=\"{}\" data-evidence=\"{}\" data-disposition=\"{}\" data-subsystem=\"{}\"><h3><a "
      "href=\"#{}\">{}</a> "
      "{}</h3><p>{}{}</p>{}</article>\n",
      escaped(id), escaped(evidence), escaped(disposition), escaped(subsystem), escaped(id), escaped(id),
      escaped(title), chip(evidence), chip(disposition), body);
}

std::string frozen_rows(const Experiment& experiment) {
  if (experiment.state() == ExperimentState::proposed) return "";
  const Json& frozen = experiment.body()["frozen"];
  std::string files;
  for (const Json& gate : frozen["gates"]) {
    files += file_link("frozen", gate["sha256"], gate["path"].get<std::string>());
  }
  if (frozen.contains("window")) {
    files += file_link("frozen", frozen["window"]["sha256"], frozen["window"]["path"].get<std::string>());
  }
  std::string receipts;
  if (experiment.body().contains("receipts")) {
    for (const Json& receipt : experiment.body()["receipts"]) {
      receipts += file_link("receipts", receipt["sha256"],
                            fmt::format("{} {:.{}}", receipt["kind"].get<std::string>(),
                                        receipt["sha256"].get<std::string>(), kShortHash));
    }
  }
  return row("Frozen", fmt::format("{} at {:.{}}", frozen["made"].get<std::string>(),
                                   frozen["commit"].get<std::string>(), kShortHash)) +
         row("Gates and plan", files) + row("Rule", "<code>" + escaped(frozen["rule"].dump()) + "</code>") +
         row("Receipts", receipts);
}

std::string html_of(const LedgerView::Entry& entry, const html::RatioAxis& axis) {
  const Experiment& experiment = entry.experiment;
  std::string pairs;
  for (const PairFinding& pair : entry.pairs) pairs += plot(pair, axis);
  const std::string rows = row("Hypothesis", escaped(experiment.text("hypothesis"))) +
                           row("Mechanism", escaped(experiment.text("mechanism"))) +
                           row("Risk", escaped(experiment.text("risk"))) +
                           row("Result", escaped(entry.result)) + frozen_rows(experiment) +
                           row("Supersedes", experiment_link(experiment.supersedes())) +
                           row("Superseded by", experiment_link(experiment.superseded_by()));
  return article(experiment.id(), experiment.subsystem(), evidence_of(experiment), disposition_of(experiment),
                 experiment.text("subject"), pairs + "<dl>" + rows + "</dl>");
}

std::string html_of(const MarkdownTable& table, const std::vector<std::string>& cells) {
  const auto cell = [&](std::string_view column) {
    const auto place = find_column(table, column);
    return place ? cells[*place] : std::string();
  };
  std::string rows;
  for (std::size_t i = 1; i < cells.size(); ++i) rows += row(table.header[i], escaped(cells[i]));
  return article(cells.front(), cell("Subsystem"), cell("Evidence"), cell("Disposition"), cell("Subsystem"),
                 "<dl>" + rows + "</dl>");
}

constexpr std::string_view kFilters = R"(<form id="filters" hidden>
<label>Evidence <select name="evidence"></select></label>
<label>Disposition <select name="disposition"></select></label>
<label>Subsystem <select name="subsystem"></select></label>
<label>Text <input name="text" type="search"></label>
</form>
<p class="quiet" id="shown" role="status"></p>
)";

/// How many entries have each evidence, as "3 positive, 1 negative".
std::string summary(const LedgerView& view) {
  std::map<std::string, std::size_t> counts;
  for (const auto& entry : view.entries) ++counts[evidence_of(entry.experiment)];
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} {}", count, name));
  return fmt::format("{}{}{}", counted(view.entries.size(), "experiment"), parts.empty() ? "" : ": ",
                     fmt::join(parts, ", "));
}

}  // namespace

LedgerView view(const Ledger& ledger) {
  LedgerView view;
  for (Experiment& experiment : ledger.read()) {
    std::vector<PairFinding> pairs = selected_pairs(ledger, experiment);
    std::string result = result_of(experiment);
    view.entries.push_back({std::move(experiment), std::move(pairs), std::move(result)});
  }
  for (const auto& file : imported_files(ledger)) {
    view.records.push_back({file.stem().string(), read_imported_ledger(file)});
  }
  return view;
}

std::string to_markdown(const LedgerView& view) {
  std::string text = fmt::format(
      "# Ledger\n\n{}. Made by `assay ledger render`; the experiments themselves are in `experiments/`.\n\n",
      summary(view));
  text +=
      markdown_row({"ID", "Subject", "Hypothesis", "Risk", "Evidence", "Disposition", "Result", "Receipts"});
  text += "|---|---|---|---|---|---|---|---|\n";
  for (const auto& entry : view.entries) {
    const Experiment& experiment = entry.experiment;
    std::string receipts;
    for (const std::string& sha256 : experiment.receipt_sha256s()) {
      receipts += fmt::format("{}[{:.{}}](receipts/{}.json)", receipts.empty() ? "" : ", ", sha256,
                              kShortHash, sha256);
    }
    text +=
        markdown_row({experiment.id(), one_line(experiment.text("subject")),
                      one_line(experiment.text("hypothesis")), experiment.text("risk"),
                      evidence_of(experiment), disposition_of(experiment), one_line(entry.result), receipts});
  }
  for (const auto& record : view.records) {
    text += fmt::format("\nImported: [{}](imported/{}.md), {} of {}.\n", record.name, record.name,
                        counted(record.ledger.table.rows.size(), "row"), one_line(record.ledger.source));
  }
  return text;
}

std::string to_html(const LedgerView& view) {
  const html::RatioAxis axis = axis_of(view);
  std::string body = fmt::format(
      "<h1>Ledger</h1>\n<p class=\"quiet\">{}. Ratios are the baseline's time over the candidate's, with "
      "their "
      "interval; the dashed line is 1, to its right the candidate is faster. A hollow dot is in "
      "doubt.</p>\n{}"
      "<main>\n",
      escaped(summary(view)), kFilters);
  for (const auto& entry : view.entries) body += html_of(entry, axis);
  for (const auto& record : view.records) {
    body += fmt::format("<section><h2>Imported: {}</h2><p>{} of {}, kept as they were.</p>\n",
                        escaped(record.name), counted(record.ledger.table.rows.size(), "row"),
                        escaped(record.ledger.source));
    for (const auto& cells : record.ledger.table.rows) body += html_of(record.ledger.table, cells);
    body += "</section>\n";
  }
  return html::document({.title = "Ledger",
                         .style = std::string(embedded::kLedgerStyle),
                         .body = body + "</main>\n",
                         .scripts = {std::string(embedded::kLedgerScript)}});
}

std::vector<std::filesystem::path> render(const Ledger& ledger) {
  const FolderLock lock(ledger.folder());
  const LedgerView shown = view(ledger);
  std::vector<std::filesystem::path> written;
  const auto write = [&](const std::filesystem::path& file, const std::string& text) {
    write_file_atomically(file, text);
    written.push_back(file);
  };
  write(ledger.folder() / "LEDGER.md", to_markdown(shown));
  write(ledger.folder() / "index.html", to_html(shown));
  for (const auto& record : shown.records) {
    write(ledger.imported() / (record.name + ".md"), to_markdown(record.ledger.table));
  }
  return written;
}

}  // namespace assay::lab
