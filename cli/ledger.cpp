#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "lab/ledger/check.hpp"
#include "lab/ledger/imported.hpp"
#include "lab/ledger/ledger.hpp"
#include "lab/ledger/render.hpp"
#include "lab/ledger/schema.hpp"
#include "lab/receipt/machine.hpp"

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kSubjectWidth = 60;

struct LedgerFlags {
  std::string folder = "ledger";
  bool json = false;
  lab::Ledger ledger() const { return lab::Ledger(folder); }
};

struct RuleFlags {
  std::string file;
  double min_ratio = 0;
  double refuted_below = 0;
  std::string item;
  std::string baseline;
  std::string candidate;
  bool allow_contended = false;
  bool interval_may_hold_1 = false;
};

using Flags = std::shared_ptr<LedgerFlags>;

void say(const lab::Experiment& experiment, const std::string& what) {
  print_lines(fmt::format("{} {}: {}\n", experiment.id(), what, experiment.file().string()));
}

Json window_clause(const RuleFlags& flags) {
  Json clause = Json::object();
  if (!flags.item.empty()) clause["item"] = flags.item;
  if (!flags.baseline.empty()) clause["baseline"] = flags.baseline;
  if (!flags.candidate.empty()) clause["candidate"] = flags.candidate;
  clause["min_ratio"] = flags.min_ratio;
  clause["refuted_below"] = flags.refuted_below > 0 ? flags.refuted_below : flags.min_ratio;
  clause["interval_excludes_1"] = !flags.interval_may_hold_1;
  clause["clean"] = !flags.allow_contended;
  return clause;
}

Json rule_of(const RuleFlags& flags, const lab::Freezing& freezing) {
  if (!flags.file.empty()) return lab::read_rule_file(flags.file);
  if (!freezing.window.empty() && flags.min_ratio <= 0) {
    throw Error(ErrorKind::invalid_argument, {.where = "--min-ratio",
                                              .found = "nothing above 0",
                                              .expected = "the ratio that the window must show",
                                              .advice = "or give the whole rule with --rule"});
  }
  Json rule{{"schema", "assay.rule/1"}};
  if (!freezing.gates.empty()) rule["gates"] = "all pass";
  if (!freezing.window.empty()) rule["window"] = window_clause(flags);
  return rule;
}

std::vector<std::string> cells_of(const lab::Experiment& experiment) {
  const bool decided = experiment.state() == lab::ExperimentState::decided;
  return {experiment.id(), std::string(to_string(experiment.state())), decided ? experiment.evidence() : "",
          decided ? experiment.disposition() : "", fit(experiment.text("subject"), kSubjectWidth)};
}

std::string counts_text(const lab::MarkdownTable& table, std::string_view column) {
  std::vector<std::string> parts;
  for (const auto& [value, count] : lab::count_values(table, column)) {
    parts.push_back(fmt::format("{} {}", count, value));
  }
  return parts.empty() ? "" : fmt::format("  {}: {}\n", column, fmt::join(parts, ", "));
}

Json imported_json(const lab::LedgerView::Record& record) {
  const lab::MarkdownTable& table = record.ledger.table;
  return {{"name", record.name},
          {"source", record.ledger.source},
          {"rows", table.rows.size()},
          {"evidence", lab::count_values(table, "evidence")},
          {"disposition", lab::count_values(table, "disposition")}};
}

