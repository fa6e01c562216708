#include "lab/receipt/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include "device/cpu_features.hpp"
#include "device/cpu_id.hpp"

namespace assay::lab {
Machine this_machine() {
  Machine machine;
  machine.processor = device::cpu_model_name();
  machine.features = device::describe(device::cpu_features());
  machine.cores = device::usable_cores();
  machine.memory_bytes =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  utsname names{};
  if (::uname(&names) == 0) machine.kernel = names.release;
  machine.id = device::cpu_id();
  return machine;
}

nlohmann::ordered_json to_json(const Machine& machine) {
  return {{"id", machine.id},       {"processor", machine.processor},       {"features", machine.features},
          {"cores", machine.cores}, {"memory_bytes", machine.memory_bytes}, {"kernel", machine.kernel}};
}

}  // namespace assay::lab
