#include <cstdio>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "device/cpu_features.hpp"
#include "ops/selection.hpp"

namespace assay::cli {
namespace {

struct FormsOptions {
  bool why = false;
  bool json = false;
};

std::string used_by(const ops::FormListing& form) {
  if (form.selected_fp32 && form.selected_bf16) return "fp32, bf16";
  if (form.selected_fp32) return "fp32";
  return form.selected_bf16 ? "bf16" : "";
}

nlohmann::ordered_json to_json(const ops::FormListing& form, bool why) {
  nlohmann::ordered_json used = nlohmann::ordered_json::array();
  if (form.selected_fp32) used.push_back("fp32");
  if (form.selected_bf16) used.push_back("bf16");
  nlohmann::ordered_json row{{"op", form.op},
                             {"form", form.info.name},
                             {"precision", to_string(form.info.precision)},
                             {"layout", form.info.layout},
                             {"needs", device::describe(form.info.needs)},
                             {"supported", form.supported},
                             {"selected", std::move(used)},
                             {"summary", form.info.summary}};
  if (why) row["why"] = form.why;
  return row;
}

void print_json(const FormsOptions& options) {
  nlohmann::ordered_json report{{"processor", device::cpu_model_name()},
                                {"has", device::describe(device::cpu_features())},
                                {"selection", "default order"},
                                {"forms", nlohmann::ordered_json::array()}};
  for (const ops::FormListing& form : ops::list_forms())
    report["forms"].push_back(to_json(form, options.why));
  fmt::print("{}\n", report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_table(const FormsOptions& options) {
  constexpr auto kRow = "{:<17} {:<15} {:<9} {:<19} {:<9} {:<11} {}\n";
  fmt::print(
      "Processor: {} ({})\nNo selection made from receipts for this device: the default order decides.\n\n",
      device::cpu_model_name(), device::describe(device::cpu_features()));
  fmt::print(kRow, "op", "form", "precision", "needs", "runs here", "selected",
             options.why ? "why" : "summary");
  for (const ops::FormListing& form : ops::list_forms()) {
    fmt::print(kRow, form.op, form.info.name, to_string(form.info.precision),
               device::describe(form.info.needs), form.supported ? "yes" : "no", used_by(form),
               options.why ? form.why : std::string(form.info.summary));
  }
}

}  // namespace

void add_forms(CLI::App& app) {
  const auto options = std::make_shared<FormsOptions>();
  CLI::App* command = app.add_subcommand(
      "forms", "List the forms of every op, which of them this machine runs and which a run selects");
  command->add_flag("--why", options->why, "Say for each form why it is selected or not");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    if (options->json) {
      print_json(*options);
    } else {
      print_table(*options);
    }
  });
}

}  // namespace assay::cli
