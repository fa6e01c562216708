#include "lab/cost/ceilings.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cmath>
#include <exception>
#include <iterator>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "device/memory.hpp"
#include "lab/cost/peak_kernels.hpp"
#include "lab/json_reader.hpp"
#include "lab/receipt/machine.hpp"

namespace assay::lab {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr double kRepetitionSeconds = 0.02;
constexpr std::size_t kMinRepetitions = 3;
constexpr std::size_t kMaxRepetitions = 100;
constexpr std::size_t kEveryCountUpTo = 8;
constexpr std::size_t kMostMemory = std::size_t{1} << 30;
constexpr std::array kLevels{MemoryLevel::l1, MemoryLevel::l2, MemoryLevel::l3, MemoryLevel::memory};
constexpr std::array kAccesses{MemoryAccess::read, MemoryAccess::write, MemoryAccess::copy};
constexpr std::array kLevelNames{"L1", "L2", "L3", "memory"};
constexpr std::array kAccessNames{"read", "write", "copy"};

[[noreturn]] void bad_option(std::string_view flag, std::size_t found, std::size_t low, std::size_t high) {
  throw Error(ErrorKind::invalid_argument,
              {std::string(flag), fmt::format("{}", found), fmt::format("{} to {}", low, high)});
}

/// 1, 2, 3 … while they are few, then doubling, and the most in any case.
std::vector<std::size_t> thread_counts(const CeilingsOptions& options) {
  const std::size_t cores = this_machine().cores;
  const std::size_t most = options.threads == 0 ? cores : options.threads;
  if (most > cores) bad_option("--threads", most, 1, cores);
  if (options.only) return {most};
  std::vector<std::size_t> counts;
  for (std::size_t n = 1; n < most; n = n < kEveryCountUpTo ? n + 1 : 2 * n) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

/// One repetition of a thread's part; returns the work done in it.
using Work = std::function<double()>;
/// Makes a thread's part, on that thread, so that its memory lies near its core.
using MakeWork = std::function<Work(std::size_t thread)>;

/// Runs a part a thread, all beginning a repetition together, and takes the work of all of them over the time
/// from the first to begin to the last to end.
class Team {
 public:
  Team(std::size_t threads, std::size_t repetitions)
      : threads_(threads), repetitions_(repetitions), together_(static_cast<std::ptrdiff_t>(threads)) {}

  std::vector<double> rates(const MakeWork& make) {
    records_.assign(threads_ * repetitions_, {});
    {
      std::vector<std::jthread> others;
      others.reserve(threads_ - 1);
      for (std::size_t t = 1; t < threads_; ++t) start(others, t, make);
      run(0, make);
    }
    if (failure_) std::rethrow_exception(failure_);
    std::vector<double> rates;
    for (std::size_t r = 0; r < repetitions_; ++r) rates.push_back(rate(r));
    return rates;
  }

 private:
  struct Record {
    Clock::time_point begin;
    Clock::time_point end;
    double work = 0;
  };

  void start(std::vector<std::jthread>& others, std::size_t thread, const MakeWork& make) {
    try {
      others.emplace_back([this, thread, &make] { run(thread, make); });
    } catch (const std::system_error& error) {
      fail(std::make_exception_ptr(
          Error(ErrorKind::io, {"threads", error.what(), counted(threads_, "thread")})));
      together_.arrive_and_drop();
    }
  }

  void run(std::size_t thread, const MakeWork& make) {
    Work work;
    try {
      work = make(thread);
    } catch (...) {
      fail(std::current_exception());
    }
    together_.arrive_and_wait();
    // Everybody has arrived, so everybody sees the same failure or none, and none waits for another.
    if (failure_) return;
    for (std::size_t r = 0; r < repetitions_; ++r) {
      together_.arrive_and_wait();
      Record& record = records_[r * threads_ + thread];
      record.begin = Clock::now();
      record.work = work();
      record.end = Clock::now();
    }
  }

  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }

  double rate(std::size_t repetition) const {
    const auto first = records_.begin() + static_cast<std::ptrdiff_t>(repetition * threads_);
    const auto last = first + static_cast<std::ptrdiff_t>(threads_);
    Clock::time_point begin = first->begin;
    Clock::time_point end = first->end;
    double work = 0;
    std::for_each(first, last, [&](const Record& record) {
      begin = std::min(begin, record.begin);
      end = std::max(end, record.end);
      work += record.work;
    });
    return work / std::chrono::duration<double>(end - begin).count();
  }

  std::size_t threads_;
  std::size_t repetitions_;
  std::barrier<> together_;
  std::vector<Record> records_;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

/// How much of `work(amount)` makes a repetition long enough to be timed; at least 1.
template <class RunAmount>
std::size_t calibrate(const RunAmount& work) {
  for (std::size_t amount = 1;; amount *= 2) {
    const auto begin = Clock::now();
    work(amount);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (seconds < kRepetitionSeconds / 4) continue;
    const double scaled = static_cast<double>(amount) * kRepetitionSeconds / seconds;
    return std::max<std::size_t>(1, static_cast<std::size_t>(scaled));
  }
}

PeakCeiling measure_peak(const PeakKernel& kernel, std::size_t rounds, std::size_t threads,
                         std::size_t repetitions) {
  const std::vector<double> rates = Team(threads, repetitions).rates([&](std::size_t /*thread*/) -> Work {
    return [&] { return kernel.run(rounds); };
  });
  return {std::string(kernel.name), kernel.precision, threads, summarize(rates)};
}

/// Floats of a thread's part of a working set.
std::size_t working_set_floats(MemoryLevel level, const CacheSizes& caches, std::size_t threads) {
  std::size_t bytes = 0;
  switch (level) {
    case MemoryLevel::l1:
      bytes = caches.l1 / 2;
      break;
    case MemoryLevel::l2:
      bytes = caches.l2 / 2;
      break;
    case MemoryLevel::l3:
      bytes = std::min(8 * caches.l2, caches.l3 / 2 / threads);
      break;
    case MemoryLevel::memory: {
      const auto free = static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) *
                        static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
      bytes = std::min({2 * caches.l3, kMostMemory, free / 4}) / threads;
      break;
    }
  }
  // A copy halves the set, and each half is whole grains.
  const std::size_t grain = 2 * kBandwidthGrain;
  return std::max<std::size_t>(1, bytes / sizeof(float) / grain) * grain;
}

/// Bytes moved by so many passes of one kind over a set.
double pass_over(MemoryAccess access, std::span<float> set, std::size_t passes, bool streaming) {
  const std::size_t half = set.size() / 2;
  switch (access) {
    case MemoryAccess::read:
      read_memory(set.data(), set.size(), passes);
      break;
    case MemoryAccess::write:
      write_memory(set.data(), set.size(), passes, streaming);
      break;
    case MemoryAccess::copy:
      copy_memory(set.data(), set.data() + half, half, passes, streaming);
      break;
  }
  return static_cast<double>(set.size_bytes()) * static_cast<double>(passes);
}

BandwidthCeiling measure_bandwidth(MemoryLevel level, MemoryAccess access, const CacheSizes& caches,
                                   std::size_t threads, std::size_t repetitions) {
  const std::size_t count = working_set_floats(level, caches, threads);
  const bool streaming = level == MemoryLevel::memory && access != MemoryAccess::read;
  std::vector<device::Buffer<float>> sets(threads);
  std::vector<std::size_t> passes(threads);
  const std::vector<double> rates = Team(threads, repetitions).rates([&](std::size_t thread) -> Work {
    sets[thread] = device::Buffer<float>(count);
    const std::span<float> set = sets[thread].span();
    std::fill(set.begin(), set.end(), 1.0f);
    passes[thread] = calibrate([&](std::size_t amount) { pass_over(access, set, amount, streaming); });
    // As many passes on every thread, so that all end together. Work begins when every thread has calibrated.
    return [=, &passes] {
      return pass_over(access, set, *std::min_element(passes.begin(), passes.end()), streaming);
    };
  });
  return {level, access, threads, threads * count * sizeof(float), streaming, summarize(rates)};
}

std::size_t cache_size(int name, std::size_t usual) {
  const long size = ::sysconf(name);
  return size > 0 ? static_cast<std::size_t>(size) : usual;
}

Json summary_json(const Summary& summary) {
  return {{"median", summary.median}, {"min", summary.min}, {"max", summary.max},
          {"p10", summary.p10},       {"p90", summary.p90}, {"spread", summary.spread},
          {"count", summary.count}};
}

Summary read_summary(JsonReader json) {
  Summary summary;
  summary.median = json.required<double>("median");
  summary.min = json.required<double>("min");
  summary.max = json.required<double>("max");
  summary.p10 = json.required<double>("p10");
  summary.p90 = json.required<double>("p90");
  summary.spread = json.required<double>("spread");
  summary.count = json.required<std::uint64_t>("count");
  json.finish();
  if (summary.median > 0) return summary;
  throw Error(ErrorKind::malformed,
              {json.where("median"), fmt::format("{}", summary.median), "a rate, over 0"});
}

/// The index of a name among those known.
template <std::size_t count>
std::size_t read_name(JsonReader& json, const std::string& field,
                      const std::array<const char*, count>& names) {
  const auto name = json.required<std::string>(field);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw Error(ErrorKind::malformed, {json.where(field), fmt::format("\"{}\"", name),
                                     fmt::format("one of {}", fmt::join(names, ", "))});
}

PeakCeiling read_peak(JsonReader json) {
  PeakCeiling peak;
  peak.kernel = json.required<std::string>("kernel");
  peak.precision = static_cast<ops::Precision>(read_name<2>(json, "precision", {"fp32", "bf16"}));
  peak.threads = json.required<std::uint64_t>("threads");
  peak.operations_per_second = read_summary(json.required<JsonReader>("operations_per_second"));
  json.finish();
  return peak;
}

BandwidthCeiling read_bandwidth(JsonReader json) {
  BandwidthCeiling bandwidth;
  bandwidth.level = static_cast<MemoryLevel>(read_name(json, "level", kLevelNames));
  bandwidth.access = static_cast<MemoryAccess>(read_name(json, "access", kAccessNames));
  bandwidth.threads = json.required<std::uint64_t>("threads");
  bandwidth.bytes = json.required<std::uint64_t>("working_set_bytes");
  bandwidth.streaming = json.required<bool>("streaming");
  bandwidth.bytes_per_second = read_summary(json.required<JsonReader>("bytes_per_second"));
  json.finish();
  return bandwidth;
}

CacheSizes read_caches(JsonReader json) {
  CacheSizes caches;
  caches.l1 = json.required<std::uint64_t>("l1_bytes");
  caches.l2 = json.required<std::uint64_t>("l2_bytes");
  caches.l3 = json.required<std::uint64_t>("l3_bytes");
  json.finish();
  return caches;
}

[[noreturn]] void not_measured(std::string_view what, std::size_t threads) {
  throw Error(ErrorKind::missing, {"ceilings", fmt::format("no {} with {}", what, counted(threads, "thread")),
                                   "one measured with the run's number of threads",
                                   fmt::format("run `assay lab ceilings --threads {}`", threads)});
}

}  // namespace

