#include "lab/cost/ceilings.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "device/memory.hpp"
#include "lab/cost/peak_kernels.hpp"

namespace assay::lab {
namespace {

TEST(PeakKernels, DoOperationsInProportionToTheirRounds) {
  for (const PeakKernel& kernel : peak_kernels()) {
    if (!device::cpu_supports(kernel.needs)) continue;
    const double once = kernel.run(1);
    EXPECT_GT(once, 0) << kernel.name;
    EXPECT_EQ(kernel.run(1000), 1000 * once) << kernel.name;
  }
}

TEST(PeakKernels, ACopyCopiesAndAWriteWritesTheWholeSet) {
  constexpr std::size_t kCount = 4 * kBandwidthGrain;
  device::Buffer<float> from(kCount);
  device::Buffer<float> to(kCount + 1);
  for (const bool streaming : {false, true}) {
    for (std::size_t i = 0; i < kCount; ++i) from.data()[i] = static_cast<float>(i);
    copy_memory(from.data(), to.data(), kCount, 2, streaming);
    EXPECT_TRUE(std::equal(from.span().begin(), from.span().end(), to.data()));
    write_memory(to.data(), kCount, 1, streaming);
    EXPECT_TRUE(std::all_of(to.data(), to.data() + kCount, [](float x) { return x == 1.0f; }));
    EXPECT_EQ(to.data()[kCount], 0.0f);
    read_memory(from.data(), kCount, 1);
  }
}

/// Ceilings as they might be measured with one thread and two, caches of 32 KiB, 1 MiB and 32 MiB.
Ceilings planted() {
  Ceilings ceilings;
  ceilings.caches = {std::size_t{32} << 10, std::size_t{1} << 20, std::size_t{32} << 20};
  ceilings.seconds = 1.5;
  const auto rate = [](double median) { return Summary{5, median, median, median, median, median, 0}; };
  for (const std::size_t threads : {1u, 2u}) {
    const auto n = static_cast<double>(threads);
    ceilings.peaks.push_back({"fp32_fma", ops::Precision::fp32, threads, rate(1e11 * n)});
    ceilings.peaks.push_back({"bf16_dot", ops::Precision::bf16, threads, rate(2e11 * n)});
    for (const MemoryLevel level : {MemoryLevel::l1, MemoryLevel::l2, MemoryLevel::l3, MemoryLevel::memory}) {
      for (const MemoryAccess access : {MemoryAccess::read, MemoryAccess::write, MemoryAccess::copy}) {
        const double speed = 1e11 * n / (1 + static_cast<double>(level));
        ceilings.bandwidths.push_back({level, access, threads, 4096, false, rate(speed)});
      }
    }
  }
  return ceilings;
}

TEST(Ceilings, ThePeakOfAPrecisionIsTheBestKernelThatServesIt) {
  Ceilings ceilings = planted();
  EXPECT_EQ(ceilings.peak(ops::Precision::fp32, 1), 1e11);
  EXPECT_EQ(ceilings.peak(ops::Precision::bf16, 2), 4e11);
  std::erase_if(ceilings.peaks, [](const PeakCeiling& p) { return p.kernel == "bf16_dot"; });
  // Without bf16 arithmetic, bf16 products are fp32's.
  EXPECT_EQ(ceilings.peak(ops::Precision::bf16, 1), 1e11);
  EXPECT_THROW(ceilings.peak(ops::Precision::fp32, 3), Error);
  EXPECT_THROW(ceilings.bandwidth(MemoryLevel::l1, MemoryAccess::read, 3), Error);
  EXPECT_EQ(ceilings.bandwidth(MemoryLevel::memory, MemoryAccess::read, 1).bytes_per_second.median, 2.5e10);
}

TEST(Ceilings, AWorkingSetBelongsToTheSmallestLevelThatHoldsIt) {
  const Ceilings ceilings = planted();
  EXPECT_EQ(ceilings.level_of(32 << 10, 1), MemoryLevel::l1);
  EXPECT_EQ(ceilings.level_of((32 << 10) + 1, 1), MemoryLevel::l2);
  EXPECT_EQ(ceilings.level_of((32 << 10) + 1, 2), MemoryLevel::l1);
  EXPECT_EQ(ceilings.level_of(32 << 20, 1), MemoryLevel::l3);
  EXPECT_EQ(ceilings.level_of((32 << 20) + 1, 2), MemoryLevel::memory);
}

class CeilingsReceipt : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Receipt receipt(nlohmann::ordered_json result, ReceiptKind kind = ReceiptKind::ceilings) const {
    return write_receipt(folder_, make_receipt(kind, ceilings_subject(planted(), {}), std::move(result)));
  }

