#include "backbone/call_plan.hpp"

#include <gtest/gtest.h>

#include <random>

#include "base/error.hpp"

namespace assay::backbone {
namespace {

TEST(CallPlan, EverySegmentIsCoveredInOrderWithinTheLimitAndCutAtTheAlignment) {
  std::mt19937 rng(7);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t alignment = std::size_t{1} << (rng() % 5);
    const std::size_t limit = alignment * (1 + rng() % 6) + rng() % alignment;
    std::vector<std::size_t> lengths(rng() % 8);
    for (std::size_t& length : lengths) length = 1 + rng() % 60;

    std::vector<std::size_t> done(lengths.size(), 0);
    std::size_t last_segment = 0;
    for (const Call& call : plan_calls(lengths, limit, alignment)) {
      EXPECT_LE(call.tokens, limit);
      EXPECT_GT(call.tokens, 0u);
      std::size_t row = 0;
      for (const Piece& piece : call.pieces) {
        EXPECT_GE(piece.segment, last_segment);
        last_segment = piece.segment;
        EXPECT_EQ(piece.row, row);
        EXPECT_EQ(piece.offset, done[piece.segment]);
        EXPECT_EQ(piece.offset % alignment, 0u);
        done[piece.segment] += piece.count;
        row += piece.count;
      }
      EXPECT_EQ(row, call.tokens);
    }
    EXPECT_EQ(done, lengths);
  }
}

TEST(CallPlan, ARequestThatFitsIsOneCall) {
  const std::vector<std::size_t> lengths{300, 20, 30, 40};
  EXPECT_EQ(plan_calls(lengths, 1024, 64).size(), 1u);
}

TEST(CallPlan, ACallShorterThanTheChunkAndAnEmptySegmentAreRefused) {
  const std::vector<std::size_t> one{5};
  const std::vector<std::size_t> empty{5, 0};
  EXPECT_THROW(plan_calls(one, 63, 64), Error);
  EXPECT_THROW(plan_calls(one, 64, 0), Error);
  EXPECT_THROW(plan_calls(empty, 64, 64), Error);
}

}  // namespace
}  // namespace assay::backbone
