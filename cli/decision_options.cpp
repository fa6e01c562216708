#include "cli/decision_options.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "cli/embedded_model.hpp"
#include "ops/device_selection.hpp"

namespace assay::cli {
namespace {

void show_loading(std::size_t done, std::size_t total) {
  std::fprintf(stderr, "\rloading: layer %zu of %zu", done, total);
  // The line is wiped when it has served, so that answers start on a clean one.
  if (done == total) std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace

void DecisionModelFlags::add_to(CLI::App& command, bool required) {
  CLI::Option* const named =
      command
          .add_option("--model", model,
                      std::string("Run directory of a Kev checkpoint, its Hub id, or a GGUF file") +
                          (required ? "" : "; by default the small one that comes with the program"))
          ->required(required);
  command
      .add_option("--base", base, "Base model directory, where the run's own reference is not to be followed")
      ->needs(named);
  command.add_option("--precision", precision, "Of the matrix products: fp32 or bf16")->capture_default_str();
  command.add_option("--form", forms, "op=name: run this form of an op (see `assay forms`); repeatable");
  command.add_option("--threads", threads, "Threads to use; 0 is one a core")->capture_default_str();
}

std::unique_ptr<decision::DecisionModel> DecisionModelFlags::load(std::size_t state_cache_bytes) const {
  decision::ModelOptions options;
  options.precision = parse_precision(precision);
  options.forms = ops::with_device_selection(parse_forms(forms), options.precision);
  options.threads = threads;
  options.state_cache_bytes = state_cache_bytes;
  if (isatty(STDERR_FILENO) != 0) options.progress = show_loading;
  std::optional<std::filesystem::path> base_path;
  if (!base.empty()) base_path = base;
  if (!model.empty()) return decision::DecisionModel::load(model, base_path, options);
  return decision::DecisionModel::load(embedded_decision_model(), base_path, options);
}

}  // namespace assay::cli
