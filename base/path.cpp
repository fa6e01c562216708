#include "base/path.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const char* action, const std::error_code& reason) {
  const ErrorKind kind = reason == std::errc::no_such_file_or_directory ? ErrorKind::missing : ErrorKind::io;
  throw Error(kind, {.where = path.string(), .found = std::string(action) + ": " + reason.message()});
}

/// What kind of thing stands there, links followed; not_found for nothing.
fs::file_type type_at(const fs::path& path) {
  std::error_code reason;
  const fs::file_status status = fs::status(path, reason);
  if (status.type() == fs::file_type::none) refuse(path, "cannot be examined", reason);
  if (status.type() != fs::file_type::not_found) return status.type();
  const fs::file_status link = fs::symlink_status(path, reason);
  if (link.type() != fs::file_type::symlink) return status.type();
  const fs::path target = fs::read_symlink(path, reason);
  throw Error(ErrorKind::missing, {.where = path.string(),
                                   .found = "a link to " + target.string() + ", which is not there",
                                   .expected = "a file or directory",
                                   .advice = "mend the link or remove it"});
}

}  // namespace

bool path_exists(const fs::path& path) {
  return type_at(path) != fs::file_type::not_found;
}

bool is_directory_path(const fs::path& path) {
  return type_at(path) == fs::file_type::directory;
}

std::vector<fs::path> list_directory(const fs::path& path) {
  std::vector<fs::path> entries;
  std::error_code reason;
  for (fs::directory_iterator entry(path, reason), end; !reason && entry != end; entry.increment(reason)) {
    entries.push_back(entry->path());
  }
  if (reason) refuse(path, "cannot be listed", reason);
  std::ranges::sort(entries);
  return entries;
}

fs::path resolved_path(const fs::path& path) {
  std::error_code reason;
  fs::path resolved = fs::weakly_canonical(path, reason);
  if (reason) refuse(path, "cannot be resolved", reason);
  return resolved;
}

void make_directories(const fs::path& path) {
  std::error_code reason;
  fs::create_directories(path, reason);
  if (reason) refuse(path, "cannot be made", reason);
}

}  // namespace assay
