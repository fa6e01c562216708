#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/error.hpp"
#include "ops/attention/tests/attention_testing.hpp"

// The masks without a direction: full, of which cross-attention is a case, and sliding.
namespace assay::ops::attention_testing {
namespace {

class AttentionMasks : public AttentionFormTest {};

INSTANTIATE_TEST_SUITE_P(Forms, AttentionMasks, testing::ValuesIn(all_forms()), form_name);

Batch full_batch(const Shape& shape, std::size_t queries, std::size_t keys) {
  Batch batch(shape, queries, keys);
  batch.mask = AttentionMask::full;
  return batch;
}

Batch sliding_batch(const Shape& shape, std::size_t length, std::size_t window) {
  Batch batch(shape, length, length);
  batch.mask = AttentionMask::sliding;
  batch.window = window;
  return batch;
}

TEST_P(AttentionMasks, FullSeesEveryKeyOfItsOwnAndOfAnotherSequence) {
  for (const Shape& shape : {Shape{2, 1, 7, false}, Shape{4, 2, 64, false}, Shape{3, 3, 20}}) {
    SCOPED_TRACE(shape.head_dim);
    const Batch batch = full_batch(shape, 80, 150);
    const std::vector<TestSegment> segments = {{.first = 1, .length = 70, .own = 3},
                                               {.first = 72, .length = 5, .own = 40, .own_keys = 101},
                                               {.first = 78, .length = 2, .own = 140, .own_keys = 1}};
    on_targets([&] { expect_close(batch, segments, batch.run(*GetParam(), segments, 2)); });
  }
}

TEST_P(AttentionMasks, FullAgreesAtEveryNumberOfKeys) {
  const Batch batch = full_batch({2, 1, 16, false}, 3, 140);
  for (std::size_t keys = 1; keys <= 140; ++keys) {
    SCOPED_TRACE(keys);
    const std::vector<TestSegment> segments = {{.first = 0, .length = 3, .own_keys = keys}};
    expect_close(batch, segments, batch.run(*GetParam(), segments));
  }
}

TEST_P(AttentionMasks, SlidingSeesItsWindowToBothSidesEndsIncluded) {
  for (const std::size_t window : {0u, 1u, 2u, 5u, 31u, 64u, 128u, 169u, 170u}) {
    SCOPED_TRACE(window);
    for (const Shape& shape : {Shape{2, 1, 24, false}, Shape{1, 1, 8, false}}) {
      const Batch batch = sliding_batch(shape, 170, window);
      const std::vector<TestSegment> segments = {{.first = 0, .length = 170}};
      on_targets([&] { expect_close(batch, segments, batch.run(*GetParam(), segments, 2)); });
    }
  }
}

TEST_P(AttentionMasks, SlidingAgreesAtEveryLength) {
  const Batch batch = sliding_batch({2, 1, 16, false}, 140, 16);
  for (std::size_t length = 0; length <= 140; length += length < 40 ? 1 : 9) {
    SCOPED_TRACE(length);
    const std::vector<TestSegment> segments = {{.first = 0, .length = length}};
    expect_close(batch, segments, batch.run(*GetParam(), segments));
  }
}

TEST_P(AttentionMasks, AWindowOverEverythingIsFullToTheLastBit) {
  Batch batch = sliding_batch({4, 2, 40, false}, 100, 99);
  on_targets([&] {
    batch.mask = AttentionMask::full;
    const std::vector<float> full = batch.run(*GetParam(), {{0, 100}});
    batch.mask = AttentionMask::sliding;
    for (const std::size_t window : {std::size_t{99}, std::numeric_limits<std::size_t>::max()}) {
      batch.window = window;
      EXPECT_TRUE(same_bits(full, batch.run(*GetParam(), {{0, 100}}))) << window;
    }
  });
}

TEST_P(AttentionMasks, TheKeysSeenDecideEveryBit) {
  // A query in the middle of a long sequence and the same one in a shorter cut that still holds its window.
  const Batch batch = sliding_batch({4, 2, 36, false}, 200, 20);
  on_targets([&] {
    const std::vector<float> whole = batch.run(*GetParam(), {{0, 200}});
    for (const std::size_t begin : {1u, 7u, 50u, 63u}) {
      const std::size_t end = begin + 90;
      const std::vector<float> cut = batch.run(*GetParam(), {{begin, 90, {}, begin}});
      for (std::size_t query = begin + 20; query + 20 < end; ++query) {
        EXPECT_TRUE(same_bits(batch.row(whole, query), batch.row(cut, query))) << begin << " " << query;
      }
    }
  });
}

TEST_P(AttentionMasks, BatchMatesBordersOfRunsAndThreadsChangeNothing) {
  for (const AttentionMask mask : {AttentionMask::full, AttentionMask::sliding}) {
    Batch batch = sliding_batch({6, 2, 48, false}, 130, 9);
    batch.mask = mask;
    const std::vector<TestSegment> segments = {
        {0, 60, {}, 0}, {60, 0, {}, 3, 0}, {60, 3, {}, 60}, {63, 67, {}, 63}};
    const std::vector<float> together = batch.run(*GetParam(), segments, 3);
    EXPECT_TRUE(same_bits(together, batch.run(*GetParam(), segments, 1)));
    for (const TestSegment& segment : segments) {
      const std::vector<float> alone = batch.run(*GetParam(), {segment});
      for (std::size_t query = segment.first; query < segment.first + segment.length; ++query) {
        EXPECT_TRUE(same_bits(batch.row(together, query), batch.row(alone, query))) << query;
      }
    }
    const std::vector<float> cut = batch.run(*GetParam(), {{0, 60, {13, 0, 27}, 40, 20}});
    for (std::size_t query = 0; query < 60; ++query) {
      EXPECT_TRUE(same_bits(batch.row(together, query), batch.row(cut, query))) << query;
    }
  }
}

TEST_P(AttentionMasks, NonFiniteKeysAndValuesReachOnlyTheQueriesInTheirWindow) {
  for (const bool in_values : {false, true}) {
    Batch batch = sliding_batch({4, 1, 32, false}, 60, 5);
    (in_values ? batch.v : batch.k)[21 * batch.kv_stride + 5] = std::numeric_limits<float>::quiet_NaN();
    on_targets([&] {
      const std::vector<float> out = batch.run(*GetParam(), {{0, 60}});
      for (std::size_t query = 0; query < 60; ++query) {
        const std::vector<float> row = batch.row(out, query);
        const bool reached = std::any_of(row.begin(), row.end(), [](float x) { return std::isnan(x); });
        EXPECT_EQ(reached, query >= 16 && query <= 26) << query;
      }
    });
  }
}

TEST_P(AttentionMasks, AWindowBoundsTheScratch) {
  const Batch batch = sliding_batch({1, 1, 8, false}, 4096, 16);
  batch.run(*GetParam(), {{0, 512}});
  const std::size_t eighth = batch.scratch;
  batch.run(*GetParam(), {{0, 4096}});
  // The vector form lists its tiles; the reference form keeps a score for every key.
  const std::size_t allowed = GetParam()->info.name == "reference" ? 8 * eighth : eighth + eighth / 8;
  EXPECT_LE(batch.scratch, allowed);
}

TEST_P(AttentionMasks, RefusesKeysThatDoNotFit) {
  EXPECT_THROW(full_batch({1, 1, 8, false}, 2, 2).run(*GetParam(), {{0, 2, {}, 0, 0}}), Error);
  EXPECT_THROW(sliding_batch({1, 1, 8, false}, 2, 1).run(*GetParam(), {{0, 2, {}, 0, 1}}), Error);
  EXPECT_THROW(sliding_batch({1, 1, 8, false}, 2, 1).run(*GetParam(), {{0, 1, {}, 0, 2}}), Error);
}

}  // namespace
}  // namespace assay::ops::attention_testing