std::string_view to_string(MemoryLevel level) {
  return kLevelNames[static_cast<std::size_t>(level)];
}

std::string_view to_string(MemoryAccess access) {
  return kAccessNames[static_cast<std::size_t>(access)];
}

CacheSizes cache_sizes() {
  CacheSizes caches;
  caches.l1 = cache_size(_SC_LEVEL1_DCACHE_SIZE, std::size_t{32} << 10);
  caches.l2 = std::max(caches.l1, cache_size(_SC_LEVEL2_CACHE_SIZE, std::size_t{1} << 20));
  caches.l3 = std::max(caches.l2, cache_size(_SC_LEVEL3_CACHE_SIZE, std::size_t{32} << 20));
  return caches;
}

double Ceilings::peak(ops::Precision precision, std::size_t threads) const {
  double best = 0;
  for (const PeakCeiling& peak : peaks) {
    const bool usable = peak.precision == precision || peak.precision == ops::Precision::fp32;
    if (usable && peak.threads == threads) best = std::max(best, peak.operations_per_second.max);
  }
  if (best == 0) not_measured("peak", threads);
  return best;
}

const BandwidthCeiling& Ceilings::bandwidth(MemoryLevel level, MemoryAccess access,
                                            std::size_t threads) const {
  const auto found = std::find_if(bandwidths.begin(), bandwidths.end(), [&](const BandwidthCeiling& b) {
    return b.level == level && b.access == access && b.threads == threads;
  });
  if (found == bandwidths.end()) {
    not_measured(fmt::format("{} bandwidth of {}", to_string(access), to_string(level)), threads);
  }
  return *found;
}

