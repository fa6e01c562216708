#include "device/thread_pool.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/tests/expect_error.hpp"
#include "base/tests/sanitized.hpp"

namespace assay::device {
namespace {

/// Bytes of address space that this process has taken.
std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

class ThreadPoolOf : public testing::TestWithParam<std::size_t> {};

TEST_P(ThreadPoolOf, RunsEveryIndexOnceByAKnownWorker) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  for (const std::size_t count : {0ul, 1ul, 2ul, 3ul, 7ul, 1000ul}) {
    std::vector<int> runs(count, 0);
    std::atomic<bool> known{true};
    pool.parallel_for(count, [&](std::size_t index, std::size_t worker) {
      ++runs[index];
      if (worker >= pool.size()) known = false;
    });
    EXPECT_EQ(runs, std::vector<int>(count, 1));
    EXPECT_TRUE(known);
  }
}

TEST_P(ThreadPoolOf, ManyShortRegionsSeeEachOthersWrites) {
  ThreadPool pool(GetParam());
  std::vector<std::uint64_t> values(64, 0);
  for (std::uint64_t round = 1; round <= 500; ++round) {
    pool.parallel_for(values.size(), [&](std::size_t index, std::size_t /*worker*/) {
      // Reads what another worker may have written in the region before.
      values[index] = values[index] + (round == 1 ? index : 1);
    });
  }
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i + 499);
}

TEST_P(ThreadPoolOf, WorkersThatWentToSleepWakeAgain) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::atomic<int> sum{0};
    pool.parallel_for(20, [&](std::size_t index, std::size_t) { sum += static_cast<int>(index); });
    EXPECT_EQ(sum, 190);
  }
}

TEST_P(ThreadPoolOf, OneWorkerNumberIsNeverInTwoPlacesAtOnce) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> inside(pool.size());
  std::atomic<bool> alone{true};
  const auto enter = [&](std::size_t worker) {
    if (inside[worker].fetch_add(1) != 0) alone = false;
    std::this_thread::yield();
    inside[worker].fetch_sub(1);
  };
  pool.parallel_for(200, [&](std::size_t, std::size_t outer) {
    enter(outer);
    pool.parallel_for(3, [&](std::size_t, std::size_t nested) {
      EXPECT_EQ(nested, outer);
      enter(nested);
    });
  });
  EXPECT_TRUE(alone);
}

TEST_P(ThreadPoolOf, ANestedCallOfAnotherPoolRunsOnTheCallingThread) {
  ThreadPool outer(GetParam());
  ThreadPool inner(2);
  std::atomic<int> runs{0};
  outer.parallel_for(8, [&](std::size_t, std::size_t) {
    const auto self = std::this_thread::get_id();
    inner.parallel_for(5, [&](std::size_t, std::size_t worker) {
      if (outer.size() > 1) {
        EXPECT_EQ(std::this_thread::get_id(), self);
      }
      EXPECT_LT(worker, inner.size());
      ++runs;
    });
  });
  EXPECT_EQ(runs, 40);
}

TEST_P(ThreadPoolOf, TheFirstFailureIsRethrownAndThePoolGoesOn) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> runs{0};
    EXPECT_THROW(pool.parallel_for(1000,
                                   [&](std::size_t index, std::size_t) {
                                     ++runs;
                                     if (index % 10 == 3) throw std::runtime_error("index");
                                   }),
                 std::runtime_error);
    EXPECT_LT(runs, 1000);
    runs = 0;
    pool.parallel_for(100, [&](std::size_t, std::size_t) { ++runs; });
    EXPECT_EQ(runs, 100);
  }
}

TEST_P(ThreadPoolOf, CallersFromSeveralThreadsTakeTurns) {
  ThreadPool pool(GetParam());
  std::vector<std::thread> callers;
  std::vector<std::uint64_t> sums(4, 0);
  for (std::size_t caller = 0; caller < sums.size(); ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 30; ++round) {
        std::vector<std::uint64_t> squares(50);
        pool.parallel_for(squares.size(),
                          [&](std::size_t index, std::size_t) { squares[index] = index * index; });
        sums[caller] += std::accumulate(squares.begin(), squares.end(), std::uint64_t{0});
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<std::uint64_t>(4, 30 * 40425));
}

TEST_P(ThreadPoolOf, IdlePoolsEndAtOnce) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolOf, testing::Values(1, 2, 3, 8));

TEST(ThreadPool, ZeroMeansTheCoresThereAre) {
  ThreadPool pool;
  EXPECT_GE(pool.size(), 1u);
  EXPECT_LE(pool.size(), 1024u);
}

TEST(ThreadPool, RefusesAnAbsurdNumberOfThreads) {
  expect_error(ErrorKind::invalid_argument, "at most 1024", [] { ThreadPool pool(1025); });
  expect_error(ErrorKind::invalid_argument, "threads", [] { ThreadPool pool(static_cast<std::size_t>(-1)); });
}

TEST(ThreadPoolDeathTest, ASystemWithoutMoreThreadsIsAnErrorNotAnAbort) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own allocations abort where the address space is bounded";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  // Stacks of 1,023 threads do not fit in the address space that is left, so some thread cannot start.
  const auto attempt = [] {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_AS, &limit) != 0) std::exit(3);
    limit.rlim_cur = address_space() + (std::size_t{64} << 20);
    if (::setrlimit(RLIMIT_AS, &limit) != 0) std::exit(3);
    try {
      ThreadPool pool(1024);
    } catch (const Error& error) {
      std::exit(error.kind() == ErrorKind::io ? 0 : 1);
    }
    std::exit(2);
  };
  EXPECT_EXIT(attempt(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace assay::device
