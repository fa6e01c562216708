#include "lab/ledger/git.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.hpp"
#include "base/path.hpp"

namespace assay::lab {
namespace {

constexpr int kGitFatal = 128;
constexpr std::size_t kLargestOutput = std::size_t{256} << 20;

struct CommandOutcome {
  int status = 0;
  std::string out;
  std::string error;
};

[[noreturn]] void throw_io(const std::string& what, int code) {
  throw Error(ErrorKind::io, {"git", what + ": " + std::strerror(code)});
}

/// Two descriptors that close with their owner.
struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_io("no pipe", errno);
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(std::size_t end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  std::array<int, 2> ends{-1, -1};
};

/// The environment without what would point git at another repository than the folder's own, as a hook has
/// it set; and with messages that this can read.
std::vector<std::string> environment() {
  constexpr std::array<std::string_view, 8> kRedirections{
      "GIT_DIR=",        "GIT_WORK_TREE=", "GIT_INDEX_FILE=", "GIT_PREFIX=", "GIT_OBJECT_DIRECTORY=",
      "GIT_COMMON_DIR=", "GIT_NAMESPACE=", "LC_ALL="};
  std::vector<std::string> kept{"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool dropped = std::any_of(kRedirections.begin(), kRedirections.end(),
                                     [&](std::string_view name) { return text.starts_with(name); });
    if (!dropped) kept.emplace_back(text);
  }
  return kept;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

struct FileActions {
  FileActions() { ::posix_spawn_file_actions_init(&actions); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t actions{};
};

pid_t spawn_git(std::vector<std::string> arguments, const Pipe& out, const Pipe& error) {
  FileActions files;
  ::posix_spawn_file_actions_addopen(&files.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files.actions, out.ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files.actions, error.ends[1], STDERR_FILENO);
  std::vector<std::string> variables = environment();
  pid_t child = -1;
  const int failed = ::posix_spawnp(&child, "git", &files.actions, nullptr, pointers(arguments).data(),
                                    pointers(variables).data());
  if (failed == ENOENT) {
    throw Error(ErrorKind::missing, {.where = "git",
                                     .found = "no such program",
                                     .expected = "git on the PATH",
                                     .advice = "install it: the ledger's history is kept in git"});
  }
  if (failed != 0) throw_io("cannot be started", failed);
  return child;
}

/// Reads both pipes until the child closes them; reading one to its end first could block the other.
void drain(Pipe& out, Pipe& error, CommandOutcome& outcome) {
  std::array<pollfd, 2> wanted{{{out.ends[0], POLLIN, 0}, {error.ends[0], POLLIN, 0}}};
  std::array<std::string*, 2> texts{&outcome.out, &outcome.error};
  std::array<char, 65536> buffer{};
  while (wanted[0].fd >= 0 || wanted[1].fd >= 0) {
    if (::poll(wanted.data(), wanted.size(), -1) < 0) {
      if (errno == EINTR) continue;
      throw_io("cannot be read", errno);
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].fd < 0 || wanted[i].revents == 0) continue;
      const ssize_t got = ::read(wanted[i].fd, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0 || texts[i]->size() > kLargestOutput) {
        wanted[i].fd = -1;
      } else {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(got));
      }
    }
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw_io("cannot be waited for", errno);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

CommandOutcome run_git(const std::filesystem::path& folder, const std::vector<std::string>& arguments) {
  std::vector<std::string> line{"git", "-C", folder.string(), "-c", "core.quotePath=false"};
  line.insert(line.end(), arguments.begin(), arguments.end());
  Pipe out;
  Pipe error;
  const pid_t child = spawn_git(std::move(line), out, error);
  out.close_end(1);
  error.close_end(1);
  CommandOutcome outcome;
  drain(out, error, outcome);
  out.close_end(0);
  error.close_end(0);
  outcome.status = wait_for(child);
  return outcome;
}

std::string without_line_end(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string checked(const std::filesystem::path& folder, const std::vector<std::string>& arguments) {
  CommandOutcome outcome = run_git(folder, arguments);
  if (outcome.status != 0) {
    throw Error(ErrorKind::io, {.where = "git " + arguments.front() + " in " + folder.string(),
                                .found = without_line_end(outcome.error)});
  }
  return std::move(outcome.out);
}

std::vector<std::string> pieces_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

std::optional<GitRepository> GitRepository::find(const std::filesystem::path& folder) {
  const CommandOutcome outcome = run_git(folder, {"rev-parse", "--show-toplevel"});
  if (outcome.status == 0) return GitRepository(without_line_end(outcome.out));
  if (outcome.status == kGitFatal && outcome.error.find("not a git repository") != std::string::npos) {
    return std::nullopt;
  }
  throw Error(ErrorKind::io, {"git rev-parse in " + folder.string(), without_line_end(outcome.error)});
}

std::optional<std::string> GitRepository::head() const {
  const CommandOutcome outcome = run_git(root_, {"rev-parse", "--verify", "--quiet", "HEAD^{commit}"});
  return outcome.status == 0 ? std::optional(without_line_end(outcome.out)) : std::nullopt;
}

bool GitRepository::is_shallow() const {
  return without_line_end(checked(root_, {"rev-parse", "--is-shallow-repository"})) == "true";
}

std::vector<std::string> GitRepository::uncommitted(const std::vector<std::string>& paths,
                                                    const std::string& excluded) const {
  std::vector<std::string> arguments{
      "status",       "--porcelain=v1",           "-z", "--untracked-files=all",
      "--no-renames", "--ignore-submodules=none", "--"};
  for (const std::string& path : paths) arguments.push_back(":(top,literal)" + path);
  if (paths.empty()) arguments.emplace_back(":(top)");
  if (!excluded.empty()) arguments.push_back(":(top,exclude,literal)" + excluded);
  std::vector<std::string> changed;
  constexpr std::size_t kStatusWidth = 3;
  for (const std::string& line : pieces_of(checked(root_, arguments), '\0')) {
    if (line.size() > kStatusWidth) changed.push_back(line.substr(kStatusWidth));
  }
  return changed;
}

std::vector<std::string> GitRepository::commits_touching(const std::string& path) const {
  if (!head()) return {};
  return pieces_of(
      checked(root_, {"rev-list", "--reverse", "--full-history", "HEAD", "--", ":(top,literal)" + path}),
      '\n');
}

std::vector<std::string> GitRepository::paths_ever(const std::string& path) const {
  if (!head()) return {};
  std::vector<std::string> paths;
  for (std::string& name :
       pieces_of(checked(root_, {"log", "--full-history", "-m", "--no-renames", "--format=", "--name-only",
                                 "-z", "HEAD", "--", ":(top,literal)" + path}),
                 '\0')) {
    // Between commits git puts a newline before the next name.
    name.erase(0, name.find_first_not_of('\n'));
    if (!name.empty()) paths.push_back(std::move(name));
  }
  return paths;
}

std::vector<GitRepository::Entry> GitRepository::files(const std::string& commit,
                                                       const std::string& path) const {
  std::vector<Entry> entries;
  // A line is "mode blob <id>\t<path>".
  std::vector<std::string> arguments{"ls-tree", "-r", "-z", "--full-tree", commit, "--"};
  if (!path.empty()) arguments.push_back(path);
  for (const std::string& line : pieces_of(checked(root_, arguments), '\0')) {
    const std::size_t tab = line.find('\t');
    const std::size_t space = line.rfind(' ', tab);
    if (tab == std::string::npos || space == std::string::npos) continue;
    entries.push_back({line.substr(tab + 1), line.substr(space + 1, tab - space - 1)});
  }
  return entries;
}

std::string GitRepository::read_blob(const std::string& blob) const {
  return checked(root_, {"cat-file", "blob", blob});
}

bool GitRepository::has_commit(const std::string& commit) const {
  return run_git(root_, {"cat-file", "-e", commit + "^{commit}"}).status == 0;
}

std::optional<std::string> GitRepository::relative(const std::filesystem::path& path) const {
  const std::filesystem::path whole = resolved_path(path);
  const std::filesystem::path inside = whole.lexically_relative(resolved_path(root_));
  if (inside.empty() || *inside.begin() == "..") return std::nullopt;
  return inside == "." ? std::string() : inside.generic_string();
}

}  // namespace assay::lab
