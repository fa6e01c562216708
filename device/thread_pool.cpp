#include "device/thread_pool.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace assay::device {
namespace {

constexpr std::size_t kMaxThreads = 1024;
// A layer is a chain of short parallel regions: waking from a futex between them costs more than most of
// them take, so a worker spins this many times first.
constexpr int kSpins = 4000;
constexpr std::size_t kCacheLine = 64;

std::size_t available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails where the machine has more processors than the set has bits.
  const bool known = ::sched_getaffinity(0, sizeof set, &set) == 0;
  const auto cores = known ? static_cast<std::size_t>(CPU_COUNT(&set)) : std::thread::hardware_concurrency();
  return std::clamp<std::size_t>(cores, 1, kMaxThreads);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

struct ThreadPool::State {
  struct Job {
    Function function = nullptr;
    const void* context = nullptr;
    std::size_t count = 0;
  };

  std::mutex turn;  ///< held by the one call that runs
  Job job;
  // Every worker writes `next` for every index; those that wait read `generation`.
  alignas(kCacheLine) std::atomic<std::size_t> next{0};
  alignas(kCacheLine) std::atomic<std::size_t> busy{0};
  alignas(kCacheLine) std::atomic<std::uint64_t> generation{0};
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::exception_ptr failure;
  std::vector<std::thread> threads;

  void start(std::size_t workers) {
    threads.reserve(workers);
    for (std::size_t worker = 1; worker <= workers; ++worker) {
      threads.emplace_back([this, worker] { serve(worker); });
    }
  }

  void stop() noexcept {
    {
      const std::lock_guard lock(mutex);
      stopping.store(true);
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }

  void work(std::size_t worker);
  bool wait_for_work(std::uint64_t seen);
  void serve(std::size_t worker);
  void run_together(const Job& wanted);
};

namespace {

/// The region that this thread is inside of, for nested calls.
struct Region {
  const void* pool = nullptr;
  std::size_t worker = 0;
};
thread_local Region region;

}  // namespace

void ThreadPool::State::work(std::size_t worker) {
  region = {this, worker};
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
  region = {};
}

bool ThreadPool::State::wait_for_work(std::uint64_t seen) {
  const auto ready = [&] { return generation.load() != seen || stopping.load(); };
  for (int i = 0; i < kSpins && !ready(); ++i) relax();
  if (!ready()) {
    std::unique_lock lock(mutex);
    wake.wait(lock, ready);
  }
  return !stopping.load();
}

void ThreadPool::State::serve(std::size_t worker) {
  std::uint64_t seen = 0;
  while (wait_for_work(seen)) {
    seen = generation.load();
    work(worker);
    busy.fetch_sub(1);
  }
}

void ThreadPool::State::run_together(const Job& wanted) {
  const std::lock_guard exclusive(turn);
  {
    const std::lock_guard lock(mutex);
    job = wanted;
    failure = nullptr;
    next.store(0, std::memory_order_relaxed);
    // Every worker takes part in every generation, if only to find nothing left, so none can see a later job.
    busy.store(threads.size());
    generation.fetch_add(1);
  }
  wake.notify_all();
  work(0);
  // The tail is as long as one work item: spin, then give the core away.
  for (int spins = 0; busy.load() != 0; ++spins) {
    if (spins < kSpins) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
  if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
}

ThreadPool::ThreadPool(std::size_t threads) : state_(std::make_unique<State>()) {
  if (threads == 0) threads = available_cores();
  if (threads > kMaxThreads) {
    throw Error(ErrorKind::invalid_argument, {.where = "threads",
                                              .found = std::to_string(threads),
                                              .expected = "at most " + std::to_string(kMaxThreads)});
  }
  try {
    state_->start(threads - 1);
  } catch (const std::system_error& refusal) {
    state_->stop();
    throw Error(ErrorKind::io,
                {.where = "threads",
                 .found = "the system gives no " + std::to_string(threads) + ": " + refusal.what(),
                 .advice = "ask for fewer with --threads"});
  } catch (...) {
    state_->stop();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  state_->stop();
}

std::size_t ThreadPool::size() const noexcept {
  return state_->threads.size() + 1;
}

void ThreadPool::run(std::size_t count, Function function, const void* context) {
  if (count == 0) return;
  const bool nested = region.pool != nullptr;
  if (!nested && count > 1 && !state_->threads.empty()) {
    state_->run_together({function, context, count});
    return;
  }
  const std::size_t worker = region.pool == state_.get() ? region.worker : 0;
  for (std::size_t index = 0; index < count; ++index) function(context, index, worker);
}

}  // namespace assay::device