  std::string message(const Receipt& receipt) const {
    try {
      read_ceilings(receipt);
    } catch (const Error& error) {
      return error.what();
    }
    return "read without an error";
  }

  std::filesystem::path folder_;
};

TEST_F(CeilingsReceipt, GivesTheCeilingsBack) {
  const nlohmann::ordered_json result = to_json(planted());
  EXPECT_EQ(to_json(read_ceilings(receipt(result))), result);
}

TEST_F(CeilingsReceipt, OfAnotherKindDeviceOrFormIsRefused) {
  using testing::HasSubstr;
  const nlohmann::ordered_json good = to_json(planted());
  EXPECT_THAT(message(receipt(good, ReceiptKind::window)), HasSubstr("of kind ceilings"));

  Receipt elsewhere = receipt(good);
  elsewhere.body["device"]["id"] = "cpu-another";
  EXPECT_THAT(message(elsewhere), HasSubstr("device.id"));

  nlohmann::ordered_json bad = good;
  bad["peaks"][0]["precision"] = "int8";
  EXPECT_THAT(message(receipt(bad)), HasSubstr("precision"));
  bad = good;
  bad["bandwidths"][3]["bytes_per_second"]["median"] = 0;
  EXPECT_THAT(message(receipt(bad)), HasSubstr("median"));
  bad = good;
  bad["bandwidths"][0].erase("level");
  EXPECT_THAT(message(receipt(bad)), HasSubstr("level"));
  bad = good;
  bad["peaks"][1]["threads"] = -1;
  EXPECT_THAT(message(receipt(bad)), HasSubstr("threads"));
  bad = good;
  bad["caches"]["l4_bytes"] = 1;
  EXPECT_THAT(message(receipt(bad)), HasSubstr("l4_bytes"));
}

TEST(Ceilings, AreMeasuredForEveryKernelLevelAndAccessThatThereIs) {
  CeilingsOptions options;
  options.threads = 1;
  options.repetitions = 3;
  const Ceilings ceilings = measure_ceilings(options, [](std::string_view) {});
  const auto kernels = peak_kernels();
  const auto here = std::count_if(kernels.begin(), kernels.end(), [](const PeakKernel& kernel) {
    return device::cpu_supports(kernel.needs);
  });
  EXPECT_EQ(static_cast<std::ptrdiff_t>(ceilings.peaks.size()), here);
  EXPECT_EQ(ceilings.bandwidths.size(), 12u);
  for (const PeakCeiling& peak : ceilings.peaks) {
    EXPECT_GT(peak.operations_per_second.min, 0);
    EXPECT_EQ(peak.operations_per_second.count, 3u);
  }
  for (const BandwidthCeiling& bandwidth : ceilings.bandwidths) EXPECT_GT(bandwidth.bytes_per_second.min, 0);
  EXPECT_NE(to_table(ceilings).find("fp32_fma"), std::string::npos);
}

TEST(Ceilings, OptionsOutOfRangeAreErrors) {
  const auto measure = [](std::size_t threads, std::size_t repetitions) {
    CeilingsOptions options;
    options.threads = threads;
    options.repetitions = repetitions;
    measure_ceilings(options, [](std::string_view) {});
  };
  EXPECT_THROW(measure(100'000, 5), Error);
  EXPECT_THROW(measure(1, 2), Error);
  EXPECT_THROW(measure(1, 101), Error);
}

}  // namespace
}  // namespace assay::lab