void print_json(const Json& json) {
  print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void list(const LedgerFlags& flags) {
  const lab::LedgerView view = lab::view(flags.ledger());
  if (flags.json) {
    Json report{{"experiments", Json::array()}, {"imported", Json::array()}};
    for (const auto& entry : view.entries) report["experiments"].push_back(entry.experiment.body());
    for (const auto& record : view.records) report["imported"].push_back(imported_json(record));
    return print_json(report);
  }
  std::vector<std::vector<std::string>> rows{{"id", "state", "evidence", "disposition", "subject"}};
  for (const auto& entry : view.entries) rows.push_back(cells_of(entry.experiment));
  std::string text = format_table(rows);
  for (const auto& record : view.records) {
    const lab::MarkdownTable& table = record.ledger.table;
    text +=
        fmt::format("\nimported {}: {} rows of {}\n{}{}", record.name, table.rows.size(),
                    record.ledger.source, counts_text(table, "evidence"), counts_text(table, "disposition"));
  }
  print_lines(text);
}

void show_imported(const LedgerFlags& flags, const std::string& id) {
  for (const auto& file : lab::imported_files(flags.ledger())) {
    const lab::MarkdownTable table = lab::read_imported_ledger(file).table;
    for (const auto& cells : table.rows) {
      if (cells.front() != id) continue;
      Json row = Json::object();
      for (std::size_t i = 0; i < cells.size(); ++i) row[table.header[i]] = cells[i];
      return print_json(row);
    }
  }
  throw Error(ErrorKind::missing, {.where = id,
                                   .found = "no such experiment",
                                   .expected = "an ID of the ledger",
                                   .advice = "`assay ledger list` lists them"});
}

CLI::App* subcommand(CLI::App& group, const Flags& flags, const std::string& name, const std::string& text) {
  CLI::App* command = group.add_subcommand(name, text);
  command->add_option("--ledger", flags->folder, "The ledger's folder")->capture_default_str();
  return command;
}

void add_new(CLI::App& group, const Flags& flags) {
  auto proposal = std::make_shared<lab::Proposal>();
  CLI::App* command = subcommand(group, flags, "new", "Allocate an ID for a hypothesis");
  command->add_option("--subject", proposal->subject, "The subsystem, or 'subsystem: what in it'")
      ->required();
  command->add_option("--hypothesis", proposal->hypothesis, "What would be true")->required();
  command->add_option("--mechanism", proposal->mechanism, "Why it would be true")->required();
  command->add_option("--risk", proposal->risk, "To the numbers: exact, reordered or approximate")
      ->required()
      ->check(CLI::IsMember({"exact", "reordered", "approximate"}));
  command->add_option("--source", proposal->sources,
                      "Paths of the subject's code, for `freeze` to find committed");
  command->add_option("--slug", proposal->slug, "For the file's name; by default made of the subject");
  command->add_option("--supersedes", proposal->supersedes, "The experiment whose place this one takes");
  command->callback([flags, proposal] { say(flags->ledger().propose(*proposal), "proposed"); });
}

void add_freeze(CLI::App& group, const Flags& flags) {
  auto freezing = std::make_shared<lab::Freezing>();
  auto rule = std::make_shared<RuleFlags>();
  auto id = std::make_shared<std::string>();
  CLI::App* command =
      subcommand(group, flags, "freeze", "Fix what an experiment will be judged by, before it is made");
  command->add_option("id", *id, "The experiment")->required();
  command->add_option("--gate", freezing->gates, "Gates whose receipts must PASS");
  command->add_option("--window", freezing->window, "The window plan that will be timed");
  command->add_option("--device", freezing->device, "Only receipts of this device count: an id, or 'this'");
  CLI::Option* file = command->add_option("--rule", rule->file, "The decision rule, as JSON");
  command->add_option("--min-ratio", rule->min_ratio, "Baseline's time over the candidate's that is claimed")
      ->excludes(file);
  command
      ->add_option("--refuted-below", rule->refuted_below,
                   "An interval wholly below this is negative; by default --min-ratio")
      ->excludes(file);
  command->add_option("--item", rule->item, "Only pairs on this item")->excludes(file);
  command->add_option("--baseline", rule->baseline, "Only pairs with this baseline form")->excludes(file);
  command->add_option("--candidate", rule->candidate, "Only pairs with this candidate form")->excludes(file);
  command->add_flag("--allow-contended", rule->allow_contended, "Contended windows count too")
      ->excludes(file);
  command->add_flag("--interval-may-hold-1", rule->interval_may_hold_1, "The interval need not lie above 1")
      ->excludes(file);
  command->callback([flags, freezing, rule, id] {
    if (freezing->device == "this") freezing->device = lab::this_machine().id;
    freezing->rule = rule_of(*rule, *freezing);
    say(flags->ledger().freeze(*id, *freezing), "frozen");
  });
}

void add_record(CLI::App& group, const Flags& flags) {
  auto id = std::make_shared<std::string>();
  auto receipts = std::make_shared<std::vector<std::filesystem::path>>();
  CLI::App* command = subcommand(group, flags, "record", "Attach receipts to a frozen experiment");
  command->add_option("id", *id, "The experiment")->required();
  command->add_option("receipts", *receipts, "Files that gates and windows wrote")->required();
  command->callback([flags, id, receipts] { say(flags->ledger().record(*id, *receipts), "recorded"); });
}

void add_decide(CLI::App& group, const Flags& flags) {
  auto id = std::make_shared<std::string>();
  auto disposition = std::make_shared<lab::Disposition>();
  CLI::App* command =
      subcommand(group, flags, "decide", "Compute the evidence by the frozen rule; set the disposition");
  command->add_option("id", *id, "The experiment")->required();
  command->add_option("--disposition", disposition->disposition, "What becomes of it")
      ->required()
      ->check(
          CLI::IsMember({"benchmark-only", "pending-integration", "integrated", "superseded", "abandoned"}));
  command->add_option("--reason", disposition->reason, "Why")->required();
  command->add_option("--by", disposition->by, "For superseded: the experiment that takes its place");
  command->callback([flags, id, disposition] {
    const lab::Experiment decided = flags->ledger().decide(*id, *disposition);
    say(decided, fmt::format("decided, {}, {}", decided.evidence(), decided.disposition()));
  });
}

void add_check(CLI::App& group, const Flags& flags) {
  CLI::App* command =
      subcommand(group, flags, "check", "Audit the ledger and its history; exit status 1 for a problem");
  command->add_flag("--json", flags->json, "Print the audit as JSON");
  command->callback([flags] {
    const lab::LedgerAudit audit = lab::check(flags->ledger());
    if (flags->json) {
      print_json(lab::to_json(audit));
    } else {
      print_lines(lab::to_text(audit));
    }
    if (!audit.sound()) throw CLI::RuntimeError(1);
  });
}

void add_list_and_show(CLI::App& group, const Flags& flags) {
  CLI::App* listing = subcommand(group, flags, "list", "All experiments, one a line");
  listing->add_flag("--json", flags->json, "Print them whole, as JSON");
  listing->callback([flags] { list(*flags); });
  auto id = std::make_shared<std::string>();
  CLI::App* show = subcommand(group, flags, "show", "One experiment whole, as JSON");
  show->add_option("id", *id, "The experiment, or an imported row")->required();
  show->callback([flags, id] {
    if (!id->starts_with("EXP-")) return show_imported(*flags, *id);
    print_json(flags->ledger().read(*id).body());
  });
}

void add_render_and_import(CLI::App& group, const Flags& flags) {
  CLI::App* render = subcommand(group, flags, "render", "Write LEDGER.md and index.html");
  render->callback([flags] {
    for (const auto& file : lab::render(flags->ledger())) print_lines(file.string() + "\n");
  });
  auto file = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>("imported");
  CLI::App* import = subcommand(group, flags, "import", "Keep a record that was a Markdown table");
  import->add_option("file", *file, "The Markdown file")->required();
  import->add_option("--name", *name, "The record's name in the ledger")->capture_default_str();
  import->callback([flags, file, name] {
    const auto target = lab::import_markdown(flags->ledger(), *file, *name);
  const lab::MarkdownTable table = lab::read_imported_ledger(target).table;
  print_lines(fmt::format("{} rows: {}\n{}{}", table.rows.size(), target.string(),
                          counts_text(table, "evidence"), counts_text(table, "disposition")));
});
}  // namespace

}  // namespace assay::cli

void add_ledger(CLI::App& app) {
  CLI::App* group = app.add_subcommand(
      "ledger", "Experiments: hypotheses frozen before the code changes, evidence, disposition");
  group->require_subcommand(1);
  auto flags = std::make_shared<LedgerFlags>();
  add_new(*group, flags);
  add_freeze(*group, flags);
  add_record(*group, flags);
  add_decide(*group, flags);
  add_check(*group, flags);
  add_list_and_show(*group, flags);
  add_render_and_import(*group, flags);
}

}  // namespace assay::cli
