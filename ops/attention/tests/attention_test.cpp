#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "ops/attention/tests/attention_testing.hpp"

namespace assay::ops::attention_testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Attention : public AttentionFormTest {};

INSTANTIATE_TEST_SUITE_P(Forms, Attention, testing::ValuesIn(all_forms()), form_name);

TEST_P(Attention, AgreesWithDoublePrecisionOverShapes) {
  for (const Shape& shape : {Shape{1, 1, 1, false}, Shape{2, 1, 7}, Shape{3, 3, 20}, Shape{4, 2, 64, false},
                             Shape{8, 1, 33}, Shape{16, 4, 256}, Shape{4, 1, 128}}) {
    SCOPED_TRACE(shape.head_dim);
    const Batch batch(shape, 24, 60);
    const std::vector<TestSegment> segments = {{.first = 1, .length = 19, .inherited = {5, 0, 13}, .own = 30},
                                               {.first = 22, .length = 2, .own = 3}};
    on_targets([&] { expect_close(batch, segments, batch.run(*GetParam(), segments, 2)); });
  }
}

TEST_P(Attention, AgreesWithDoublePrecisionAtEveryLength) {
  const Batch batch({2, 1, 24}, 140, 140);
  for (std::size_t length = 0; length <= 140; length += length < 70 ? 1 : 13) {
    SCOPED_TRACE(length);
    const std::vector<TestSegment> segments = {{.first = 0, .length = length}};
    expect_close(batch, segments, batch.run(*GetParam(), segments));
  }
}

TEST_P(Attention, AgreesWithDoublePrecisionAtEveryInheritedLength) {
  const Batch batch({2, 1, 16}, 3, 140);
  for (std::size_t inherited = 0; inherited <= 130; ++inherited) {
    SCOPED_TRACE(inherited);
    const std::vector<TestSegment> segments = {
        {.first = 0, .length = 3, .inherited = {inherited}, .own = inherited}};
    expect_close(batch, segments, batch.run(*GetParam(), segments));
  }
}

TEST_P(Attention, AgreesWithDoublePrecisionOverManyKeys) {
  const Batch batch({4, 1, 64}, 5, 4100);
  const std::vector<TestSegment> segments = {{.first = 0, .length = 5, .inherited = {4000, 95}, .own = 4095}};
  expect_close(batch, segments, batch.run(*GetParam(), segments));
}

TEST_P(Attention, BordersOfRunsChangeNothing) {
  on_targets([&] {
    const Batch batch({4, 2, 40}, 9, 100);
    const std::vector<float> whole = batch.run(*GetParam(), {{0, 9, {80}, 80}});
    for (const std::vector<std::size_t>& cut :
         std::vector<std::vector<std::size_t>>{{1, 79},
                                               {79, 1},
                                               {0, 80},
                                               {40, 0, 40},
                                               {64, 16},
                                               {7, 8, 9, 10, 46},
                                               std::vector<std::size_t>(80, 1)}) {
      EXPECT_TRUE(same_bits(whole, batch.run(*GetParam(), {{0, 9, cut, 80}}))) << cut.size() << " runs";
    }
  });
}

TEST_P(Attention, QueriesCutIntoTwoCallsChangeNothing) {
  on_targets([&] {
    const Batch batch({4, 1, 36}, 90, 90);
    const std::vector<float> whole = batch.run(*GetParam(), {{0, 90, {}, 0}});
    for (const std::size_t cut : {1u, 2u, 31u, 32u, 33u, 64u, 89u}) {
      const std::vector<float> head = batch.run(*GetParam(), {{0, cut, {}, 0}});
      const std::vector<float> tail = batch.run(*GetParam(), {{cut, 90 - cut, {cut}, cut}});
      for (std::size_t query = 0; query < 90; ++query) {
        EXPECT_TRUE(same_bits(batch.row(whole, query), batch.row(query < cut ? head : tail, query)))
            << "cut " << cut << " query " << query;
      }
    }
  });
}

TEST_P(Attention, BatchMatesChangeNothing) {
  const Batch batch({6, 2, 48}, 70, 90);
  const std::vector<TestSegment> segments = {
      {0, 30, {}, 0}, {30, 1, {30}, 31}, {31, 0, {30}, 40}, {31, 17, {20, 10}, 32}, {50, 20, {30}, 60}};
  const std::vector<float> together = batch.run(*GetParam(), segments, 2);
  for (const TestSegment& segment : segments) {
    const std::vector<float> alone = batch.run(*GetParam(), {segment});
    for (std::size_t query = segment.first; query < segment.first + segment.length; ++query) {
      EXPECT_TRUE(same_bits(batch.row(together, query), batch.row(alone, query))) << query;
    }
  }
}

TEST_P(Attention, ThreadsChangeNothing) {
  const Batch batch({8, 2, 64}, 120, 160);
  const std::vector<TestSegment> segments = {{0, 100, {}, 0}, {100, 20, {100}, 130}};
  const std::vector<float> one = batch.run(*GetParam(), segments, 1);
  for (const std::size_t threads : {2u, 3u}) {
    EXPECT_TRUE(same_bits(one, batch.run(*GetParam(), segments, threads))) << threads;
  }
}

