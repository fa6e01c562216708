#include "base/counted.hpp"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Counted, TheNounAgreesWithItsNumber) {
  EXPECT_EQ(counted(0, "token"), "0 tokens");
  EXPECT_EQ(counted(1, "token"), "1 token");
  EXPECT_EQ(counted(2, "imported row"), "2 imported rows");
}

}  // namespace
}  // namespace assay
