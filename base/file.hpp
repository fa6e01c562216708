#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace assay {

/// A whole file mapped read-only. Copies share the mapping; it ends with the last one.
class MappedFile {
 public:
  /// Throws Error(missing | io) naming the path, io also for what is not a regular file. An empty file maps
  /// to no bytes. Whoever shortens a mapped file takes bytes away under its readers: don't.
  static MappedFile open(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const noexcept;
  const std::filesystem::path& path() const noexcept;

  /// Tells the kernel that `part` (of this file) need not stay resident; it is read again on next use.
  void release(std::span<const std::byte> part) const noexcept;

 private:
  struct Mapping;
  explicit MappedFile(std::shared_ptr<const Mapping> mapping) : mapping_(std::move(mapping)) {}
  std::shared_ptr<const Mapping> mapping_;
};

/// Reads a whole file or pipe. Throws Error(missing | io), or Error(limit_exceeded) when it holds more than
/// `limit` bytes.
std::string read_text_file(const std::filesystem::path& path, std::size_t limit = std::size_t{1} << 30);

/// Writes to a temporary name beside `path`, flushes, renames. On failure what stood there stands and nothing
/// else is left. A symbolic link is replaced, not followed; a device or directory is refused.
/// Throws Error(io), or Error(missing) where the folder is missing.
void write_file_atomically(const std::filesystem::path& path, std::string_view contents);

}  // namespace assay
