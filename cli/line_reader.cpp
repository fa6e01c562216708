#include "cli/line_reader.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "base/error.hpp"

namespace assay::cli {
namespace {

constexpr std::size_t kBlock = 64 * 1024;

}  // namespace

LineReader::LineReader(const std::string& path) : name_(path == "-" ? "standard input" : path) {
  file_.reset(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file_) {
    throw Error(
        errno == ENOENT ? ErrorKind::missing : ErrorKind::io,
        {name_, std::strerror(errno), "a file of requests", "check the path, or give - for standard input"});
  }
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
