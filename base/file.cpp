#include "base/file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "base/bus_error.hpp"
#include "base/error.hpp"
#include "base/out_of_memory.hpp"
#include "base/utf8.hpp"

namespace assay {
namespace {

[[noreturn]] void throw_errno(const std::filesystem::path& path, const char* action) {
  const int code = errno;
  Error::Parts parts{.where = path.string(), .found = std::string(action) + ": " + std::strerror(code)};
  if (code == ENOMEM) throw OutOfMemory(std::move(parts));
  throw Error(code == ENOENT ? ErrorKind::missing : ErrorKind::io, std::move(parts));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Opens for reading without waiting: a named pipe that nobody writes to must not hang the program.
Descriptor open_to_read(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw_errno(path, "cannot be opened");
  return Descriptor(fd);
}

struct stat examine(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_errno(path, "cannot be examined");
  if (S_ISDIR(status.st_mode)) {
    throw Error(ErrorKind::io, {.where = path.string(), .found = "a directory", .expected = "a file"});
  }
  return status;
}

[[noreturn]] void throw_too_large(const std::filesystem::path& path, std::string found, std::size_t limit) {
  throw Error(ErrorKind::limit_exceeded, {.where = path.string(),
                                          .found = std::move(found),
                                          .expected = "at most " + std::to_string(limit) + " bytes"});
}

/// Bytes read into `out`, 0 at the end; waits for a pipe's writer.
std::size_t read_some(const Descriptor& file, std::span<char> out, const std::filesystem::path& path) {
  while (true) {
    const ssize_t got = ::read(file.get(), out.data(), out.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN) {
      struct pollfd wanted {
        file.get(), POLLIN, 0
      };
      ::poll(&wanted, 1, -1);
    } else if (errno != EINTR) {
      throw_errno(path, "cannot be read");
    }
  }
}

/// The first bytes of a pipe. One that was opened without waiting reads as empty until somebody has opened it
/// to write: a writer that is started beside the program gets a moment for that.
std::size_t read_pipe_start(const Descriptor& pipe, std::span<char> out, const std::filesystem::path& path) {
  constexpr int kPatienceMilliseconds = 1000;
  if (const std::size_t got = read_some(pipe, out, path)) return got;
  struct pollfd wanted {
    pipe.get(), POLLIN, 0
  };
  int events = 0;
  do {
    events = ::poll(&wanted, 1, kPatienceMilliseconds);
  } while (events < 0 && errno == EINTR);
  // Without events there may be a writer that has nothing to say yet: then this waits.
  const std::size_t got = read_some(pipe, out, path);
  if (got > 0 || events != 0) return got;
  throw Error(ErrorKind::io, {.where = path.string(),
                              .found = "a pipe that nobody writes to",
                              .expected = "a file, or a pipe with a writer",
                              .advice = "start the program that writes to it first"});
}

void write_all(const Descriptor& file, std::string_view contents, const std::filesystem::path& path) {
  while (!contents.empty()) {
    const ssize_t written = ::write(file.get(), contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno(path, "cannot be written");
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

struct MappedFile::Mapping {
  std::filesystem::path path;
  std::span<const std::byte> bytes;
  std::string name;  ///< the path as a message shows it

  Mapping(std::filesystem::path p, std::span<const std::byte> b);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
};

namespace {

/// What a signal handler may read: an address range and the name of its file. A range whose end is 0 is free,
/// one whose end is 1 is being changed. Mappings beyond the table go unnamed.
struct MappedRange {
  std::atomic<std::uintptr_t> end{0};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<const char*> name{nullptr};
};

std::array<MappedRange, 256>& mapped_ranges() {
  static std::array<MappedRange, 256> ranges;
  return ranges;
}

void enter_mapped_range(std::span<const std::byte> bytes, const char* name) {
  for (MappedRange& range : mapped_ranges()) {
    std::uintptr_t free = 0;
    if (!range.end.compare_exchange_strong(free, 1)) continue;
    range.begin = reinterpret_cast<std::uintptr_t>(bytes.data());
    range.name = name;
    range.end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
    return;
  }
}

void leave_mapped_range(std::span<const std::byte> bytes) {
  for (MappedRange& range : mapped_ranges()) {
    if (range.begin != reinterpret_cast<std::uintptr_t>(bytes.data()) || range.end <= 1) continue;
    range.begin = 0;
    range.end = 0;
    return;
  }
}

const char* file_mapped_at(std::uintptr_t address) {
  for (const MappedRange& range : mapped_ranges()) {
    if (range.begin != 0 && address >= range.begin && address < range.end) return range.name;
  }
  return nullptr;
}

/// Only what POSIX allows in a signal handler.
void on_bus_error(int signal, siginfo_t* info, void*) {
  const char* name = file_mapped_at(reinterpret_cast<std::uintptr_t>(info->si_addr));
  if (name == nullptr) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  for (const char* text : {"assay: ", name, ": was shortened while it was read\n"}) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  }
  ::_exit(2);
}

}  // namespace

MappedFile::Mapping::Mapping(std::filesystem::path p, std::span<const std::byte> b)
    : path(std::move(p)), bytes(b), name(printable(path.string())) {
  if (!bytes.empty()) enter_mapped_range(bytes, name.c_str());
}

MappedFile::Mapping::~Mapping() {
  if (bytes.empty()) return;
  leave_mapped_range(bytes);
  ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
}

void report_shortened_files() {
  mapped_ranges();
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

MappedFile MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file = open_to_read(path);
  const struct stat status = examine(file, path);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::io,
                {.where = path.string(), .found = "not a regular file", .expected = "a file to map"});
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  std::span<const std::byte> bytes;
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (address == MAP_FAILED) throw_errno(path, "cannot be mapped");
    bytes = {static_cast<const std::byte*>(address), size};
  }
  return MappedFile(std::make_shared<const Mapping>(path, bytes));
}

std::span<const std::byte> MappedFile::bytes() const noexcept {
  return mapping_->bytes;
}
const std::filesystem::path& MappedFile::path() const noexcept {
  return mapping_->path;
}

void MappedFile::release(std::span<const std::byte> part) const noexcept {
  // Whole pages inside the part only: a neighbour's first bytes may share the last page.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(part.data()) + part.size()) / page * page;
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::string read_text_file(const std::filesystem::path& path, std::size_t limit) {
  constexpr std::size_t kFirstRead = 4096;
  const Descriptor file = open_to_read(path);
  const struct stat status = examine(file, path);
  const auto size = static_cast<std::size_t>(std::max<off_t>(0, status.st_size));
  if (size > limit) throw_too_large(path, std::to_string(size) + " bytes", limit);
  // The stated size is a hint: files under /proc and pipes state 0, and a file may grow while it is read.
  // One byte more than expected, so that the end of most files is seen without growing the text.
  std::string text(std::min(std::max(size, kFirstRead), limit) + 1, '\0');
  std::size_t done = 0;
  auto read = S_ISFIFO(status.st_mode) ? read_pipe_start : read_some;
  while (const std::size_t got = read(file, {text.data() + done, text.size() - done}, path)) {
    read = read_some;
    done += got;
    if (done > limit) throw_too_large(path, "more than " + std::to_string(limit) + " bytes", limit);
    if (done == text.size()) text.resize(std::min(2 * text.size(), limit) + 1);
  }
  text.resize(done);
  return text;
}

namespace {

/// A new file beside `path` with the permissions that the user's umask leaves.
struct Temporary {
  std::string name;
  Descriptor file;
};

Temporary make_temporary(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  while (true) {
    std::string name =
        path.string() + "." + std::to_string(::getpid()) + "." + std::to_string(counter++) + ".tmp";
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return {std::move(name), Descriptor(fd)};
    if (errno != EEXIST) throw_errno(path, "no temporary file can be made beside it");
  }
}

/// Renaming would put a file in the place of a device (/dev/null, /dev/stdout) or fail late on a directory.
void check_replaceable(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  throw Error(ErrorKind::io, {.where = path.string(),
                              .found = S_ISDIR(status.st_mode) ? "a directory" : "not a regular file",
                              .expected = "a file to write or replace"});
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::string_view contents) {
  check_replaceable(path);
  const Temporary temporary = make_temporary(path);
  try {
    write_all(temporary.file, contents, path);
    if (::fsync(temporary.file.get()) != 0) throw_errno(path, "cannot be flushed");
    if (::rename(temporary.name.c_str(), path.c_str()) != 0)
      throw_errno(path, "cannot be renamed into place");
  } catch (...) {
    ::unlink(temporary.name.c_str());
    throw;
  }
}

}  // namespace assay
