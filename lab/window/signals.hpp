#pragma once

#include <csignal>

namespace assay::lab {

/// While one lives, SIGINT, SIGTERM and SIGHUP ask the program to stop instead of ending it, so that it can
/// end its workers and leave nothing half done. One at a time; what was set before comes back with its end.
class StopSignals {
 public:
  /// Throws Error(io) where the system gives no descriptor.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool requested() const noexcept;
  /// Readable, for poll(2), from the first signal on.
  int descriptor() const noexcept { return descriptor_; }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  int descriptor_ = -1;
  struct sigaction before_[3] = {};
};

}  // namespace assay::lab
