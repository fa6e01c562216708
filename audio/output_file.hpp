#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace assay::audio {

/// A file that appears under its name only when it is complete: written under a temporary name in the same
/// folder, then renamed. Whatever ends it before `commit` leaves nothing behind, and what stood there stands.
///
/// It has no more of a file than an encoder needs: a position, reading, writing, seeking. The first failure
/// is kept, so that it reaches the caller through a library that only says that something failed.
class OutputFile {
 public:
  /// Throws Error(io | missing) naming `path` where its folder is not there or cannot be written, or a
  /// directory or device stands at it.
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Bytes written or read: fewer than asked where the system refused, and then failure() says why.
  std::size_t write(std::span<const std::byte> bytes);
  std::size_t read(std::span<std::byte> bytes);
  /// As lseek; −1 on failure.
  std::int64_t seek(std::int64_t offset, int whence);
  std::int64_t size() const;

  /// Error number of the first failure, 0 without one.
  int failure() const { return failure_; }
  /// Throws Error(io) naming the path and the first failure, where there was one.
  void check() const;

  /// Flushes and renames into place. Throws Error(io).
  void commit();

  const std::filesystem::path& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* action, int code) const;

  std::filesystem::path path_;
  std::string temporary_;
  int file_ = -1;
  int failure_ = 0;
};

/// Takes away what unfinished OutputFiles of this process have written, for a program that must end at once;
/// may be called in a signal handler. None of them may be used afterwards.
void remove_unfinished_files() noexcept;

}  // namespace assay::audio
