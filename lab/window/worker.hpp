#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/window/descriptor.hpp"

/// A window's worker processes. Parent and worker talk in lines of JSON, one answer a question:
///
///     {"plan": text, "file": name, "form": index}  → {"forms": "op=name …", "threads", "resident_bytes",
///                                                     "items": [{"model", "fp32_operations",
///                                                     "bf16_operations",
///                                                                "bytes"}]}
///     {"run": item, "timed": bool}                 → {"start": nanoseconds, "seconds"}
///
/// `start` is CLOCK_MONOTONIC's, which all processes of a machine share. A worker that cannot go on answers
/// {"error": {"kind", "message"}} and ends; it also ends when its input does, and dies with its parent.
namespace assay::lab {

struct WorkerOptions {
  std::vector<std::string> command;  ///< program and arguments
  std::string name;                  ///< for errors: "form vector, process 1"
  double timeout_seconds = 600;      ///< for one answer
  int stop_descriptor = -1;          ///< readable when the window is to stop
};

class WorkerProcess {
 public:
  /// Throws Error(io) where the system gives no process.
  explicit WorkerProcess(WorkerOptions options);
  /// Ends the process where it has not ended, and waits for it.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Asks and waits for the answer. Throws Error(io) saying how the worker ended, after what time it hung, or
  /// what it said instead of an answer; Error(cancelled) once the stop descriptor is readable; what the
  /// worker itself reported.
  nlohmann::json ask(const nlohmann::json& question);

  int pid() const noexcept { return pid_; }
  /// Kills and reaps.
  void end() noexcept;

 private:
  void send(std::string_view line);
  std::string receive();
  [[noreturn]] void throw_ended();

  WorkerOptions options_;
  Descriptor channel_;
  int pid_ = -1;
  std::string received_;
};

/// What `assay window worker` does: answers on `output` what is asked on `input` until that ends. Gives the
/// exit status.
int run_worker(int input, int output);

}  // namespace assay::lab
