#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>

namespace assay::cli {

/// Reads a file or standard input ("-") whole or line by line, never holding more than a limit.
class LineReader {
 public:
  /// A named pipe is waited for until somebody writes to it; the log says so after a second. Throws
  /// Error(missing | io) naming the path, io also for a directory.
  explicit LineReader(const std::string& path);

  enum class Status { line, too_long, no_memory, end };

  /// The next line without its end ("\n" or "\r\n") into `line`. A line of more than `limit` bytes, or for
  /// which there is no memory, is skipped to its end and reported as such, `line` empty. Throws Error(io).
  Status next(std::string& line, std::size_t limit);

  /// All that is left. Throws Error(limit_exceeded) past `limit`, Error(io).
  std::string rest(std::size_t limit);

  const std::string& name() const noexcept { return name_; }

 private:
  bool fill();
  Status append(std::string& line, std::size_t count, std::size_t limit);

  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdin) std::fclose(file);
    }
  };
  std::string name_;  // for messages
  std::unique_ptr<std::FILE, Close> file_;
  std::string buffer_;
  std::size_t position_ = 0;
};

}  // namespace assay::cli
