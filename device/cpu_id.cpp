#include "device/cpu_id.hpp"

#include <sched.h>

#include <string_view>

#include "device/cpu_features.hpp"

namespace assay::device {
namespace {

std::string slug(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || upper;
    if (kept) {
      result.push_back(upper ? static_cast<char>(c - 'A' + 'a') : c);
    } else if (!result.empty() && result.back() != '-') {
      result.push_back('-');
    }
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result;
}

}  // namespace

std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::size_t>(CPU_COUNT(&set));
}

std::string cpu_id() {
  return slug("cpu-" + cpu_model_name() + "-" + describe(cpu_features()) + "-" +
              std::to_string(usable_cores()) + "-cores");
}

}  // namespace assay::device
