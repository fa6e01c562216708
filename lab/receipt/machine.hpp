#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

namespace assay::lab {

/// What is measured on. Two receipts are about one device where their ids are equal.
struct Machine {
  std::string id;         ///< "cpu-" and a slug of the processor's name, its features and core count
  std::string processor;  ///< its own name
  std::string features;   ///< device::describe(cpu_features())
  std::size_t cores = 0;  ///< that this process may use (sched_getaffinity)
  std::size_t memory_bytes = 0;
  std::string kernel;  ///< uname's release
};

Machine this_machine();

nlohmann::ordered_json to_json(const Machine& machine);

}  // namespace assay::lab
