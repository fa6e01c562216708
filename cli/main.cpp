#include <cstdio>
#include <exception>
#include <new>

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "cli/commands.hpp"

namespace {

constexpr int kCannotRun = 2;

int run(int argc, char** argv) {
  CLI::App app{"Assay: decisions on this device, and the laboratory that admits its fast paths", "assay"};
  app.require_subcommand(1);
  app.set_version_flag("--version", ASSAY_VERSION);
  assay::cli::add_decide(app);
  assay::cli::add_gate(app);
  assay::cli::add_inspect(app);
  assay::cli::add_forms(app);
  assay::cli::add_bench(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& verdict) {
    return verdict.get_exit_code();
  } catch (const CLI::ParseError& usage) {
    // CLI11 gives every kind of usage error a status of its own; here 1 is a verdict, so they share 2.
    return app.exit(usage) == 0 ? 0 : kCannotRun;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
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
