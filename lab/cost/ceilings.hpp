#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/receipt/receipt.hpp"
#include "lab/window/statistics.hpp"
#include "ops/form.hpp"

/// What this machine can do at best: arithmetic by element type and memory bandwidth by working set, per
/// number of threads. A profile measures ops against it.
namespace assay::lab {

struct CeilingsOptions {
  std::size_t threads = 0;      ///< the most, 1 to the cores of this process; 0 for all of them
  bool only = false;            ///< that number alone, instead of 1 to it
  std::size_t repetitions = 5;  ///< of every measurement, 3 to 100
};

/// Multiply-adds in registers.
struct PeakCeiling {
  std::string kernel;  ///< as PeakKernel names it
  ops::Precision precision = ops::Precision::fp32;
  std::size_t threads = 0;
  Summary operations_per_second;  ///< of all threads together
};

/// The levels that a working set is made for, the smallest first.
enum class MemoryLevel { l1, l2, l3, memory };
std::string_view to_string(MemoryLevel level);

enum class MemoryAccess { read, write, copy };
std::string_view to_string(MemoryAccess access);

/// Passes over a working set.
struct BandwidthCeiling {
  MemoryLevel level = MemoryLevel::l1;
  MemoryAccess access = MemoryAccess::read;
  std::size_t threads = 0;
  std::size_t bytes = 0;     ///< of the working set, all threads together
  bool streaming = false;    ///< its stores go past the caches
  Summary bytes_per_second;  ///< of all threads together; a copy counts what it reads and what it writes
};

/// Sizes that the C library reports (sysconf), or what is usual where it reports none.
struct CacheSizes {
  std::size_t l1 = 0;  ///< data cache of a core, bytes
  std::size_t l2 = 0;  ///< of a core
  std::size_t l3 = 0;  ///< of the package; a virtual machine may report more than it shares in
};
CacheSizes cache_sizes();

struct Ceilings {
  CacheSizes caches;
  std::vector<PeakCeiling> peaks;
  std::vector<BandwidthCeiling> bandwidths;
  double seconds = 0;  ///< that measuring took

  /// The best repetition of the kernels that compute what a form of this precision does: for bf16 the bf16
  /// kernels and fp32's, for fp32 fp32's. Throws Error(missing) where that number of threads was not
  /// measured.
  double peak(ops::Precision precision, std::size_t threads) const;
  /// Throws Error(missing) likewise.
  const BandwidthCeiling& bandwidth(MemoryLevel level, MemoryAccess access, std::size_t threads) const;
  /// The smallest level whose caches, with that many cores, hold so many bytes.
  MemoryLevel level_of(double bytes, std::size_t threads) const;
};

/// Working sets: half of L1 and half of L2 a thread; for L3 eight times L2 a thread (half of L3 shared out,
/// if that is less); for memory twice L3 in all, at most 1 GiB and a quarter of what is free. A repetition
/// takes some 20 ms, or one pass of memory. Kernels whose instructions this machine lacks are left out.
/// Throws Error(invalid_argument) for options out of range, Error(io) where memory or threads are lacking.
Ceilings measure_ceilings(const CeilingsOptions& options,
                          const std::function<void(std::string_view)>& progress);

/// A ceilings receipt. subject: {"threads": [those measured], "repetitions"}. result:
///   {"caches": {"l1_bytes", "l2_bytes", "l3_bytes"}, "seconds",
///    "peaks": [{"kernel", "precision", "threads", "operations_per_second": S}],
///    "bandwidths": [{"level", "access", "threads", "working_set_bytes", "streaming", "bytes_per_second":
///    S}]}
/// with S = {"median", "min", "max", "p10", "p90", "spread", "count"}.
nlohmann::ordered_json ceilings_subject(const Ceilings& ceilings, const CeilingsOptions& options);
nlohmann::ordered_json to_json(const Ceilings& ceilings);
std::string to_table(const Ceilings& ceilings);

/// The ceilings in a receipt. Throws Error(mismatch) where it is of another kind or of another device than
/// this machine, Error(malformed) naming the field.
Ceilings read_ceilings(const Receipt& receipt);

}  // namespace assay::lab
