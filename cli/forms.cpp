#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/utf8.hpp"
#include "cli/commands.hpp"
#include "device/cpu_features.hpp"
#include "device/cpu_id.hpp"
#include "ops/device_selection.hpp"
#include "ops/selection.hpp"

namespace assay::cli {
namespace {

struct FormsOptions {
  bool why = false;
  bool json = false;
};

/// The listing as runs here are: by the default order, and by this device's selection where there is one.
struct Listing {
  std::string selection;  ///< "default order", or the file
  std::vector<ops::FormListing> forms;
};

/// What receipts say of a form replaces what the default order says.
void apply(const ops::DeviceSelection& selection, ops::FormListing& form, ops::Precision precision,
           bool& selected, std::string& why) {
  const auto chosen = [&](const ops::JudgedForm& choice) {
    return choice.op == form.op && choice.precision == precision;
  };
  const ops::JudgedForm* judged = selection.choice(form.op, form.info.name, precision);
  if (judged == nullptr) judged = selection.refusal(form.op, form.info.name, precision);
  if (judged != nullptr)
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", to_string(precision), judged->why);
  if (std::ranges::any_of(selection.choices, chosen)) {
    selected = selection.choice(form.op, form.info.name, precision) != nullptr;
  }
}

Listing list() {
  Listing listing{.selection = "default order", .forms = ops::list_forms()};
  const auto file = ops::find_device_selection();
  if (!file) return listing;
  const ops::DeviceSelection selection = ops::read_device_selection(*file);
  listing.selection = file->string();
  for (ops::FormListing& form : listing.forms) {
    std::string why;
    apply(selection, form, ops::Precision::fp32, form.selected_fp32, why);
    apply(selection, form, ops::Precision::bf16, form.selected_bf16, why);
    if (!why.empty()) form.why = std::move(why);
  }
  return listing;
}

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
  const Listing listing = list();
  nlohmann::ordered_json report{{"processor", device::cpu_model_name()},
                                {"has", device::describe(device::cpu_features())},
                                {"device", device::cpu_id()},
                                {"selection", listing.selection},
                                {"forms", nlohmann::ordered_json::array()}};
  for (const ops::FormListing& form : listing.forms) report["forms"].push_back(to_json(form, options.why));
  print(report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void print_table(const FormsOptions& options) {
  constexpr auto kRow = "{:<17} {:<15} {:<9} {:<19} {:<9} {:<11} {}\n";
  const Listing listing = list();
  std::string text =
      fmt::format("Processor: {} ({})\n", device::cpu_model_name(), device::describe(device::cpu_features()));
  text += listing.selection == "default order"
              ? "No selection made from receipts for this device: the default order decides.\n\n"
              : fmt::format("Selection made from receipts: {}\n\n", printable(listing.selection));
  text += fmt::format(kRow, "op", "form", "precision", "needs", "runs here", "selected",
                      options.why ? "why" : "summary");
  for (const ops::FormListing& form : listing.forms) {
    text += fmt::format(kRow, form.op, form.info.name, to_string(form.info.precision),
                        device::describe(form.info.needs), form.supported ? "yes" : "no", used_by(form),
                        options.why ? form.why : std::string(form.info.summary));
  }
  print(text);
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