MemoryLevel Ceilings::level_of(double bytes, std::size_t threads) const {
  const auto cores = static_cast<double>(threads);
  if (bytes <= cores * static_cast<double>(caches.l1)) return MemoryLevel::l1;
  if (bytes <= cores * static_cast<double>(caches.l2)) return MemoryLevel::l2;
  return bytes <= static_cast<double>(caches.l3) ? MemoryLevel::l3 : MemoryLevel::memory;
}

Ceilings measure_ceilings(const CeilingsOptions& options,
                          const std::function<void(std::string_view)>& progress) {
  const std::vector<std::size_t> counts = thread_counts(options);
  if (options.repetitions < kMinRepetitions || options.repetitions > kMaxRepetitions) {
    bad_option("--repetitions", options.repetitions, kMinRepetitions, kMaxRepetitions);
  }
  const auto begin = Clock::now();
  Ceilings ceilings;
  ceilings.caches = cache_sizes();
  for (const PeakKernel& kernel : peak_kernels()) {
    if (!device::cpu_supports(kernel.needs)) continue;
    const std::size_t rounds = calibrate(kernel.run);
    for (const std::size_t threads : counts) {
      progress(fmt::format("{}, {}", kernel.name, counted(threads, "thread")));
      ceilings.peaks.push_back(measure_peak(kernel, rounds, threads, options.repetitions));
    }
  }
  for (const MemoryLevel level : kLevels) {
    for (const std::size_t threads : counts) {
      progress(fmt::format("bandwidth of {}, {}", to_string(level), counted(threads, "thread")));
      for (const MemoryAccess access : kAccesses) {
        ceilings.bandwidths.push_back(
            measure_bandwidth(level, access, ceilings.caches, threads, options.repetitions));
      }
    }
  }
  ceilings.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return ceilings;
}

