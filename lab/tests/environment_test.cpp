#include "lab/window/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::lab {
namespace {

constexpr const char* kStat =
    "cpu  1000 20 300 5000 40 5 6 70 900 0\ncpu0 500 10 150 2500 20 2 3 35 450 0\nintr 1 2\n";
constexpr const char* kProcess =
    "4242 (a (b) c) S 1 4242 4242 0 -1 4194560 100 0 0 0 700 50 30 2 20 0 3 0 123456 1000 200 184467\n";

TEST(Proc, TicksOfAllProcessorsCountEachOnce) {
  const CpuTicks ticks = parse_cpu_ticks(kStat);
  EXPECT_EQ(ticks.busy, 1000u + 20 + 300 + 5 + 6);
  EXPECT_EQ(ticks.idle, 5040u);
  EXPECT_EQ(ticks.steal, 70u);
  EXPECT_EQ(ticks.total(), 1331u + 5040 + 70);
}

TEST(Proc, LoadMemoryAndClocks) {
  const LoadAverage load = parse_load("0.52 1.25 2.00 3/456 7890\n");
  EXPECT_EQ(load.one_minute, 0.52);
  EXPECT_EQ(load.fifteen_minutes, 2);
  EXPECT_EQ(parse_available_memory("MemTotal: 100 kB\nMemAvailable:   2048 kB\n"), std::size_t{2} << 20);
  EXPECT_THAT(parse_cpu_megahertz("processor\t: 0\ncpu MHz\t\t: 2095.996\n\ncpu MHz\t\t: 800.5\n"),
              testing::ElementsAre(2095.996, 800.5));
  EXPECT_TRUE(parse_cpu_megahertz("processor : 0\nBogoMIPS : 50.00\n").empty());
}

TEST(Proc, AProcessNameMayHoldAnything) {
  const ProcessTicks process = parse_process(kProcess);
  EXPECT_EQ(process.pid, 4242);
  EXPECT_EQ(process.name, "a (b) c");
  EXPECT_EQ(process.own, 750u);
  EXPECT_EQ(process.children, 32u);
  EXPECT_EQ(process.started, 123456u);
}

TEST(Proc, TextThatTheKernelDoesNotWriteIsRefused) {
  for (const char* text : {"", "cpu", "cpu  1 2 3\n", "cpu  1 2 3 4 5 6 seven 8\n", "intr 1\n"}) {
    expect_error(ErrorKind::malformed, "/proc/stat", [&] { parse_cpu_ticks(text); });
  }
  for (const char* text : {"", "0.1 0.2", "a b c"}) {
    expect_error(ErrorKind::malformed, "/proc/loadavg", [&] { parse_load(text); });
  }
  for (const char* text : {"", "MemAvailable:", "MemTotal: 5 kB\n"}) {
    expect_error(ErrorKind::malformed, "/proc/meminfo", [&] { parse_available_memory(text); });
  }
  for (const char* text :
       {"", "1 name S", "1 (name) S 1 2", "x (n) S 1 1 1 0 -1 0 0 0 0 0 1 1 1 1 20 0 1 0 9"}) {
    expect_error(ErrorKind::malformed, "stat", [&] { parse_process(text); });
  }
}

TEST(Proc, ReadsASystemFromItsFiles) {
  const TemporaryDirectory folder;
  folder.write("proc/stat", kStat);
  folder.write("proc/loadavg", "0.10 0.20 0.30 1/2 3\n");
  folder.write("proc/meminfo", "MemAvailable: 10 kB\n");
  folder.write("proc/4242/stat", kProcess);
  folder.write("proc/self/stat", kProcess);
  folder.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2100000\n");
  folder.write("sys/devices/system/cpu/cpu10/cpufreq/scaling_cur_freq", "1000000\n");
  folder.write("sys/devices/system/cpu/cpufreq/boost", "1\n");
  folder.write("sys/class/thermal/thermal_zone0/temp", "45500\n");
  folder.write("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
  const ProcReader proc(folder / "proc", folder / "sys");
  EXPECT_EQ(proc.cpu_ticks().steal, 70u);
  EXPECT_EQ(proc.load().one_minute, 0.1);
  EXPECT_EQ(proc.available_memory(), 10240u);
  EXPECT_EQ(proc.tree_ticks(4242), 782u);
  EXPECT_EQ(proc.tree_ticks(4243), 0u) << "a process that is gone";
  EXPECT_EQ(proc.processes().size(), 1u);
  EXPECT_THAT(proc.cpu_megahertz(), testing::ElementsAre(2100, 1000));
  ASSERT_EQ(proc.temperatures().size(), 1u);
  EXPECT_EQ(proc.temperatures()[0].zone, "x86_pkg_temp");
  EXPECT_EQ(proc.temperatures()[0].celsius, 45.5);
}

/// Ticks of a machine of two processors, 100 a second each, in which this process and others take shares.
std::vector<EnvironmentTick> ticks_of(double own, double other, double steal, std::size_t count) {
  std::vector<EnvironmentTick> ticks;
  for (std::size_t i = 0; i < count; ++i) {
    const double total = 40.0 * static_cast<double>(i);
    const auto part = [&](double share) { return static_cast<std::uint64_t>(share * total); };
    EnvironmentTick tick;
    tick.seconds = 0.2 * static_cast<double>(i);
    tick.cpu = {.busy = part(own + other), .idle = part(1 - own - other - steal), .steal = part(steal)};
    tick.tree = part(own);
    tick.available_memory = std::size_t{1} << 30;
    ticks.push_back(tick);
  }
  return ticks;
}

EnvironmentRecord record_of(const std::vector<EnvironmentTick>& ticks) {
  EnvironmentRecord record;
  record.cores = 2;
  record.before.load.one_minute = 0.5;
  record.seconds = join_ticks(ticks, 1);
  record.whole = join_ticks(ticks, 1e9).at(0);
  return record;
}

TEST(Environment, SpansHoldTheSharesOfOthersAndOfTheHypervisor) {
  const std::vector<EnvironmentSpan> spans = join_ticks(ticks_of(0.5, 0.25, 0.1, 26), 1);
  ASSERT_EQ(spans.size(), 5u);
  for (const EnvironmentSpan& span : spans) {
    EXPECT_NEAR(span.seconds, 1, 1e-9);
    EXPECT_NEAR(span.other_cpu, 0.25, 0.02);
    EXPECT_NEAR(span.steal, 0.1, 0.02);
  }
  EXPECT_TRUE(join_ticks({}, 1).empty());
}

TEST(Environment, AQuietMachineIsClean) {
  EXPECT_TRUE(find_contention(record_of(ticks_of(0.9, 0.01, 0, 51)), {}).empty());
}

TEST(Environment, EveryLimitThatIsPassedIsNamed) {
  using testing::ElementsAre;
  using testing::HasSubstr;
  const EnvironmentLimits limits;
  EXPECT_THAT(find_contention(record_of(ticks_of(0.5, 0.2, 0, 51)), limits),
              ElementsAre(HasSubstr("other processes took 20.0 %")));
  EXPECT_THAT(find_contention(record_of(ticks_of(0.5, 0, 0.1, 51)), limits),
              ElementsAre(HasSubstr("hypervisor took 10.0 %")));
  EnvironmentRecord loaded = record_of(ticks_of(0.5, 0, 0, 51));
  loaded.before.load.one_minute = 1.5;
  EXPECT_THAT(find_contention(loaded, limits),
              ElementsAre(HasSubstr("load average 1.50 at the start, limit 1.00")));
  std::vector<EnvironmentTick> ticks = ticks_of(0.5, 0, 0, 51);
  ticks[20].available_memory = 1 << 20;
  EXPECT_THAT(find_contention(record_of(ticks), limits), ElementsAre(HasSubstr("1 MiB of memory")));
}

TEST(Environment, ABusySecondIsNotDilutedByAQuietMinute) {
  std::vector<EnvironmentTick> ticks = ticks_of(0.1, 0, 0, 301);
  for (std::size_t i = 100; i < ticks.size(); ++i) {
    const std::uint64_t burst = 20 * std::min<std::size_t>(i - 100, 5);
    ticks[i].cpu.busy += burst;
    ticks[i].cpu.idle -= burst;
  }
  const std::vector<std::string> reasons = find_contention(record_of(ticks), {});
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_THAT(reasons[0], testing::HasSubstr("in the second from 20.0 s"));
}

TEST(Environment, MonitorRecordsThisMachine) {
  EnvironmentMonitor monitor;
  std::this_thread::sleep_for(std::chrono::milliseconds(450));
  const EnvironmentRecord record = monitor.finish();
  EXPECT_GE(record.cores, 1u);
  EXPECT_GT(record.before.available_memory, 0u);
  EXPECT_GE(record.whole.seconds, 0.45);
  EXPECT_FALSE(record.seconds.empty());
  EXPECT_GE(record.whole.other_cpu, 0);
  EXPECT_LE(record.whole.other_cpu, 1);
  const auto json = to_json(record);
  EXPECT_TRUE(json["before"]["gpus"].is_array() || json["before"]["gpus"].contains("absent"));
}

TEST(Nvml, ALibraryThatIsNotThereIsSaidToBeAbsent) {
  const GpuReading reading = read_gpus("libassay-no-such-library.so.1");
  EXPECT_THAT(reading.absent, testing::HasSubstr("not installed"));
  EXPECT_TRUE(reading.gpus.empty());
}

TEST(Nvml, WhatTheLibrarySaysIsRead) {
  const GpuReading reading = read_gpus(ASSAY_FAKE_NVML);
  EXPECT_TRUE(reading.absent.empty());
  ASSERT_EQ(reading.gpus.size(), 1u);
  const GpuState& gpu = reading.gpus[0];
  EXPECT_EQ(gpu.name, "Example GPU");
  EXPECT_EQ(gpu.sm_megahertz, 1410u);
  EXPECT_EQ(gpu.max_sm_megahertz, 1980u);
  EXPECT_EQ(gpu.memory_megahertz, 2619u);
  EXPECT_EQ(gpu.celsius, 61u);
  EXPECT_THAT(gpu.throttle_reasons, testing::ElementsAre("sw_power_cap", "hw_thermal_slowdown"));
  ASSERT_EQ(gpu.processes.size(), 2u);
  EXPECT_EQ(gpu.processes[0].pid, 1u);
  EXPECT_EQ(gpu.processes[1].pid, 4194305u);
  EXPECT_TRUE(gpu.processes[1].name.empty()) << "no process has that number";
}

}  // namespace
}  // namespace assay::lab
