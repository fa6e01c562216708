#include "device/cpu_features.hpp"

#include <gtest/gtest.h>

namespace assay::device {
namespace {

TEST(CpuFeatures, TheEmptySetIsSupportedEverywhere) {
  EXPECT_TRUE(cpu_supports(0));
  EXPECT_EQ(describe(0), "any");
}

TEST(CpuFeatures, WhatIsThereIsSupportedAndTheRestIsNot) {
  const CpuFeatureSet here = cpu_features();
  EXPECT_EQ(cpu_features(), here);
  EXPECT_TRUE(cpu_supports(here));
  for (std::uint32_t feature = 1; feature <= 1u << 4; feature <<= 1) {
    EXPECT_EQ(cpu_supports(feature), (here & feature) != 0) << describe(feature);
    if ((here & feature) == 0) {
      EXPECT_FALSE(cpu_supports(here | feature)) << describe(feature);
    }
  }
}

TEST(CpuFeatures, SetsImplyWhatTheyBuildOn) {
  const CpuFeatureSet here = cpu_features();
  const auto implies = [here](CpuFeature a, CpuFeature b) {
    return (here & static_cast<CpuFeatureSet>(a)) == 0 || (here & static_cast<CpuFeatureSet>(b)) != 0;
  };
  EXPECT_TRUE(implies(CpuFeature::avx512, CpuFeature::avx2));
  EXPECT_TRUE(implies(CpuFeature::avx512_bf16, CpuFeature::avx512));
  EXPECT_TRUE(implies(CpuFeature::amx_bf16, CpuFeature::avx512));
}

TEST(CpuFeatures, NamesJoinInAFixedOrder) {
  EXPECT_EQ(describe(CpuFeature::avx512_bf16 | CpuFeature::avx2), "avx2+avx512_bf16");
  EXPECT_EQ(describe(static_cast<CpuFeatureSet>(CpuFeature::amx_bf16)), "amx_bf16");
}

TEST(CpuFeatures, AgreesWithTheCompilersOwnQuery) {
#if defined(__x86_64__)
  const auto has = [](CpuFeature feature) { return cpu_supports(static_cast<CpuFeatureSet>(feature)); };
  EXPECT_EQ(has(CpuFeature::avx2), __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(has(CpuFeature::avx512),
            __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0);
#else
  GTEST_SKIP() << "no such query on this architecture";
#endif
}

TEST(CpuFeatures, TheProcessorHasAName) {
  EXPECT_FALSE(cpu_model_name().empty());
}

}  // namespace
}  // namespace assay::device