Json ceilings_subject(const Ceilings& ceilings, const CeilingsOptions& options) {
  Json threads = Json::array();
  for (const PeakCeiling& peak : ceilings.peaks) {
    if (peak.kernel == ceilings.peaks.front().kernel) threads.push_back(peak.threads);
  }
  return {{"threads", std::move(threads)}, {"repetitions", options.repetitions}};
}

Json to_json(const Ceilings& ceilings) {
  Json peaks = Json::array();
  for (const PeakCeiling& peak : ceilings.peaks) {
    peaks.push_back({{"kernel", peak.kernel},
                     {"precision", ops::to_string(peak.precision)},
                     {"threads", peak.threads},
                     {"operations_per_second", summary_json(peak.operations_per_second)}});
  }
  Json bandwidths = Json::array();
  for (const BandwidthCeiling& bandwidth : ceilings.bandwidths) {
    bandwidths.push_back({{"level", to_string(bandwidth.level)},
                          {"access", to_string(bandwidth.access)},
                          {"threads", bandwidth.threads},
                          {"working_set_bytes", bandwidth.bytes},
                          {"streaming", bandwidth.streaming},
                          {"bytes_per_second", summary_json(bandwidth.bytes_per_second)}});
  }
  return {{"caches",
           {{"l1_bytes", ceilings.caches.l1},
            {"l2_bytes", ceilings.caches.l2},
            {"l3_bytes", ceilings.caches.l3}}},
          {"seconds", ceilings.seconds},
          {"peaks", std::move(peaks)},
          {"bandwidths", std::move(bandwidths)}};
}