TEST_P(Attention, ASingleKeyGivesItsValue) {
  const Batch batch({2, 2, 37, false}, 1, 1);
  const std::vector<float> out = batch.run(*GetParam(), {{0, 1, {}, 0}});
  EXPECT_TRUE(same_bits(batch.row(out, 0), {batch.v.begin(), batch.v.begin() + 2 * 37}));
}

TEST_P(Attention, LargeScoresStayStable) {
  // Standard deviation 40 at 64 dimensions: scores of some ±10⁴.
  const Batch batch({2, 1, 64}, 20, 60, 40.0f);
  const std::vector<TestSegment> segments = {{0, 20, {40}, 40}};
  on_targets([&] {
    const std::vector<float> out = batch.run(*GetParam(), segments);
    for (std::size_t query = 0; query < 20; ++query) {
      EXPECT_THAT(batch.row(out, query),
                  testing::Each(testing::Truly([](float x) { return std::isfinite(x); })));
    }
    expect_close(batch, segments, out);
  });
}

TEST_P(Attention, HugeValuesDoNotOverflowInTheSum) {
  Batch batch({1, 1, 16, false}, 1, 32);
  for (float& value : batch.v) value = 3e38f;
  const std::vector<float> out = batch.run(*GetParam(), {{0, 1, {31}, 31}});
  EXPECT_THAT(batch.row(out, 0), testing::Each(testing::FloatNear(3e38f, 3e33f)));
}

TEST_P(Attention, GatesOfAnySizeAreSigmoids) {
  Batch batch({1, 1, 8}, 1, 1);
  const float infinity = std::numeric_limits<float>::infinity();
  const float gates[] = {0.0f, 1e4f, -1e4f, infinity, -infinity, 20.0f, -20.0f, -87.0f};
  std::copy_n(gates, 8, batch.q.begin() + 8);
  std::fill(batch.v.begin(), batch.v.end(), 1.0f);
  on_targets([&] {
    const std::vector<float> out = batch.row(batch.run(*GetParam(), {{0, 1, {}, 0}}), 0);
    for (std::size_t i = 0; i < 8; ++i) {
      const double expected = 1 / (1 + std::exp(-static_cast<double>(gates[i])));
      EXPECT_NEAR(out[i], expected, 4e-7 * expected + 1e-37) << gates[i];
    }
  });
}

TEST_P(Attention, NonFiniteKeysAndValuesReachOnlyQueriesThatSeeThem) {
  for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
    for (const bool in_values : {false, true}) {
      Batch batch({4, 1, 32}, 40, 40);
      (in_values ? batch.v : batch.k)[21 * batch.kv_stride + 5] = bad;
      on_targets([&] {
        const std::vector<float> out = batch.run(*GetParam(), {{0, 40, {}, 0}});
        const std::vector<float> expected = batch.run(attention_forms().front(), {{0, 40, {}, 0}});
        for (std::size_t i = 0; i < out.size(); ++i) {
          ASSERT_EQ(std::isnan(out[i]), std::isnan(expected[i])) << "bad " << bad << " at " << i;
          ASSERT_EQ(std::isinf(out[i]), std::isinf(expected[i])) << "bad " << bad << " at " << i;
        }
      });
    }
  }
}

TEST_P(Attention, TouchesNothingBetweenRowsNorOutsideItsSegments) {
  const Batch batch({3, 1, 21}, 12, 20);
  const std::vector<float> out = batch.run(*GetParam(), {{2, 4, {6}, 6}, {7, 3, {}, 10}});
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t query = i / batch.out_stride;
    const bool inside =
        i % batch.out_stride < 63 && ((query >= 2 && query < 6) || (query >= 7 && query < 10));
    if (!inside) {
      ASSERT_EQ(out[i], kGuard) << i;
    }
  }
}

TEST_P(Attention, NothingToDoIsAllowed) {
  const Batch batch({2, 1, 16}, 1, 8);
  EXPECT_THAT(batch.run(*GetParam(), {}), testing::Each(kGuard));
  EXPECT_THAT(batch.run(*GetParam(), {{0, 0, {8}, 0}}), testing::Each(kGuard));
}

TEST_P(Attention, ScratchGrowsNoFasterThanTheKeys) {
  const Batch batch({1, 1, 8}, 1024, 1024);
  batch.run(*GetParam(), {{0, 256, {}, 0}});
  const std::size_t quarter = batch.scratch;
  batch.run(*GetParam(), {{0, 1024, {}, 0}});
  EXPECT_LE(batch.scratch, 4 * quarter + 4096);
}

TEST_P(Attention, RefusesShapesThatDoNotFit) {
  const Batch odd({3, 2, 8}, 1, 1);
  EXPECT_THROW(odd.run(*GetParam(), {{0, 1, {}, 0}}), Error);
  const AttentionSegment without_keys{.first = 0, .length = 2, .runs = {}};
  AttentionArgs args{.heads = 1, .kv_heads = 1, .head_dim = 8};
  args.segments = {&without_keys, 1};
  device::ThreadPool pool(1);
  device::Arena arena;
  EXPECT_THROW(GetParam()->run({pool, arena}, args), Error);
}

TEST(AttentionForms, TheReferenceComesFirstAndNamesDiffer) {
  std::vector<std::string_view> names;
  for (const AttentionForm& form : attention_forms()) names.push_back(form.info.name);
  EXPECT_EQ(names.front(), "reference");
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace assay::ops::attention_testing
