#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "backbone/op_observer.hpp"
#include "lab/cost/ceilings.hpp"
#include "lab/cost/measured_model.hpp"
#include "ops/selection.hpp"

/// Where the wall time of a pass goes: by op, form and shape, each against the least that this machine would
/// need.
namespace assay::lab {

struct ProfileOptions {
  ModelChoice choice;
  ops::Precision precision = ops::Precision::bf16;
  ops::FormOverrides forms;
  std::size_t threads = 0;
  std::size_t tokens = 256;  ///< of a pass, where there is no request; 1 to 65,536
  std::size_t passes = 3;    ///< timed, after one that is not; 1 to 100
  /// A System One request as JSON and the name of its file; the pass is then its decision, tokenizer and head
  /// included. For checkpoints alone.
  std::optional<std::string> request;
  std::string request_name;
};

/// One pass, seen from outside and from inside.
struct ProfilePass {
  backbone::OpCall::Clock::time_point begin;
  backbone::OpCall::Clock::time_point end;
  std::vector<backbone::OpCall> calls;  ///< in their order
  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

/// The calls of one op by one form on one shape. Numbers are of one pass, on average.
struct ProfileLine {
  std::string op;
  std::string form;
  std::string shape;  ///< "m=256 n=7168 k=1024"
  std::string parts;  ///< what they do in their layers: "gate_up" or "q_norm,k_norm"
  double calls = 0;
  double seconds = 0;
  double operations = 0;
  double bytes = 0;       ///< weights, activations and states, each moved once
  double floor = 0;       ///< seconds: the sum over calls of the larger of the two below
  double arithmetic = 0;  ///< seconds: operations at the peak of the form's precision
  double movement = 0;    ///< seconds: bytes at the bandwidth of where they lie
};

struct ProfileReport {
  nlohmann::ordered_json subject;  ///< run_subject with "passes" and "tokens" or "request"
  std::vector<ProfilePass> passes;
  std::vector<ProfileLine> lines;  ///< the longest first
  double wall = 0;                 ///< seconds of a pass, on average; the lines and the next make it up
  double unaccounted = 0;          ///< seconds in no op: between ops, and outside the backbone
  std::size_t threads = 0;
  Ceilings ceilings;
};

/// Sums passes up. The floor of a call is the larger of
///   operations ÷ peak(precision, threads) and
///   weight bytes ÷ read bandwidth of the level that holds all `weight_bytes` of the model, for the other
///   layers drive a layer's weights out, + data bytes ÷ copy bandwidth of the level that holds this call's
///   data.
/// Rates are the best repetition's, for what else runs can only lower them. Levels are the smallest that
/// could hold so much, so the floor is one indeed: data that lie further away take longer. Throws
/// Error(invalid_argument) without passes, Error(missing) where the ceilings lack the threads.
ProfileReport make_profile(std::vector<ProfilePass> passes, const Ceilings& ceilings, std::size_t threads,
                           std::size_t weight_bytes);

/// Loads the model, warms it up and profiles it. Throws Error(invalid_argument) naming what is out of range,
/// and what loading, parsing the request and deciding throw.
ProfileReport measure_profile(const ProfileOptions& options, const Ceilings& ceilings,
                              const std::function<void(std::string_view)>& progress);

/// A profile receipt's result:
///   {"wall_milliseconds", "unaccounted_milliseconds", "passes_milliseconds": [of each],
///    "lines": [{"op", "form", "shape", "parts", "calls", "milliseconds", "share", "operations", "bytes",
///      "floor_milliseconds", "arithmetic_milliseconds", "movement_milliseconds", "times_floor" (null: floor
///      0)}]}
/// and in its subject, besides run_subject: "passes", "tokens" or "request" (its SHA-256), "ceilings" (the
/// receipt's SHA-256, or "measured before").
nlohmann::ordered_json to_json(const ProfileReport& report);
std::string to_table(const ProfileReport& report);

/// The passes as Chrome's trace events (Google, "Trace Event Format"; chrome://tracing and Perfetto read it):
/// a complete event ("ph": "X", times in microseconds from the first pass) for every pass, layer and op call,
/// nested on the thread that asked for them, with the call's part, form, shape, operations and bytes.
nlohmann::ordered_json to_chrome_trace(const ProfileReport& report);

}  // namespace assay::lab
