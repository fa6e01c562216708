#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace assay::lab {

struct LockOptions {
  /// Where the lock files of all devices and users lie: a sticky folder that everyone may write to.
  std::filesystem::path folder = "/tmp";
  bool wait = true;
  std::function<void(std::string_view)> on_wait = nullptr;  ///< told who holds it, once a holder
  std::function<bool()> cancelled = nullptr;                ///< looked at while waiting
};

/// The machine-wide right to time on a device: flock(2) on `folder`/assay-`device`.lock, which holds the pid,
/// start and plan of its holder as JSON. The kernel drops the lock with the process however that ends, so a
/// killed holder blocks nobody; the file stays, for removing it would let two windows hold two files of one
/// name.
///
/// The file is opened without following links, must be a regular file with one name, and is never created
/// over something else, so that nobody can have another user's file overwritten through it. Whoever may write
/// to the folder can hold a lock as long as they like.
class DeviceLock {
 public:
  /// Throws Error(unsupported) naming the holder where it is taken and `wait` is false, Error(cancelled),
  /// Error(io) where the file is not such a file or cannot be opened.
  static DeviceLock acquire(const std::string& device, const std::string& plan, const LockOptions& options);

  DeviceLock(DeviceLock&& other) noexcept;
  DeviceLock& operator=(DeviceLock&&) = delete;
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;
  ~DeviceLock();

  const std::filesystem::path& file() const noexcept { return file_; }

 private:
  DeviceLock(std::filesystem::path file, int descriptor);
  std::filesystem::path file_;
  int descriptor_;
};

}  // namespace assay::lab
