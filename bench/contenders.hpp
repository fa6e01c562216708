#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/thread_pool.hpp"

/// What benchmarks that print their own tables share.
namespace assay::bench {

/// One way to do the same work.
struct Contender {
  std::string name;
  double operations;
  std::function<void()> run;
  std::vector<double> seconds = {};  ///< of each round

  double best() const;
  double median() const;
  /// 1.4826 times the median distance from the median: a standard deviation that outliers do not move.
  double spread() const;
};

/// Runs all contenders in turn, `rounds` times: another process's load then takes from all alike.
void measure(std::vector<Contender>& contenders, std::size_t rounds, clockid_t clock);

/// Values in [-1, 1) that are the same everywhere.
void fill(float* values, std::size_t count, std::uint32_t seed);

/// The floor: as many multiply-adds as the work has, on registers alone, at fp32 and at bf16, so that they
/// meet the same clock and the same neighbours. Nothing where this machine has no AVX-512.
void add_register_peaks(std::vector<Contender>& contenders, device::ThreadPool& threads, double operations);

}  // namespace assay::bench
