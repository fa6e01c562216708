#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/tests/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/tests/exp_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/attention/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::ops::attention {
namespace HWY_NAMESPACE {

float exp_of(float x) {
  const hn::CappedTag<float, 16> d;
  return hn::GetLane(exp_nonpositive(d, hn::Set(d, x)));
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::ops::attention
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops::attention {
namespace {

HWY_EXPORT(exp_of);

TEST(ExpNonpositive, StaysWithinTwoUnitsInTheLastPlace) {
  for_each_target([] {
    double worst = 0;
    for (float x = -87.33f; x <= 0; x += 0.00137f) {
      const double exact = std::exp(static_cast<double>(x));
      const float rounded = static_cast<float>(exact);
      const double unit = static_cast<double>(std::nextafter(rounded, 2.0f)) - rounded;
      worst = std::max(worst, std::abs(HWY_DYNAMIC_DISPATCH(exp_of)(x) - exact) / unit);
    }
    EXPECT_LE(worst, 2.0);
  });
}

TEST(ExpNonpositive, KeepsOneZeroAndNan) {
  for_each_target([] {
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(exp_of)(0.0f), 1.0f);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(exp_of)(-0.0f), 1.0f);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(exp_of)(-88.0f), 0.0f);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(exp_of)(std::numeric_limits<float>::lowest()), 0.0f);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(exp_of)(-std::numeric_limits<float>::infinity()), 0.0f);
    EXPECT_TRUE(std::isnan(HWY_DYNAMIC_DISPATCH(exp_of)(std::numeric_limits<float>::quiet_NaN())));
  });
}

}  // namespace
}  // namespace assay::ops::attention
#endif  // HWY_ONCE
