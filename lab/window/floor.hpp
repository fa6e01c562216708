#pragma once

#include <cstddef>
#include <optional>

#include "lab/receipt/receipt.hpp"

namespace assay::lab {

/// What a run does at the least, whatever its form.
struct WorkCost {
  double fp32_operations = 0;  ///< floating-point, a multiply-add counted twice
  double bf16_operations = 0;  ///< those whose operands are bf16
  double bytes = 0;            ///< weights, inputs and outputs, each once
};

/// The most that a machine does in a second, all cores; what is absent bounds nothing.
struct StatedCeilings {
  std::optional<double> fp32_flops = {};
  std::optional<double> bf16_flops = {};
  std::optional<double> bytes_per_second = {};
};

/// The best that a ceilings receipt of this machine measured, at any number of threads. Throws
/// Error(mismatch) for a receipt of another kind or device, Error(malformed) where it lacks what is needed.
StatedCeilings ceilings_of(const Receipt& receipt);

/// Seconds below which no run can be: operations ÷ peak, and bytes ÷ bandwidth where the bytes are more than
/// twice the last-level cache holds (`cache_bytes`), since fewer may not come from memory. 0 where the
/// ceilings say nothing of it.
double floor_seconds(const WorkCost& cost, const StatedCeilings& ceilings, std::size_t cache_bytes);

/// Bytes of this machine's last-level cache; 0 where the system does not say.
std::size_t last_level_cache_bytes();

}  // namespace assay::lab
