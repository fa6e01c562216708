#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/bus_error.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "cli/commands.hpp"

namespace {

constexpr int kCannotRun = 2;

/// Lines to standard error; what they quote (an argument, say) can steer no terminal.
void complain(std::string_view message) {
  // What a progress line left behind goes.
  if (::isatty(STDERR_FILENO) != 0) std::fputs("\r\x1b[K", stderr);
  while (!message.empty()) {
    const std::string_view line = message.substr(0, message.find('\n'));
    std::fprintf(stderr, "%s\n", assay::printable(line).c_str());
    message.remove_prefix(std::min(line.size() + 1, message.size()));
  }
}

/// The command that was chosen, as far as its words were understood.
struct Chosen {
  const CLI::App* command;
  std::string words;  ///< "assay gate decision"
};

Chosen chosen_command(const CLI::App& app) {
  Chosen chosen{&app, app.get_display_name()};
  while (!chosen.command->get_subcommands().empty()) {
    chosen.command = chosen.command->get_subcommands().back();
    chosen.words += " " + chosen.command->get_name();
  }
  return chosen;
}

/// CLI11 says of an unknown command only that one is required.
std::string unknown_command(const CLI::App& command) {
  const std::vector<std::string> words = command.remaining();
  if (words.empty() || words.front().starts_with("-")) return {};
  std::vector<std::string> names;
  for (const CLI::App* below : command.get_subcommands({})) {
    if (!below->get_group().empty()) names.push_back(below->get_name());
  }
  if (names.empty()) return {};
  return fmt::format("no command '{}'; there are {}", words.front(), fmt::join(names, ", "));
}

/// Help and the version go to standard output, for they were asked for.
int answer_usage(const CLI::App& app, const CLI::ParseError& usage) {
  if (usage.get_exit_code() == 0) {
    std::ostringstream output;
    app.exit(usage, output, output);
    assay::cli::print(output.str());
    return 0;
  }
  // CLI11 gives every kind of usage error a status of its own; here 1 is a verdict, so they share 2.
  const Chosen chosen = chosen_command(app);
  const std::string unknown = unknown_command(*chosen.command);
  complain(fmt::format("{}: {}\n`{} --help` says what it takes", chosen.words,
                       unknown.empty() ? usage.what() : unknown, chosen.words));
  return kCannotRun;
}

int run(int argc, char** argv) {
  CLI::App app{"Assay: decisions and songs on this device, and the laboratory that admits its fast paths",
               "assay"};
  app.require_subcommand(1);
  app.set_version_flag("--version", ASSAY_VERSION);
  assay::cli::add_decide(app);
  assay::cli::add_compose(app);
  assay::cli::add_gate(app);
  assay::cli::add_eval(app);
  assay::cli::add_inspect(app);
  assay::cli::add_forms(app);
  assay::cli::add_bench(app);
  assay::cli::add_lab(app);
  assay::cli::add_ledger(app);
  assay::cli::add_window(app);
  assay::cli::check_values(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& verdict) {
    return verdict.get_exit_code();
  } catch (const CLI::ParseError& usage) {
    return answer_usage(app, usage);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  assay::report_shortened_files();
  // A file over the limit of `ulimit -f` is then an error of the write (EFBIG), as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    assay::cli::hold_standard_streams();
    const int status = run(argc, argv);
    if (status != kCannotRun) assay::cli::finish_output();
    return status;
  } catch (const CLI::RuntimeError& broken_pipe) {
    return broken_pipe.get_exit_code();
  } catch (const assay::Error& error) {
    complain(fmt::format("assay: {}", error.what()));
  } catch (const std::bad_alloc&) {
    std::fputs("assay: out of memory\n", stderr);
  } catch (const std::filesystem::filesystem_error& error) {
    complain(fmt::format("assay: {}: {}", error.path1().string(), error.code().message()));
  } catch (const std::exception& error) {
    complain(fmt::format("assay: internal error: {}", error.what()));
  }
  return kCannotRun;
}
