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

  /// `required`: without --model is an error; else it means the model that comes with the program.
  void add_to(CLI::App& command, bool required = true);

  /// Loads the model; layers are counted on standard error where that is a terminal. Says on standard error
  /// that it is the program's own where no --model was given.
  std::unique_ptr<decision::DecisionModel> load(std::size_t state_cache_bytes) const;
};

}  // namespace assay::cli
