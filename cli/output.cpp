#include "cli/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace assay::cli {
namespace {

constexpr int kCannotRun = 2;

[[noreturn]] void refuse_output(int reason) {
  if (reason == EPIPE) throw CLI::RuntimeError(kCannotRun);
  throw Error(ErrorKind::io, {"standard output", reason == EBADF ? "closed" : std::strerror(reason),
                              "a file, terminal or pipe that takes the answer"});
}

}  // namespace

void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // Takes the lowest number that is free, which is this one, and cannot be used in the stream's direction.
    if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    refuse_output(errno);
  }
}

void print_lines(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    shown += printable(line);
    if (line.size() < text.size()) shown += '\n';
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  print(shown);
}

void finish_output() {
  std::cout.flush();
  if (std::fflush(stdout) != 0) refuse_output(errno);
  // A quota or a file server may refuse as late as at closing; closing a copy asks, and leaves stdout usable.
  if (const int copy = ::dup(STDOUT_FILENO); copy >= 0 && ::close(copy) != 0) refuse_output(errno);
  if (std::ferror(stdout) != 0 || !std::cout) refuse_output(EIO);
}

void show_progress(std::string_view command, std::string_view line) {
  if (::isatty(STDERR_FILENO) == 0) return;
  const std::string text = printable(std::string(command) + ": " + std::string(line));
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace assay::cli
