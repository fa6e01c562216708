#include "lab/window/lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "lab/window/descriptor.hpp"

namespace assay::lab {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);
constexpr mode_t kForEveryone = 0666;

[[noreturn]] void refuse_lock(const std::filesystem::path& file, std::string found, std::string advice = {}) {
  throw Error(ErrorKind::io, {.where = file.string(),
                              .found = std::move(found),
                              .expected = "a lock file",
                              .advice = std::move(advice)});
}

/// An existing file is opened without O_CREAT: in a sticky folder the kernel refuses that for another user's
/// (Linux, Documentation/admin-guide/sysctl/fs.rst, protected_regular).
int open_or_create(const std::filesystem::path& file) {
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  while (true) {
    const int existing = ::open(file.c_str(), kFlags);
    if (existing >= 0) return existing;
    if (errno == ELOOP) refuse_lock(file, "a symbolic link", "remove it");
    if (errno != ENOENT) refuse_lock(file, std::string("cannot be opened: ") + std::strerror(errno));
    const int created = ::open(file.c_str(), kFlags | O_CREAT | O_EXCL, kForEveryone);
    if (created >= 0) {
      ::fchmod(created, kForEveryone);
      return created;
    }
    if (errno != EEXIST) refuse_lock(file, std::string("cannot be made: ") + std::strerror(errno));
  }
}

void check_regular(int descriptor, const std::filesystem::path& file) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) refuse_lock(file, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) refuse_lock(file, "not a regular file", "remove it");
  if (status.st_nlink > 1) refuse_lock(file, "a file with several names", "remove it");
}

/// Whether the name still leads to the file that is open: it may have been removed between open and lock.
bool still_named(int descriptor, const std::filesystem::path& file) {
  struct stat open_file {};
  struct stat named {};
  return ::fstat(descriptor, &open_file) == 0 && ::lstat(file.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

std::string describe_holder(int descriptor) {
  std::array<char, 4096> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
  const auto holder = nlohmann::json::parse(
      std::string_view(text.data(), got < 0 ? 0 : static_cast<std::size_t>(got)), nullptr, false);
  const auto field = [&](const char* name) {
    return holder.is_object() && holder.contains(name) ? holder[name].dump() : std::string("?");
  };
  return fmt::format("process {} (window {}, since {})", field("pid"), field("plan"), field("started"));
}

void write_holder(int descriptor, const std::filesystem::path& file, const std::string& plan) {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::string text =
      nlohmann::ordered_json{
          {"pid", ::getpid()}, {"started", fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", now)}, {"plan", plan}}
          .dump() +
      "\n";
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    refuse_lock(file, std::string("cannot be written: ") + std::strerror(errno));
  }
}

[[noreturn]] void refuse_taken(const std::filesystem::path& file, const std::string& holder) {
  throw Error(ErrorKind::unsupported, {.where = file.string(),
                                       .found = "the device is taken by " + holder,
                                       .expected = "no other window",
                                       .advice = "leave --no-wait out to wait for its end"});
}

void wait_for_lock(int descriptor, const std::filesystem::path& file, const LockOptions& options) {
  std::string told;
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) refuse_lock(file, std::string("cannot be locked: ") + std::strerror(errno));
    std::string holder = describe_holder(descriptor);
    if (!options.wait) refuse_taken(file, holder);
    if (options.cancelled && options.cancelled()) {
      throw Error(ErrorKind::cancelled, {.where = file.string(), .found = "stopped while waiting"});
    }
    if (holder != told && options.on_wait) options.on_wait("waiting for " + holder);
    told = std::move(holder);
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace

DeviceLock::DeviceLock(std::filesystem::path file, int descriptor)
    : file_(std::move(file)), descriptor_(descriptor) {}

DeviceLock::DeviceLock(DeviceLock&& other) noexcept
    : file_(std::move(other.file_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

DeviceLock::~DeviceLock() {
  if (descriptor_ < 0) return;
  // What the file says of a holder that is gone only matters to readers; nobody is held up by it.
  [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, 0);
  ::close(descriptor_);
}

DeviceLock DeviceLock::acquire(const std::string& device, const std::string& plan,
                               const LockOptions& options) {
  const std::filesystem::path file = options.folder / ("assay-" + device + ".lock");
  Descriptor descriptor;
  do {
    descriptor = Descriptor(open_or_create(file));
    check_regular(descriptor.get(), file);
    wait_for_lock(descriptor.get(), file, options);
  } while (!still_named(descriptor.get(), file));
  DeviceLock lock(file, descriptor.release());
  write_holder(lock.descriptor_, file, plan);
  return lock;
}

}  // namespace assay::lab
