#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/receipt/receipt.hpp"
#include "lab/window/environment.hpp"
#include "lab/window/lock.hpp"
#include "lab/window/pairs.hpp"
#include "lab/window/plan.hpp"
#include "lab/window/samples.hpp"
#include "lab/window/signals.hpp"

namespace assay::lab {

struct WindowOptions {
  LockOptions lock;
  /// What a worker process is; it must speak as lab/window/worker.hpp says.
  std::vector<std::string> worker_command = {"/proc/self/exe", "window", "worker"};
  std::function<void(std::string_view)> progress = nullptr;
};

/// What a form was in this window.
struct FormRun {
  std::string forms;  ///< "op=name op=name …"
  std::size_t threads = 0;
  std::size_t resident_bytes = 0;  ///< of its first process, loaded and warmed up
};

struct ItemRun {
  std::string model;           ///< its identity; "synthetic <shape>"; empty for an op
  std::vector<WorkCost> cost;  ///< by form
};

/// Times of a form on an item.
struct Cell {
  std::size_t item = 0;
  std::size_t form = 0;
  Summary wall;
  double floor_seconds = 0;  ///< 0: none known
  bool suspicious = false;   ///< the median is below the floor
};

struct PairCell {
  std::size_t item = 0;
  std::size_t baseline = 0;   ///< form
  std::size_t candidate = 0;  ///< form, later in the plan
  PairResult result;
};

struct WindowReport {
  WindowPlan plan;
  std::string id;       ///< no two windows have the same
  std::string started;  ///< UTC
  double seconds = 0;
  std::vector<FormRun> forms;
  std::vector<ItemRun> items;
  EnvironmentRecord environment;
  std::vector<std::string> contention;  ///< why it is contended; none: clean
  std::size_t dropped = 0;              ///< samples of a throttled device
  std::vector<Sample> samples;
  std::vector<Cell> cells;
  std::vector<PairCell> pairs;
};

/// Takes the device's lock, watches the surroundings, starts workers, times every turn of the plan's schedule
/// and judges. Ends its workers however it ends. Throws Error(cancelled) once a signal asks to stop;
/// Error(limit_exceeded) where the processes that would live at once do not fit the memory that is available;
/// what the lock and the workers throw.
WindowReport run_window(const WindowPlan& plan, const WindowOptions& options, const StopSignals& signals);

/// Fills in cells and pairs from the samples.
void judge_window(WindowReport& report);

/// The window receipt. Its subject: {"plan": {"name", "sha256", "file"}, "device", "items": [{"name", "model"
/// | "op", "sizes" …, "settling_runs", "calls"}], "forms": [{"name", "precision", "forms", "threads",
/// "call_tokens"}]}. Its result: {"window": {"id", "started", "seconds"}, "clean", "contention": [reason],
/// "environment", "limits", "rule", "ceilings", "order": {…}, "dropped_samples", "times": [{"item", "form",
/// "median", "p10", "p90", "spread", "count", "floor", "suspicious"}], "pairs": [{"item", "baseline",
/// "candidate", "pairs", "wins", "losses", "ratio", "interval", "verdict", "suspicious", "why"}], "samples":
/// [{"item", "form", "process", "repetition", "order", "start", "wall_seconds", "event_seconds"}]}. Times are
/// in seconds; items and forms are named.
nlohmann::ordered_json to_receipt(const WindowReport& report);

/// For people: times, pairs, and what the surroundings were.
std::string to_text(const nlohmann::ordered_json& receipt);

/// Lets through receipts of one window only. Throws Error(mismatch) naming both windows where they are two,
/// for times of different windows do not compare; Error(mismatch) for a receipt of another kind.
void require_one_window(const Receipt& a, const Receipt& b);

}  // namespace assay::lab
