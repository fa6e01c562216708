#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace assay::decision {

/// The files that a model is read from, as they stood when it was opened.
class ModelFiles {
 public:
  /// Notes each file's size and when it was written. Throws Error(missing | io).
  explicit ModelFiles(std::vector<std::filesystem::path> files);

  /// Throws Error(io) naming the first file that was written, replaced or removed since: what was read of it
  /// may be of either version.
  void check_unchanged() const;

  /// SHA-256 over the files' names, sizes and contents, so that equal models have it on every machine. Reads
  /// all of them at the first call: seconds for gigabytes. Throws as check_unchanged does.
  const std::string& identity() const;

  /// Tells these files from any others on this machine without reading them: paths, sizes and times.
  std::string stamp() const;

 private:
  struct File {
    std::filesystem::path path;
    std::uint64_t size = 0;
    std::int64_t written = 0;  ///< nanoseconds of the file system's clock
  };
  static File examine(const std::filesystem::path& path);

  std::vector<File> files_;
  mutable std::mutex mutex_;
  mutable std::string identity_;
};

}  // namespace assay::decision
