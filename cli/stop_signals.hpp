#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

#include <signal.h>

namespace assay::cli {

/// The exit status of a program that an interrupt ended.
inline constexpr int kStoppedBySignal = 130;

/// While it lives, SIGINT, SIGTERM and SIGHUP ask for a stop instead of ending the program. What does not
/// stop within most of a second is ended then, its unfinished files taken away: Ctrl-C acts within a second
/// whatever runs.
///
/// To be made before any other thread, which inherit the mask.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool received() const { return received_; }

 private:
  void watch(const std::stop_token& ended);

  std::stop_source source_;
  std::atomic<bool> received_{false};
  sigset_t before_{};
  std::jthread watcher_;
};

}  // namespace assay::cli
