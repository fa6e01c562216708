#include "lab/cost/process_memory.hpp"

#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "device/memory.hpp"

namespace assay::lab {
namespace {

// As Linux 6.1 writes them, shortened.
constexpr const char* kRollup =
    "55ba92d60000-7ffdfdb84000 ---p 00000000 00:00 0                          [rollup]\n"
    "Rss:                1784 kB\n"
    "Pss:                 184 kB\n"
    "Pss_Anon:            112 kB\n"
    "Pss_File:             72 kB\n"
    "Anonymous:           112 kB\n"
    "AnonHugePages:         8 kB\n"
    "Swap:                 16 kB\n"
    "SwapPss:              16 kB\n";
constexpr const char* kStatus =
    "Name:\tassay\nVmPeak:\t    9000 kB\nVmHWM:\t    1944 kB\nVmRSS:\t    1944 kB\n";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(ProcessMemory, ReadsTheKernelsTextInBytes) {
  const ProcessMemory memory = parse_process_memory(kRollup, kStatus);
  EXPECT_EQ(memory.resident, 1784u * 1024);
  EXPECT_EQ(memory.proportional, 184u * 1024);
  EXPECT_EQ(memory.anonymous, 112u * 1024);
  EXPECT_EQ(memory.file_mapped, (1784u - 112) * 1024);
  EXPECT_EQ(memory.huge, 8u * 1024);
  EXPECT_EQ(memory.swapped, 16u * 1024);
  EXPECT_EQ(memory.peak, 1944u * 1024);
}

TEST(ProcessMemory, AFieldThatIsMissingOrNoNumberOfKilobytesIsAnErrorThatNamesIt) {
  const auto message = [](const std::string& rollup, const std::string& status) -> std::string {
    try {
      parse_process_memory(rollup, status);
    } catch (const Error& error) {
      return error.what();
    }
    return "read without an error";
  };
  EXPECT_NE(message(with(kRollup, "Rss:", "Rsz:"), kStatus).find("smaps_rollup, Rss"), std::string::npos);
  EXPECT_NE(message(with(kRollup, "184 kB", "184 MB"), kStatus).find("Pss"), std::string::npos);
  EXPECT_NE(message(with(kRollup, "Anonymous:           112", "Anonymous:           -12"), kStatus)
                .find("Anonymous"),
            std::string::npos);
  EXPECT_NE(message(with(kRollup, "Anonymous:           112", "Anonymous:          9112"), kStatus)
                .find("more than Rss"),
            std::string::npos);
  EXPECT_NE(message(with(kRollup, "16 kB", "99999999999999999999 kB"), kStatus).find("Swap"),
            std::string::npos);
  EXPECT_NE(message(kRollup, "Name:\tassay\n").find("status, VmHWM"), std::string::npos);
  EXPECT_NE(message("", "").find("Rss"), std::string::npos);
  EXPECT_NE(message(with(kRollup, "Rss:                1784 kB\n", "Rss:\n"), kStatus).find("Rss"),
            std::string::npos);
}

TEST(ProcessMemory, AFieldWhoseNameBeginsLikeAnotherIsNotTakenForIt) {
  // "Swap" is followed by "SwapPss", and "Pss" by "Pss_Anon": only the whole name counts.
  const std::string rollup = with(with(kRollup, "Swap:", "Zwap:"), "Pss:  ", "Ppp:  ");
  EXPECT_THROW(parse_process_memory(rollup, kStatus), Error);
}

TEST(ProcessMemory, GoesThroughJsonUnchanged) {
  const ProcessMemory memory = parse_process_memory(kRollup, kStatus);
  nlohmann::ordered_json json = to_json(memory);
  EXPECT_EQ(to_json(read_process_memory(json, "child")), json);
  json["peak"] = -1;
  EXPECT_THROW(read_process_memory(json, "child"), Error);
  json.erase("peak");
  EXPECT_THROW(read_process_memory(json, "child"), Error);
  EXPECT_THROW(read_process_memory("text", "child"), Error);
}

TEST(ProcessMemory, OfThisProcessGrowsByPagesThatAreWritten) {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  const HeldBytes held;
  const std::size_t before = held();
  const ProcessMemory memory_before = process_memory();
  device::Buffer<char> pages(kBytes);
  for (std::size_t i = 0; i < kBytes; i += 4096) pages.data()[i] = 1;
  EXPECT_GE(held(), before + kBytes);
  EXPECT_LT(held(), before + kBytes + (std::size_t{8} << 20));
  const ProcessMemory memory = process_memory();
  EXPECT_GE(memory.anonymous, memory_before.anonymous + kBytes);
  EXPECT_EQ(memory.resident, memory.anonymous + memory.file_mapped);
}

}  // namespace
}  // namespace assay::lab
