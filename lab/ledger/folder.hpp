#pragma once

#include <filesystem>
#include <string>

namespace assay::lab {

/// Held by one process at a time; the kernel releases it when that ends, however it ends. The folder itself
/// carries the lock (flock), so no file is left for git to see.
class FolderLock {
 public:
  /// Waits for it. Throws Error(missing) where there is no such folder, Error(io).
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

/// Makes a folder and those above it. Throws Error(io).
void make_folder(const std::filesystem::path& folder);

/// Writes a file that must not be there yet: the name appears with all its contents or not at all, and of
/// two processes one fails. Throws Error(mismatch) where it is there, Error(io).
void create_file(const std::filesystem::path& file, const std::string& contents);

}  // namespace assay::lab
