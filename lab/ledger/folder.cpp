#include "lab/ledger/folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"

namespace assay::lab {

FolderLock::FolderLock(const std::filesystem::path& folder)
    : file_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (file_ < 0) {
    throw Error(ErrorKind::missing, {.where = folder.string(),
                                     .found = std::strerror(errno),
                                     .expected = "a ledger's folder",
                                     .advice = "`assay ledger new` makes one; --ledger names another"});
  }
  while (::flock(file_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    const int code = errno;
    ::close(file_);
    throw Error(ErrorKind::io, {folder.string(), std::string("cannot be locked: ") + std::strerror(code)});
  }
}

FolderLock::~FolderLock() {
  ::close(file_);
}

void make_folder(const std::filesystem::path& folder) {
  make_directories(folder);
}

void create_file(const std::filesystem::path& file, const std::string& contents) {
  const std::filesystem::path temporary = file.string() + "." + std::to_string(::getpid()) + ".new.tmp";
  write_file_atomically(temporary, contents);
  const int failed = ::link(temporary.c_str(), file.c_str()) == 0 ? 0 : errno;
  ::unlink(temporary.c_str());
  if (failed == EEXIST) {
    throw Error(ErrorKind::mismatch, {file.string(), "there already", "a new file"});
  }
  if (failed != 0) throw Error(ErrorKind::io, {file.string(), std::strerror(failed)});
}

}  // namespace assay::lab
