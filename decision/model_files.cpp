#include "decision/model_files.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/path.hpp"
#include "base/sha256.hpp"

namespace assay::decision {

ModelFiles::ModelFiles(std::vector<std::filesystem::path> files) {
  files_.reserve(files.size());
  for (const std::filesystem::path& path : files) files_.push_back(examine(path));
}

ModelFiles::File ModelFiles::examine(const std::filesystem::path& path) {
  if (!path_exists(path)) throw Error(ErrorKind::io, {.where = path.string(), .found = "not there any more"});
  std::error_code failed;
  const std::uint64_t size = std::filesystem::file_size(path, failed);
  if (failed) throw Error(ErrorKind::io, {.where = path.string(), .found = failed.message()});
  const auto written = std::filesystem::last_write_time(path, failed);
  if (failed) throw Error(ErrorKind::io, {.where = path.string(), .found = failed.message()});
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(written.time_since_epoch());
  return {.path = path, .size = size, .written = since.count()};
}

void ModelFiles::check_unchanged() const {
  for (const File& file : files_) {
    const File now = examine(file.path);
    if (now.size == file.size && now.written == file.written) continue;
    throw Error(ErrorKind::io, {.where = file.path.string(),
                                .found = "written while it was read",
                                .expected = "files that stay as they are",
                                .advice = "load the model again once they are whole"});
  }
}

const std::string& ModelFiles::identity() const {
  const std::lock_guard lock(mutex_);
  if (!identity_.empty()) return identity_;
  std::string lines;
  for (const File& file : files_) {
    lines += fmt::format("{} {} {}\n", file.path.filename().string(), file.size, sha256_hex(file.path));
  }
  check_unchanged();
  identity_ = sha256_hex(std::as_bytes(std::span(lines)));
  return identity_;
}

std::string ModelFiles::stamp() const {
  std::string text;
  for (const File& file : files_) {
    text += fmt::format("{} {} {}\n", file.path.string(), file.size, file.written);
  }
  return text;
}

}  // namespace assay::decision
