#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/cost/growth.hpp"
#include "lab/cost/measured_model.hpp"
#include "lab/cost/process_memory.hpp"
#include "ops/selection.hpp"

/// What running a model takes of a machine's memory: per process, at four moments of its life, and per
/// device.
namespace assay::lab {

struct FootprintOptions {
  ModelChoice choice;
  ops::Precision precision = ops::Precision::bf16;
  ops::FormOverrides forms;
  std::size_t threads = 0;
  std::size_t tokens = 256;  ///< of the longest call, 2 to 65,536
  std::size_t calls = 8;     ///< after the first, of lengths from 1 to `tokens`; 1 to 10,000
};

/// One moment of the measured process.
struct FootprintStage {
  std::string name;  ///< "start", "loaded", "first use", "end"
  ProcessMemory memory;
};

/// What a device's own memory holds of the model. On a cpu both are parts of the process's memory.
struct DeviceFootprint {
  std::string device;             ///< "cpu"
  std::size_t weight_bytes = 0;   ///< packed products and the token table, mapped or held
  std::size_t scratch_bytes = 0;  ///< what the calls added to what is held, at the end: activations
};

struct FootprintReport {
  nlohmann::ordered_json subject;  ///< run_subject, with "tokens" and "calls"
  std::vector<FootprintStage> stages;
  std::size_t peak = 0;  ///< VmHWM at the end, loading included
  std::vector<DeviceFootprint> devices;
};

/// Measures in this process, which should have done nothing else: start, load, a call of `tokens` tokens, the
/// other calls. Throws Error(invalid_argument) naming what is out of range, and what loading throws.
FootprintReport measure_footprint_here(const FootprintOptions& options);

/// Measures in a fresh process: this program again as `lab footprint-process <options as JSON>`.
FootprintReport measure_footprint(const FootprintOptions& options);

/// What the fresh process is given and answers. Reading throws Error(malformed) naming the field.
nlohmann::ordered_json to_json(const FootprintOptions& options);
FootprintOptions read_footprint_options(std::string_view json);
FootprintReport read_footprint_report(std::string_view json);

/// A footprint receipt. subject: {"model", "precision", "threads", "forms", "tokens", "calls"}. result:
///   {"process": {"stages": [{"stage", "resident", "proportional", "anonymous", "file_mapped", "huge",
///   "swapped",
///    "peak"}], "peak"}, "devices": [{"device", "weight_bytes", "scratch_bytes"}]}, all in bytes.
nlohmann::ordered_json to_json(const FootprintReport& report);
std::string to_table(const FootprintReport& report);

/// Loads the model in this process and runs measure_growth on its backbone (`growth.longest` tokens at most;
/// the other fields of `options` as above). `subject` becomes run_subject, which is a growth receipt's
/// subject.
GrowthReport measure_model_growth(const FootprintOptions& options, const GrowthOptions& growth,
                                  nlohmann::ordered_json& subject);

}  // namespace assay::lab
