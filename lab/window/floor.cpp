#include "lab/window/floor.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "lab/receipt/machine.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

/// The largest `rate`.max among a list's entries whose `field` is `value`.
std::optional<double> best(const Json& list, const char* field, std::string_view value, const char* rate) {
  std::optional<double> found;
  for (const Json& entry : list) {
    if (entry.at(field) != value) continue;
    found = std::max(found.value_or(0), entry.at(rate).at("max").get<double>());
  }
  return found;
}

}  // namespace

StatedCeilings ceilings_of(const Receipt& receipt) {
  const std::string device = this_machine().id;
  if (receipt.kind != ReceiptKind::ceilings || receipt.body.at("device").value("id", "") != device) {
    throw Error(ErrorKind::mismatch,
                {.where = receipt.file.string(),
                 .found = fmt::format("a {} receipt of {}", to_string(receipt.kind),
                                      receipt.body.at("device").value("id", "an unnamed device")),
                 .expected = "a ceilings receipt of " + device});
  }
  try {
    const Json& result = receipt.body.at("result");
    return {.fp32_flops = best(result.at("peaks"), "precision", "fp32", "operations_per_second"),
            .bf16_flops = best(result.at("peaks"), "precision", "bf16", "operations_per_second"),
            .bytes_per_second = best(result.at("bandwidths"), "level", "memory", "bytes_per_second")};
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::malformed, {.where = receipt.file.string(), .found = error.what()});
  }
}

double floor_seconds(const WorkCost& cost, const StatedCeilings& ceilings, std::size_t cache_bytes) {
  double arithmetic = 0;
  if (ceilings.fp32_flops) arithmetic += cost.fp32_operations / *ceilings.fp32_flops;
  if (ceilings.bf16_flops) arithmetic += cost.bf16_operations / *ceilings.bf16_flops;
  const bool from_memory = cost.bytes > 2 * static_cast<double>(cache_bytes);
  const double traffic =
      ceilings.bytes_per_second && from_memory ? cost.bytes / *ceilings.bytes_per_second : 0;
  return std::max(arithmetic, traffic);
}

std::size_t last_level_cache_bytes() {
  for (const int name : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const long bytes = ::sysconf(name); bytes > 0) return static_cast<std::size_t>(bytes);
  }
  return 0;
}

}  // namespace assay::lab
