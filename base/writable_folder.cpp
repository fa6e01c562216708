#include "base/writable_folder.hpp"

#include <unistd.h>

#include <string>
#include <system_error>

#include "base/file.hpp"
#include "base/path.hpp"

namespace assay {

void require_writable_folder(const std::filesystem::path& folder) {
  make_directories(folder);
  const std::filesystem::path trial = folder / ("trial-" + std::to_string(::getpid()) + ".tmp");
  write_file_atomically(trial, "This file shows that the folder can be written into.\n");
  std::error_code none;
  std::filesystem::remove(trial, none);
}

}  // namespace assay
