#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace assay::lab {

/// What a process holds, in bytes, as Linux counts it (kernel Documentation/filesystems/proc.rst).
///
/// From /proc/self/smaps_rollup, which walks the page tables and is exact at that moment, except `peak`,
/// which only /proc/self/status has and the kernel keeps in counters that may be some pages behind.
struct ProcessMemory {
  std::size_t resident = 0;      ///< Rss: pages in memory, shared ones whole
  std::size_t proportional = 0;  ///< Pss: shared pages divided by the processes that share them
  std::size_t anonymous = 0;     ///< Anonymous: heap, stacks, activations, packed weights
  std::size_t file_mapped =
      0;                 ///< resident − anonymous: mapped weights and the program; the kernel may drop it
  std::size_t huge = 0;  ///< AnonHugePages: the part of `anonymous` in huge pages
  std::size_t swapped = 0;  ///< Swap
  std::size_t peak = 0;     ///< VmHWM: the most that was resident since the process began
};

/// Reads the two files' text. Throws Error(malformed) naming the field that is missing, is no number of kB,
/// or does not fit.
ProcessMemory parse_process_memory(std::string_view smaps_rollup, std::string_view status);

/// Of this process. Throws Error(unsupported) where the system has no /proc/self/smaps_rollup.
ProcessMemory process_memory();

nlohmann::ordered_json to_json(const ProcessMemory& memory);

/// The inverse; `origin` begins the place in messages. Throws Error(malformed) naming the field.
ProcessMemory read_process_memory(const nlohmann::ordered_json& json, const std::string& origin);

/// Reads again and again what this process holds of its own, without allocating: the bytes that are anonymous
/// (`ProcessMemory::anonymous` and `swapped`). Mapped files are left out, for their pages come and go with
/// the system's need of memory, not with the program's.
class HeldBytes {
 public:
  /// Throws Error(unsupported) where the system has no /proc/self/smaps_rollup.
  HeldBytes();
  ~HeldBytes();
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  std::size_t operator()() const;

 private:
  int file_;
};

}  // namespace assay::lab
