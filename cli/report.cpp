#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "cli/commands.hpp"
#include "lab/cost/measured_model.hpp"
#include "lab/receipt/machine.hpp"
#include "lab/report/report.hpp"

namespace assay::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> receipts{"ledger/receipts"};
  std::vector<std::string> models;
  std::vector<std::string> shapes;
  std::string base;
  std::string device;
  std::string build = "most";
  std::string gates = "lab/gates";
  std::string ledger = "ledger";
  std::string selection;
  std::string out;
  std::string json;
};

bool is_identity(const std::string& text) {
  constexpr std::size_t kSha256Digits = 64;
  return text.size() == kSha256Digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

lab::ReportModel model_of(const std::string& text, const std::string& base) {
  if (is_identity(text)) return {.key = text, .name = {}};
  const lab::MeasuredModel model = lab::open_model({.model = text, .base = base, .shape = {}});
  return {.key = model.description.at("identity").get<std::string>(),
          .name = model.description.at("name").get<std::string>()};
}

lab::ReportOptions options_of(const ReportFlags& flags) {
  lab::ReportOptions options;
  options.receipts.assign(flags.receipts.begin(), flags.receipts.end());
  options.gates = flags.gates;
  options.ledger = flags.ledger;
  options.scope.device = flags.device.empty() ? lab::this_machine().id : flags.device;
  options.scope.build = flags.build;
  options.selection = flags.selection.empty()
                          ? std::filesystem::path("selection") / (options.scope.device + ".json")
                          : std::filesystem::path(flags.selection);
  for (const std::string& model : flags.models) options.scope.models.push_back(model_of(model, flags.base));
  for (const std::string& shape : flags.shapes) {
    options.scope.models.push_back({.key = "synthetic " + shape, .name = "synthetic " + shape});
  }
  return options;
}

/// What was asked for by name must be there; the defaults may be absent.
void check_given(const std::string& flag, const std::string& path) {
  if (path.empty() || path_exists(path)) return;
  throw Error(ErrorKind::missing, {.where = flag + " " + path, .found = "nothing there"});
}

void report(const ReportFlags& flags, bool ledger_given) {
  check_given("--selection", flags.selection);
  if (ledger_given) check_given("--ledger", flags.ledger);
  const nlohmann::ordered_json report = lab::make_report(options_of(flags));
  write_file_atomically(flags.out, lab::report_page(report));
  if (!flags.json.empty()) write_file_atomically(flags.json, report.dump(1) + "\n");
  const auto& receipts = report["summary"]["receipts"];
  print_lines(fmt::format("{}: {} receipts used, {} files refused\n", flags.out, receipts["used"].dump(),
                          receipts["refused"].dump()));
  // Each reason once, with the first of its files and how many more there are.
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& refused : report["refused"]) {
    files[refused["reason"].get<std::string>()].push_back(refused["file"].get<std::string>());
  }
  for (const auto& [reason, names] : files) {
    const std::string more = names.size() == 1 ? "" : fmt::format(" and {} more", names.size() - 1);
    print_lines(fmt::format("refused: {}{}: {}\n", names.front(), more, reason));
  }
}

}  // namespace

void add_report(CLI::App& lab) {
  const auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = lab.add_subcommand(
      "report", "One page, and the same as JSON, of all that is known of a model on a device");
  command->add_option("--receipts", flags->receipts, "Folder of receipts; repeatable")->capture_default_str();
  command->add_option(
      "--model", flags->models,
      "What the report is about: a run directory, a GGUF file, or a model's identity as receipts have "
      "it; repeatable. Without one, the only model that the receipts are about");
  command->add_option("--shape", flags->shapes,
                      "Also receipts of synthetic weights of this shape; repeatable");
  command->add_option("--base", flags->base, "Base model directory of --model");
  command->add_option("--device", flags->device, "Receipts' device id; without it, this machine");
  command
      ->add_option(
          "--build", flags->build,
          "most (the build of most receipts), newest, any, or the first digits of a commit or a program's "
          "SHA-256: receipts of other builds "
          "are refused")
      ->capture_default_str();
  command->add_option("--gates", flags->gates, "Folder of the gates that count")->capture_default_str();
  CLI::Option* ledger =
      command->add_option("--ledger", flags->ledger, "The ledger, where there is one")->capture_default_str();
  command->add_option("--selection", flags->selection,
                      "The device's selection; without it selection/<device>.json, where it is there");
  command->add_option("--out", flags->out, "The page to write")->required();
  command->add_option("--json", flags->json, "Write the same to this JSON file");
  command->callback([flags, ledger] { report(*flags, ledger->count() > 0); });
}

}  // namespace assay::cli
