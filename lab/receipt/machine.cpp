#include "lab/receipt/machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "device/cpu_features.hpp"

namespace assay::lab {
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

std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::size_t>(CPU_COUNT(&set));
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.processor = device::cpu_model_name();
  machine.features = device::describe(device::cpu_features());
  machine.cores = usable_cores();
  machine.memory_bytes =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  utsname names{};
  if (::uname(&names) == 0) machine.kernel = names.release;
  machine.id = slug(fmt::format("cpu-{}-{}-{}-cores", machine.processor, machine.features, machine.cores));
  return machine;
}

nlohmann::ordered_json to_json(const Machine& machine) {
  return {{"id", machine.id},       {"processor", machine.processor},       {"features", machine.features},
          {"cores", machine.cores}, {"memory_bytes", machine.memory_bytes}, {"kernel", machine.kernel}};
}

}  // namespace assay::lab
