#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/bus_error.hpp"
#include "base/error.hpp"
#include "cli/commands.hpp"

namespace {

constexpr int kCannotRun = 2;

/// CLI11 says of an unknown command only that one is required.
std::string unknown_command(const CLI::App& app) {
  if (const auto chosen = app.get_subcommands(); !chosen.empty()) return unknown_command(*chosen.back());
  const std::vector<std::string> words = app.remaining();
  if (words.empty() || words.front().starts_with("-")) return {};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  if (names.empty()) return {};
  return fmt::format("{}: no command '{}'; there are {}", app.get_display_name(), words.front(),
                     fmt::join(names, ", "));
}

int run(int argc, char** argv) {
  CLI::App app{"Assay: decisions on this device, and the laboratory that admits its fast paths", "assay"};
  app.require_subcommand(1);
  app.set_version_flag("--version", ASSAY_VERSION);
  assay::cli::add_decide(app);
  assay::cli::add_gate(app);
  assay::cli::add_inspect(app);
  assay::cli::add_forms(app);
  assay::cli::add_bench(app);
  assay::cli::add_lab(app);
  assay::cli::add_ledger(app);
  assay::cli::add_window(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& verdict) {
    return verdict.get_exit_code();
  } catch (const CLI::ParseError& usage) {
    if (const std::string message = unknown_command(app); !message.empty()) {
      std::fprintf(stderr, "%s\n", message.c_str());
      return kCannotRun;
    }
    // CLI11 gives every kind of usage error a status of its own; here 1 is a verdict, so they share 2.
    return app.exit(usage) == 0 ? 0 : kCannotRun;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  assay::report_shortened_files();
  try {
    return run(argc, argv);
  } catch (const assay::Error& error) {
    std::fprintf(stderr, "assay: %s\n", error.what());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "assay: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "assay: internal error: %s\n", error.what());
  }
  return kCannotRun;
}
