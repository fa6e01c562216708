#include "cli/embedded_model.hpp"

#include <cstdio>
#include <string>
#include <system_error>
#include <utility>
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

/// `mark` is a file that a model of its kind has.
std::filesystem::path embedded_model(const char* name, const char* mark, std::string expected) {
  std::string places;
  for (const std::filesystem::path& folder : model_folders()) {
    const std::filesystem::path model = folder / name;
    if (path_exists(model / mark)) {
      fmt::print(stderr, "assay: no --model: {}, the small one that comes with the program\n", name);
      return model;
    }
    places += (places.empty() ? "" : ", ") + folder.string();
  }
  throw Error(ErrorKind::missing, {.where = "--model",
                                   .found = fmt::format("not given, and no {} in {}", name, places),
                                   .expected = std::move(expected),
                                   .advice = "name a model with --model"});
}

}  // namespace

std::filesystem::path embedded_decision_model() {
  return embedded_model("assay-mini-decide", "run/head.pt", "a run directory, a Hub id or a GGUF file") /
         "run";
}

std::filesystem::path embedded_music_model() {
  return embedded_model("assay-mini-compose", "model_index.json", "the directory of an ACE-Step checkpoint");
}

}  // namespace assay::cli
