#include "cli/stop_signals.hpp"

#include <unistd.h>

#include <chrono>
#include <ctime>

#include "audio/output_file.hpp"

namespace assay::cli {
namespace {

constexpr int kStopWithinMilliseconds = 800;
constexpr int kTickMilliseconds = 20;

sigset_t stopping_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  // nohup asks that a closed terminal should not end the program.
  struct sigaction before {};
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
    ::sigaddset(&signals, SIGHUP);
  return signals;
}

/// Whether one came within a tick.
bool signal_came() {
  const sigset_t signals = stopping_signals();
  const timespec tick{0, kTickMilliseconds * 1'000'000L};
  return ::sigtimedwait(&signals, nullptr, &tick) > 0;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t signals = stopping_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
  watcher_ = std::jthread([this](const std::stop_token& ended) { watch(ended); });
}

StopSignals::~StopSignals() {
  watcher_.request_stop();
  watcher_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignals::watch(const std::stop_token& ended) {
  while (!ended.stop_requested() && !received_) {
    if (!signal_came()) continue;
    received_ = true;
    source_.request_stop();
  }
  for (int waited = 0; !ended.stop_requested(); waited += kTickMilliseconds) {
    if (waited >= kStopWithinMilliseconds) {
      audio::remove_unfinished_files();
      ::_exit(kStoppedBySignal);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kTickMilliseconds));
  }
}

}  // namespace assay::cli