std::string to_table(const Ceilings& ceilings) {
  fmt::memory_buffer out;
  const auto line = std::back_inserter(out);
  const auto percent = [](const Summary& s) { return 100 * (s.max - s.min) / s.median; };
  fmt::format_to(line, "{:<12} {:>9} {:>8} {:>12} {:>12} {:>8}\n", "arithmetic", "precision", "threads",
                 "TFLOP/s", "best", "spread");
  for (const PeakCeiling& peak : ceilings.peaks) {
    const Summary& rate = peak.operations_per_second;
    fmt::format_to(line, "{:<12} {:>9} {:>8} {:>12.3f} {:>12.3f} {:>7.1f}%\n", peak.kernel,
                   ops::to_string(peak.precision), peak.threads, rate.median * 1e-12, rate.max * 1e-12,
                   percent(rate));
  }
  fmt::format_to(line, "\n{:<12} {:>9} {:>8} {:>12} {:>12} {:>8} {:>16}\n", "memory", "access", "threads",
                 "GB/s", "best", "spread", "working set KiB");
  for (const BandwidthCeiling& bandwidth : ceilings.bandwidths) {
    const Summary& rate = bandwidth.bytes_per_second;
    fmt::format_to(line, "{:<12} {:>9} {:>8} {:>12.1f} {:>12.1f} {:>7.1f}% {:>16}\n",
                   to_string(bandwidth.level), to_string(bandwidth.access), bandwidth.threads,
                   rate.median * 1e-9, rate.max * 1e-9, percent(rate), bandwidth.bytes / 1024);
  }
  fmt::format_to(line, "\nmedians; spread is best minus worst over the median; measured in {:.1f} s\n",
                 ceilings.seconds);
  return fmt::to_string(out);
}

Ceilings read_ceilings(const Receipt& receipt) {
  const std::string file = receipt.file.string();
  if (receipt.kind != ReceiptKind::ceilings) {
    throw Error(ErrorKind::mismatch,
                {file, fmt::format("a receipt of kind {}", to_string(receipt.kind)), "one of kind ceilings",
                 "`assay lab ceilings --receipts DIR` makes one"});
  }
  const JsonReader root(JsonPlace(std::make_shared<nlohmann::json>(receipt.body), file, ""));
  JsonReader body = root;
  const auto device = body.required<JsonReader>("device").required<std::string>("id");
  if (const std::string here = this_machine().id; device != here) {
    throw Error(ErrorKind::mismatch, {file + ": device.id", device, here,
                                      "ceilings hold for the device that they were measured on"});
  }
  auto result = body.required<JsonReader>("result");
  Ceilings ceilings;
  ceilings.caches = read_caches(result.required<JsonReader>("caches"));
  ceilings.seconds = result.required<double>("seconds");
  for (JsonReader& peak : result.required<std::vector<JsonReader>>("peaks")) {
    ceilings.peaks.push_back(read_peak(std::move(peak)));
  }
  for (JsonReader& bandwidth : result.required<std::vector<JsonReader>>("bandwidths")) {
    ceilings.bandwidths.push_back(read_bandwidth(std::move(bandwidth)));
  }
  result.finish();
  return ceilings;
}

}  // namespace assay::lab
