#include "lab/cost/fresh_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

extern char** environ;

namespace assay::lab {
namespace {

constexpr const char* kSelf = "/proc/self/exe";
constexpr std::size_t kLargest = std::size_t{64} << 20;

[[noreturn]] void fail(std::string found) {
  throw Error(ErrorKind::io, {"a fresh process of this program", std::move(found)});
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  void close() {
    if (value_ >= 0) ::close(value_);
    value_ = -1;
  }

 private:
  int value_;
};

/// Waits for its process at the latest when it goes, killing it first if nobody waited.
class Child {
 public:
  Child(const std::vector<std::string>& arguments, int output) {
    std::vector<std::string> texts{kSelf};
    texts.insert(texts.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    const int failed = ::posix_spawn(&pid_, kSelf, &actions, nullptr, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) fail(fmt::format("cannot be started: {}", std::strerror(failed)));
  }
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
};

std::string read_all(int file) {
  std::string text;
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t count = ::read(file, part.data(), part.size());
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(fmt::format("its output cannot be read: {}", std::strerror(errno)));
    text.append(part.data(), static_cast<std::size_t>(count));
    if (text.size() > kLargest) {
      throw Error(ErrorKind::limit_exceeded,
                  {"a fresh process of this program", "more than 64 MiB of output"});
    }
  }
}

}  // namespace

std::string run_fresh_process(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(std::strerror(errno));
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  Child child(arguments, writing.get());
  writing.close();
  std::string text = read_all(reading.get());
  const int status = child.wait();
  if (WIFSIGNALED(status)) fail(fmt::format("was ended by signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) fail(fmt::format("ended with status {}", WEXITSTATUS(status)));
  return text;
}

}  // namespace assay::lab
