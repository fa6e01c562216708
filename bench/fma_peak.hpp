#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>

#include "device/thread_pool.hpp"

namespace assay::bench {

/// Runs `steps` fp32 multiply-adds on each of several vectors of registers, the widest that this machine has.
/// Returns the number of floating-point operations done.
double fma_from_registers(std::size_t steps);

/// The benchmark that others are read against: fp32 multiply-adds from registers on all threads at once, with
/// the counter `flops`. Times compare only inside one run.
void fma_peak(benchmark::State& state, device::ThreadPool& threads);

}  // namespace assay::bench
