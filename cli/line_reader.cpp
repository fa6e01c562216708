#include "cli/line_reader.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/utf8.hpp"

namespace assay::cli {
namespace {

constexpr std::size_t kBlock = 64 * 1024;
constexpr int kPatienceMilliseconds = 1000;

[[noreturn]] void refuse_file(const std::string& name, const std::string& found, ErrorKind kind) {
  throw Error(kind, {name, found, "a file of requests", "check the path, or give - for standard input"});
}

/// Waits for the first byte or the end of a pipe that was opened without waiting.
void wait_for_writer(int pipe, const std::string& name) {
  struct pollfd wanted {
    pipe, POLLIN, 0
  };
  int patience = kPatienceMilliseconds;
  while (true) {
    const int events = ::poll(&wanted, 1, patience);
    if (events > 0) return;
    if (events < 0 && errno != EINTR) throw Error(ErrorKind::io, {name, std::strerror(errno)});
    if (events == 0) {
      log().warn("{}: a pipe that nobody has written to yet; waiting for requests", printable(name));
      patience = -1;
    }
  }
}

/// Opened without waiting, so that a pipe without a writer can be told of; read with waiting.
std::FILE* open_requests(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    refuse_file(path, std::strerror(errno), errno == ENOENT ? ErrorKind::missing : ErrorKind::io);
  }
  std::FILE* const file = ::fdopen(fd, "rb");
  if (file == nullptr) {
    const int code = errno;
    ::close(fd);
    throw Error(ErrorKind::io, {path, std::strerror(code)});
  }
  return file;
}

}  // namespace

LineReader::LineReader(const std::string& path) : name_(path == "-" ? "standard input" : path) {
  if (path == "-") {
    file_.reset(stdin);
    return;
  }
  file_.reset(open_requests(path));
  const int fd = fileno(file_.get());
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw Error(ErrorKind::io, {name_, std::strerror(errno)});
  if (S_ISDIR(status.st_mode)) refuse_file(name_, "a directory", ErrorKind::io);
  if (S_ISFIFO(status.st_mode)) wait_for_writer(fd, name_);
  if (::fcntl(fd, F_SETFL, 0) != 0) throw Error(ErrorKind::io, {name_, std::strerror(errno)});
}

bool LineReader::fill() {
  buffer_.resize(kBlock);
  position_ = 0;
  // read(2) rather than fread: a line typed or piped is answered before the block is full.
  ssize_t count = 0;
  do {
    count = ::read(fileno(file_.get()), buffer_.data(), buffer_.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) throw Error(ErrorKind::io, {name_, std::strerror(errno)});
  buffer_.resize(static_cast<std::size_t>(count));
  return count > 0;
}

LineReader::Status LineReader::next(std::string& line, std::size_t limit) {
  line.clear();
  bool any = false;
  Status status = Status::line;
  while (position_ < buffer_.size() || fill()) {
    any = true;
    const auto end = buffer_.find('\n', position_);
    const std::size_t count = (end == std::string::npos ? buffer_.size() : end) - position_;
    if (status == Status::line) status = append(line, count, limit);
    position_ += count + (end == std::string::npos ? 0 : 1);
    if (end != std::string::npos) break;
  }
  if (!any) return Status::end;
  if (status == Status::line && !line.empty() && line.back() == '\r') line.pop_back();
  return status;
}

LineReader::Status LineReader::append(std::string& line, std::size_t count, std::size_t limit) {
  Status status = line.size() + count > limit ? Status::too_long : Status::line;
  try {
    if (status == Status::line) line.append(buffer_, position_, count);
  } catch (const std::bad_alloc&) {
    status = Status::no_memory;
  }
  if (status != Status::line) std::string().swap(line);
  return status;
}

std::string LineReader::rest(std::size_t limit) {
  std::string text;
  while (position_ < buffer_.size() || fill()) {
    text.append(buffer_, position_);
    position_ = buffer_.size();
    if (text.size() > limit) {
      throw Error(ErrorKind::limit_exceeded,
                  {name_, fmt::format("more than {} bytes", limit), fmt::format("at most {}", limit),
                   "split it into several requests"});
    }
  }
  return text;
}

}  // namespace assay::cli
