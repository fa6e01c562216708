#include "audio/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"

namespace assay::audio {
namespace {

/// Temporary names that a signal handler may read; those beyond the table are cleared only by their owners.
std::array<std::atomic<const char*>, 64>& unfinished_names() {
  static std::array<std::atomic<const char*>, 64> names{};
  return names;
}

void note_unfinished(const char* name) {
  for (auto& slot : unfinished_names()) {
    const char* free = nullptr;
    if (slot.compare_exchange_strong(free, name)) return;
  }
}

void forget_unfinished(const char* name) {
  for (auto& slot : unfinished_names()) {
    const char* mine = name;
    if (slot.compare_exchange_strong(mine, nullptr)) return;
  }
}

/// The permissions that a new file gets. umask can only be read by setting it.
mode_t usual_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

std::string temporary_name(const std::filesystem::path& path) {
  return (path.parent_path() / ("." + path.filename().string().substr(0, 100) + ".XXXXXX")).string();
}

}  // namespace

void OutputFile::fail(const char* action, int code) const {
  throw Error(
      code == ENOENT ? ErrorKind::missing : ErrorKind::io,
      {.where = path_.string(),
       .found = std::string(action) + ": " + std::strerror(code),
       .advice =
           code == ENOSPC || code == EFBIG ? "make room, or write elsewhere; nothing was left behind" : ""});
}

OutputFile::OutputFile(const std::filesystem::path& path) : path_(path), temporary_(temporary_name(path)) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
    throw Error(ErrorKind::io, {.where = path.string(),
                                .found = S_ISDIR(status.st_mode) ? "a directory" : "no regular file",
                                .expected = "a file's name"});
  }
  file_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (file_ < 0) fail("cannot be created", errno);
  note_unfinished(temporary_.c_str());
}

OutputFile::~OutputFile() {
  if (file_ >= 0) {
    ::close(file_);
    ::unlink(temporary_.c_str());
  }
  forget_unfinished(temporary_.c_str());
}

std::size_t OutputFile::write(std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size() && failure_ == 0) {
    const ssize_t written = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      failure_ = errno;
    }
  }
  return done;
}

std::size_t OutputFile::read(std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size() && failure_ == 0) {
    const ssize_t got = ::read(file_, bytes.data() + done, bytes.size() - done);
    if (got == 0) break;
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      failure_ = errno;
    }
  }
  return done;
}

std::int64_t OutputFile::seek(std::int64_t offset, int whence) {
  const off_t at = ::lseek(file_, offset, whence);
  if (at < 0 && failure_ == 0) failure_ = errno;
  return at;
}

std::int64_t OutputFile::size() const {
  struct stat status {};
  return ::fstat(file_, &status) == 0 ? status.st_size : -1;
}

void OutputFile::check() const {
  if (failure_ != 0) fail("cannot be written", failure_);
}

void OutputFile::commit() {
  check();
  if (::fchmod(file_, usual_mode()) != 0) fail("cannot be given its permissions", errno);
  if (::fsync(file_) != 0) fail("cannot be flushed", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be renamed into place", errno);
  ::close(file_);
  file_ = -1;
}

void remove_unfinished_files() noexcept {
  for (auto& slot : unfinished_names()) {
    const char* name = slot.exchange(nullptr);
    if (name != nullptr) ::unlink(name);
  }
}

}  // namespace assay::audio
