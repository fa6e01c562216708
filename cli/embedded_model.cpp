#include "cli/embedded_model.hpp"

#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/path.hpp"

namespace assay::cli {
namespace {

std::vector<std::filesystem::path> model_folders() {
  std::vector<std::filesystem::path> folders;
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    folders.push_back(program.parent_path() / "models");
    folders.push_back(program.parent_path().parent_path() / "share" / "assay" / "models");
  }
  folders.emplace_back(ASSAY_SOURCE_MODELS);
  return folders;
}

}  // namespace

std::filesystem::path embedded_decision_model() {
  std::string places;
  for (const std::filesystem::path& folder : model_folders()) {
    const std::filesystem::path run = folder / kEmbeddedModelName / "run";
    if (path_exists(run / "head.pt")) return run;
    places += (places.empty() ? "" : ", ") + folder.string();
  }
  throw Error(ErrorKind::missing,
              {.where = "--model",
               .found = fmt::format("not given, and no {} in {}", kEmbeddedModelName, places),
               .expected = "a run directory, a Hub id or a GGUF file",
               .advice = "name a model with --model"});
}

}  // namespace assay::cli
