#include "device/memory.hpp"

#include <sys/mman.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/out_of_memory.hpp"

namespace assay::device {

void* allocate_pages(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw OutOfMemory({.where = "memory",
                       .found = "the system has no " + std::to_string(bytes) + " bytes to give",
                       .advice = "close other programs or choose a smaller model"});
  }
  if (bytes >= kHugePage) ::madvise(data, bytes, MADV_HUGEPAGE);
  return data;
}

void free_pages(void* data, std::size_t bytes) noexcept {
  if (data != nullptr) ::munmap(data, bytes);
}

Footprint footprint() {
  Footprint result;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const bool resident = line.starts_with("VmRSS:");
    if (!resident && !line.starts_with("VmHWM:")) continue;
    std::istringstream fields(line.substr(6));
    std::size_t kibibytes = 0;
    fields >> kibibytes;
    (resident ? result.resident : result.peak) = kibibytes * 1024;
  }
  return result;
}

bool reset_peak() {
  std::ofstream refs("/proc/self/clear_refs");
  refs << '5' << std::flush;
  return refs.good();
}

}  // namespace assay::device
