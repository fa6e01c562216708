#include "base/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace assay {
namespace {

[[noreturn]] void throw_errno(const std::filesystem::path& path, const char* action) {
  const int code = errno;
  const ErrorKind kind = code == ENOENT ? ErrorKind::missing : ErrorKind::io;
  throw Error(kind, {.where = path.string(), .found = std::string(action) + ": " + std::strerror(code)});
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

std::size_t regular_file_size(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_errno(path, "cannot be examined");
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::io, {.where = path.string(), .found = "not a regular file", .expected = "a file"});
  }
  return static_cast<std::size_t>(status.st_size);
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

  Mapping(std::filesystem::path p, std::span<const std::byte> b) : path(std::move(p)), bytes(b) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (!bytes.empty()) ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
  }
};

MappedFile MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw_errno(path, "cannot be opened");
  const std::size_t size = regular_file_size(file, path);
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
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw_errno(path, "cannot be opened");
  const std::size_t size = regular_file_size(file, path);
  if (size > limit) {
    throw Error(ErrorKind::limit_exceeded, {.where = path.string(),
                                            .found = std::to_string(size) + " bytes",
                                            .expected = "at most " + std::to_string(limit)});
  }
  std::string text(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.get(), text.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(path, "cannot be read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view contents) {
  std::string temporary = path.string() + ".XXXXXX";
  const Descriptor file(::mkstemp(temporary.data()));
  if (file.get() < 0) throw_errno(path, "no temporary file can be made beside it");
  try {
    write_all(file, contents, path);
    if (::fchmod(file.get(), 0644) != 0 || ::fsync(file.get()) != 0) throw_errno(path, "cannot be flushed");
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw_errno(path, "cannot be renamed into place");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace assay
