#include "lab/window/signals.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.hpp"

namespace assay::lab {
namespace {

std::atomic<int> event_descriptor{-1};
std::atomic<bool> stop_requested{false};

void on_signal(int) {
  const int code = errno;
  stop_requested.store(true);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_descriptor.load(), &one, sizeof one);
  errno = code;
}

}  // namespace

StopSignals::StopSignals() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) throw Error(ErrorKind::io, {.where = "eventfd", .found = std::strerror(errno)});
  stop_requested.store(false);
  event_descriptor.store(descriptor_);
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  event_descriptor.store(-1);
  ::close(descriptor_);
}

bool StopSignals::requested() const noexcept {
  return stop_requested.load();
}

}  // namespace assay::lab
