#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/result_output.hpp"
#include "lab/window/window.hpp"
#include "lab/window/worker.hpp"

namespace assay::cli {
namespace {

struct WindowFlags {
  std::string plan;
  std::string lock_folder = "/tmp";
  bool no_wait = false;
  ResultOutput output;
};

void run(const WindowFlags& flags) {
  lab::WindowOptions options;
  options.lock.folder = flags.lock_folder;
  options.lock.wait = !flags.no_wait;
  options.progress = [](std::string_view line) {
    std::fprintf(stderr, "window: %s\n", printable(line).c_str());
  };
  const lab::WindowPlan plan = lab::read_window_plan(flags.plan);
  flags.output.check_folder();
  // Alive until the receipt is written whole.
  const lab::StopSignals signals;
  const lab::WindowReport report = lab::run_window(plan, options, signals);
  const nlohmann::ordered_json receipt = lab::to_receipt(report);
  flags.output.deliver(receipt, lab::to_text(receipt), [&] { return std::vector{receipt}; });
}

void compare(const std::string& first, const std::string& second) {
  const lab::Receipt a = lab::read_receipt(first);
  lab::require_one_window(a, lab::read_receipt(second));
  print_lines(lab::to_text(a.body));
}

void add_window_run(CLI::App& window) {
  auto flags = std::make_shared<WindowFlags>();
  CLI::App* command = window.add_subcommand("run", "Time the forms of a plan against each other");
  command->add_option("plan", flags->plan, "The plan, a JSON file (docs/lab/windows.md)")->required();
  command->add_flag("--no-wait", flags->no_wait, "Fail where another window holds the device");
  command
      ->add_option("--lock-folder", flags->lock_folder,
                   "Where the device's lock lies; the same for all who time on this machine")
      ->capture_default_str();
  flags->output.add_to(*command);
  command->callback([flags] { run(*flags); });
}

void add_compare(CLI::App& window) {
  auto receipts = std::make_shared<std::pair<std::string, std::string>>();
  CLI::App* command =
      window.add_subcommand("compare", "Compare times of two receipts, where they are of one window");
  command->add_option("first", receipts->first, "A window receipt")->required();
  command->add_option("second", receipts->second, "Another")->required();
  command->callback([receipts] { compare(receipts->first, receipts->second); });
}

void add_worker(CLI::App& window) {
  CLI::App* command = window.add_subcommand("worker", "")->group("");
  command->callback([] {
    if (const int status = lab::run_worker(STDIN_FILENO, STDOUT_FILENO); status != 0) {
      throw CLI::RuntimeError(status);
    }
  });
}

}  // namespace

void add_window(CLI::App& app) {
  CLI::App* window =
      app.add_subcommand("window", "Time forms in exclusive, balanced, watched stretches of this machine");
  window->require_subcommand(1);
  add_window_run(*window);
  add_compare(*window);
  add_worker(*window);
}

}  // namespace assay::cli
