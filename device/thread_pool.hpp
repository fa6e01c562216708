#pragma once

#include <cstddef>
#include <memory>

namespace assay::device {

/// A fixed set of threads that run index ranges. Which thread runs which index is not fixed, so work
/// items must write disjoint results and hold their own reduction order: that is what keeps an answer's
/// bits independent of the number of threads.
///
/// Calls from several threads take turns. A call from inside a body runs its indices on the calling thread,
/// under that thread's worker number if the pool is the same one and as worker 0 if not.
class ThreadPool {
 public:
  /// `threads` counts the caller; 0 means one per available core. Throws Error(invalid_argument) over 1024,
  /// Error(io) when the system gives no more threads.
  explicit ThreadPool(std::size_t threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const noexcept;

  /// Calls `body(index, worker)` for every index in [0, count), worker in [0, size()). Returns when all are
  /// done; the first exception thrown by a body is rethrown, the remaining indices are skipped.
  template <class Body>
  void parallel_for(std::size_t count, const Body& body) {
    run(
        count,
        [](const void* context, std::size_t index, std::size_t worker) {
          (*static_cast<const Body*>(context))(index, worker);
        },
        &body);
  }

 private:
  using Function = void (*)(const void* context, std::size_t index, std::size_t worker);
  void run(std::size_t count, Function function, const void* context);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::device
