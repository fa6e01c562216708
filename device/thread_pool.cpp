#include "device/thread_pool.hpp"

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace assay::device {
namespace {

constexpr std::size_t kMaxThreads = 1024;
// A layer is a chain of short parallel regions: waking from a futex between them costs more than most of
// them take, so a worker spins this many times first.
constexpr int kSpins = 4000;

std::size_t available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::size_t>(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

thread_local bool inside_parallel_region = false;

}  // namespace

struct ThreadPool::State {
  struct Job {
    Function function = nullptr;
    const void* context = nullptr;
    std::size_t count = 0;
  };

  Job job;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> busy{0};
  std::atomic<std::uint64_t> generation{0};
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::exception_ptr failure;
  std::vector<std::thread> threads;

  void work(std::size_t worker) {
    inside_parallel_region = true;
    while (true) {
      const std::size_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= job.count) break;
      try {
        job.function(job.context, index, worker);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next.store(job.count, std::memory_order_relaxed);
      }
    }
    inside_parallel_region = false;
  }

  bool wait_for_work(std::uint64_t seen) {
    const auto ready = [&] { return generation.load() != seen || stopping.load(); };
    for (int i = 0; i < kSpins && !ready(); ++i) relax();
    if (!ready()) {
      std::unique_lock lock(mutex);
      wake.wait(lock, ready);
    }
    return !stopping.load();
  }

  void serve(std::size_t worker) {
    std::uint64_t seen = 0;
    while (wait_for_work(seen)) {
      seen = generation.load();
      work(worker);
      busy.fetch_sub(1);
    }
  }
};

ThreadPool::ThreadPool(std::size_t threads) : state_(std::make_unique<State>()) {
  if (threads == 0) threads = available_cores();
  if (threads > kMaxThreads) {
    throw Error(ErrorKind::invalid_argument, {.where = "threads",
                                              .found = std::to_string(threads),
                                              .expected = "at most " + std::to_string(kMaxThreads)});
  }
  for (std::size_t worker = 1; worker < threads; ++worker) {
    state_->threads.emplace_back([state = state_.get(), worker] { state->serve(worker); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping.store(true);
  }
  state_->wake.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

std::size_t ThreadPool::size() const noexcept {
  return state_->threads.size() + 1;
}

void ThreadPool::run(std::size_t count, Function function, const void* context) {
  State& state = *state_;
  if (count == 0) return;
  if (inside_parallel_region || count == 1 || state.threads.empty()) {
    for (std::size_t index = 0; index < count; ++index) function(context, index, 0);
    return;
  }
  {
    const std::lock_guard lock(state.mutex);
    state.job = {function, context, count};
    state.failure = nullptr;
    state.next.store(0, std::memory_order_relaxed);
    state.busy.store(state.threads.size());
    state.generation.fetch_add(1);
  }
  state.wake.notify_all();
  state.work(0);
  // The tail is as long as one work item: spin, then give the core away.
  for (int spins = 0; state.busy.load() != 0; ++spins) {
    if (spins < kSpins) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
  if (state.failure) std::rethrow_exception(state.failure);
}

}  // namespace assay::device
