#include "lab/window/worker.hpp"

#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "device/memory.hpp"
#include "lab/window/work_set.hpp"

namespace assay::lab {
namespace {

using Message = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLargestLine = std::size_t{4} << 20;

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

ErrorKind kind_named(const std::string& name) {
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::internal); ++kind) {
    if (name == to_string(static_cast<ErrorKind>(kind))) return static_cast<ErrorKind>(kind);
  }
  return ErrorKind::internal;
}

class SpawnActions {
 public:
  SpawnActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  void duplicate(int from, int to) { ::posix_spawn_file_actions_adddup2(&actions_, from, to); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

int spawn(const std::vector<std::string>& command, int channel) {
  SpawnActions actions;
  actions.duplicate(channel, STDIN_FILENO);
  actions.duplicate(channel, STDOUT_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int code = ::posix_spawn(&pid, arguments[0], actions.get(), nullptr, arguments.data(), environ);
  if (code != 0) {
    throw Error(ErrorKind::io,
                {.where = command[0], .found = std::string("cannot be started: ") + std::strerror(code)});
  }
  return pid;
}

/// Lines of a descriptor, as they come.
class LineInput {
 public:
  explicit LineInput(int descriptor) : descriptor_(descriptor) {}

  std::optional<std::string> next() {
    std::array<char, 65536> part{};
    while (text_.find('\n') == std::string::npos) {
      const ssize_t got = ::read(descriptor_, part.data(), part.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0 || text_.size() > kLargestLine) return std::nullopt;
      text_.append(part.data(), static_cast<std::size_t>(got));
    }
    const std::size_t end = text_.find('\n');
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }

 private:
  int descriptor_;
  std::string text_;
};

void write_line(int descriptor, const Message& message) {
  const std::string line = message.dump() + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error(ErrorKind::io, {.where = "window", .found = std::strerror(errno)});
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// The worker's side of the conversation.
class Worker {
 public:
  Message answer(const Message& question) {
    return question.contains("plan")
               ? prepare(question)
               : run(question.at("run").get<std::size_t>(), question.at("timed").get<bool>());
  }

 private:
  Message prepare(const Message& question) {
    plan_ = parse_window_plan(question.at("plan").get<std::string>(), question.at("file").get<std::string>());
    set_ = std::make_unique<WorkSet>(plan_, plan_.forms.at(question.at("form").get<std::size_t>()));
    Message items = Message::array();
    for (std::size_t i = 0; i < set_->size(); ++i) {
      const WorkCost cost = set_->item(i).cost();
      items.push_back({{"model", set_->model(i)},
                       {"fp32_operations", cost.fp32_operations},
                       {"bf16_operations", cost.bf16_operations},
                       {"bytes", cost.bytes}});
    }
    return {{"forms", set_->forms()},
            {"threads", set_->threads()},
            {"resident_bytes", device::footprint().resident},
            {"items", std::move(items)}};
  }

  Message run(std::size_t index, bool timed) {
    const WindowItem& item = plan_.items.at(index);
    Work& work = set_->item(index);
    for (std::size_t i = 0; timed && i < item.settling_runs; ++i) work.run();
    const std::size_t calls = timed ? item.calls : 1;
    const auto start = Clock::now();
    for (std::size_t i = 0; i < calls; ++i) work.run();
    const std::chrono::duration<double> taken = Clock::now() - start;
    return {{"start", std::chrono::nanoseconds(start.time_since_epoch()).count()},
            {"seconds", taken.count() / static_cast<double>(calls)}};
  }

  WindowPlan plan_;
  std::unique_ptr<WorkSet> set_;
};

}  // namespace

WorkerProcess::WorkerProcess(WorkerOptions options) : options_(std::move(options)) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(ErrorKind::io, {.where = options_.name, .found = std::strerror(errno)});
  }
  channel_ = Descriptor(ends[0]);
  const Descriptor other(ends[1]);
  pid_ = spawn(options_.command, other.get());
}

WorkerProcess::~WorkerProcess() {
  end();
}

void WorkerProcess::end() noexcept {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

nlohmann::json WorkerProcess::ask(const nlohmann::json& question) {
  send(question.dump() + "\n");
  const std::string line = receive();
  Message answer = Message::parse(line, nullptr, false);
  if (!answer.is_object()) {
    throw Error(ErrorKind::io,
                {.where = options_.name, .found = in_quotes(line), .expected = "an answer in JSON"});
  }
  if (const auto error = answer.find("error"); error != answer.end()) {
    throw Error(kind_named(error->value("kind", "")),
                {.where = options_.name, .found = error->value("message", "an error")});
  }
  return answer;
}

void WorkerProcess::send(std::string_view line) {
  while (!line.empty()) {
    const ssize_t sent = ::send(channel_.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw_ended();
    line.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string WorkerProcess::receive() {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(options_.timeout_seconds));
  while (received_.find('\n') == std::string::npos) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    std::array<pollfd, 2> wanted{pollfd{channel_.get(), POLLIN, 0},
                                 pollfd{options_.stop_descriptor, POLLIN, 0}};
    ::poll(wanted.data(), wanted.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000)));
    if (wanted[1].revents != 0) {
      throw Error(ErrorKind::cancelled, {.where = "window", .found = "stopped by a signal"});
    }
    if (wanted[0].revents == 0) {
      if (left > 0) continue;
      throw Error(ErrorKind::io, {.where = options_.name,
                                  .found = fmt::format("no answer in {:g} s", options_.timeout_seconds),
                                  .expected = {},
                                  .advice = "raise the plan's timeout_seconds if the work takes longer"});
    }
    std::array<char, 65536> part{};
    const ssize_t got = ::recv(channel_.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0 || received_.size() > kLargestLine) throw_ended();
    received_.append(part.data(), static_cast<std::size_t>(got));
  }
  const std::size_t end = received_.find('\n');
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

void WorkerProcess::throw_ended() {
  // Its channel is closed, so it is gone or about to be.
  int status = 0;
  pid_t reaped = 0;
  for (int i = 0; i < 100 && reaped == 0; ++i) {
    reaped = ::waitpid(pid_, &status, WNOHANG);
    if (reaped == 0) ::usleep(10'000);
  }
  const std::string found = reaped == pid_ ? how_it_ended(status) : "closed its channel";
  if (reaped == pid_) pid_ = -1;
  end();
  throw Error(ErrorKind::io,
              {.where = options_.name,
               .found = "the worker " + found,
               .expected = "an answer",
               .advice = "what it wrote to standard error says more; the window has no receipt"});
}

int run_worker(int input, int output) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The terminal's Ctrl-C reaches the whole group; the parent ends its workers itself.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  LineInput lines(input);
  Worker worker;
  try {
    while (const auto line = lines.next()) write_line(output, worker.answer(Message::parse(*line)));
    return 0;
  } catch (const Error& error) {
    write_line(output, {{"error", {{"kind", to_string(error.kind())}, {"message", error.what()}}}});
  } catch (const std::bad_alloc&) {
    write_line(output, {{"error", {{"kind", "io"}, {"message", "out of memory"}}}});
  } catch (const std::exception& error) {
    write_line(output, {{"error", {{"kind", "internal"}, {"message", error.what()}}}});
  }
  return 1;
}

}  // namespace assay::lab
