#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/window/environment.hpp"
#include "lab/window/floor.hpp"
#include "lab/window/pairs.hpp"
#include "ops/selection.hpp"

namespace assay::lab {

/// What is run. Exactly one of three kinds:
///  - a checkpoint (`model`, perhaps `base`) answering a request file;
///  - a pass of a synthetic decision model (`shape`, `row_tokens`, `questions`), as in lab/synthetic_row.hpp;
///  - one op on random values (`op`, `sizes`), as in lab/window/op_work.hpp.
struct WindowItem {
  std::string name;
  std::filesystem::path model = {};
  std::filesystem::path base = {};
  std::filesystem::path request = {};
  std::string shape = {};
  std::size_t row_tokens = 0;
  std::size_t questions = 0;
  std::string op = {};
  std::map<std::string, std::size_t> sizes = {};
  std::size_t settling_runs = 0;  ///< untimed runs right before each timed one; by default 1 for an op
  std::size_t calls = 1;          ///< runs in a timed stretch, whose time is divided by them
};

/// How it is run: the forms of a run's ops, as `assay decide` takes them.
struct WindowForm {
  std::string name;
  ops::Precision precision = ops::Precision::bf16;
  ops::FormOverrides forms = {};
  std::size_t threads = 0;  ///< 0: one per core
  std::size_t call_tokens = 1024;
};

/// Which worker processes are alive at once. One is active at any time in all three.
enum class Alive {
  rounds,    ///< process p of every form; then process p + 1 of every form
  together,  ///< all processes of all forms: weights are held forms × processes times
  one,       ///< a single process: for models of which two do not fit. Drift of the machine does not cancel.
};
std::string_view to_string(Alive alive);

/// What a person writes to have forms timed. In JSON:
///
///     {"schema": "assay.window-plan/1", "name": "…", "device": "cpu",
///      "items": [{"name", "model", "base"?, "request"}
///                | {"name", "shape", "row_tokens", "questions"} | {"name", "op", "sizes": {…}}, each with
///                "settling_runs"? and "calls"?],
///      "forms": [{"name", "precision"?, "ops"?: {op: form}, "threads"?, "call_tokens"?}],
///      "processes"?: 2, "repetitions"?: 12, "warm_ups"?: 1, "alive"?: "rounds",
///      "timeout_seconds"?: 600, "limits"?: {…}, "rule"?: {…}, "ceilings"?: {…}}
///
/// Paths are relative to the plan's folder.
struct WindowPlan {
  std::string file;
  std::string sha256;  ///< of the file's bytes
  std::string text;    ///< those bytes, as workers are given them
  std::string name;
  std::string device;
  std::vector<WindowItem> items;
  std::vector<WindowForm> forms;
  std::size_t processes = 2;     ///< fresh processes a form, at least 2
  std::size_t repetitions = 12;  ///< timed stretches of an item in a process: a multiple of the order's cycle
  std::size_t warm_ups = 1;      ///< untimed runs of an item when a process starts
  Alive alive = Alive::rounds;
  double timeout_seconds = 600;  ///< for one answer of a worker, loading included
  EnvironmentLimits limits;
  PairRule rule;
  StatedCeilings ceilings;
};

/// Throws Error(malformed | invalid_argument) naming file and field for anything that is not as said above:
/// unknown fields, names that occur twice, numbers out of range, repetitions that do not balance the order;
/// Error(unsupported) for a device that nothing here can time; Error(mismatch | unsupported) for an op, a
/// form or a shape that this program or machine does not have.
WindowPlan read_window_plan(const std::filesystem::path& file);

/// The same from text already read; `file` stands in errors, and its folder is that of the paths.
WindowPlan parse_window_plan(std::string_view text, const std::string& file);

}  // namespace assay::lab
