#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "decision/model.hpp"

namespace assay::cli {

/// The flags by which a command names a decision model and how to run it.
struct DecisionModelFlags {
  std::string model;
  std::string base;
  std::string precision = "bf16";
  std::vector<std::string> forms;
  std::size_t threads = 0;

  void add_to(CLI::App& command);

  /// Loads the model; layers are counted on standard error where that is a terminal.
  std::unique_ptr<decision::DecisionModel> load(std::size_t state_cache_bytes) const;
};

}  // namespace assay::cli
