#include "ops/attention/attention.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/arena.hpp"
#include "ops/tests/targets.hpp"

namespace assay::ops {
namespace {

constexpr float kGuard = 12345.0f;
constexpr std::size_t kGap = 3;  ///< elements between rows that no form may touch
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Shape {
  std::size_t heads;
  std::size_t kv_heads;
  std::size_t head_dim;
  bool gated = true;
};

/// Queries [first, first + length) of a batch that see keys [0, inherited) of a store and then their own,
/// which lie at [own, own + length) in it. Inherited keys are cut into runs of these lengths.
struct TestSegment {
  std::size_t first;
  std::size_t length;
  std::vector<std::size_t> inherited = {};
  std::size_t own = 0;
};

/// One call's memory: rows are farther apart than they are wide.
class Batch {
 public:
  Batch(const Shape& shape, std::size_t queries, std::size_t keys, float magnitude = 1.0f) : shape(shape) {
    std::mt19937 generator(static_cast<std::uint32_t>(queries * 131 + keys * 17 + shape.head_dim));
    std::normal_distribution<float> draw(0, magnitude);
    const auto fill = [&](std::vector<float>& values, std::size_t count) {
      values.resize(count);
      for (float& value : values) value = draw(generator);
    };
    head_stride = 2 * shape.head_dim + 1;
    q_stride = shape.heads * head_stride + kGap;
    kv_stride = shape.kv_heads * shape.head_dim + kGap;
    out_stride = shape.heads * shape.head_dim + kGap;
    fill(q, queries * q_stride);
    fill(k, keys * kv_stride);
    fill(v, keys * kv_stride);
    scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
    queries_ = queries;
  }

  std::vector<float> run(const AttentionForm& form, const std::vector<TestSegment>& segments,
                         std::size_t threads = 1) const {
    std::vector<std::vector<KeyRun>> runs;
    for (const TestSegment& segment : segments) runs.push_back(make_runs(segment));
    std::vector<AttentionSegment> list;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      list.push_back({.first = segments[i].first, .length = segments[i].length, .runs = runs[i]});
    }
    std::vector<float> out(queries_ * out_stride + kGap, kGuard);
    AttentionArgs args{.heads = shape.heads, .kv_heads = shape.kv_heads, .head_dim = shape.head_dim};
    args.scale = scale;
    args.q = {q.data(), q_stride};
    args.q_head_stride = args.gate_head_stride = head_stride;
    if (shape.gated) args.gate = {q.data() + shape.head_dim, q_stride};
    args.out = {out.data(), out_stride};
    args.segments = list;
    device::ThreadPool pool(threads);
    device::Arena arena;
    form.run({pool, arena}, args);
    scratch = arena.high_water();
    return out;
  }

  std::vector<float> row(const std::vector<float>& out, std::size_t query) const {
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(query * out_stride);
    return {begin, begin + static_cast<std::ptrdiff_t>(shape.heads * shape.head_dim)};
  }

  /// Where a segment's keys lie in the store, in order.
  static std::vector<std::size_t> keys_of(const TestSegment& segment) {
    std::size_t inherited = 0;
    for (const std::size_t length : segment.inherited) inherited += length;
    std::vector<std::size_t> keys(inherited + segment.length);
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i < inherited ? i : segment.own + i - inherited;
    return keys;
  }

  Shape shape;
  std::size_t head_stride, q_stride, kv_stride, out_stride;
  std::vector<float> q, k, v;
  float scale;
  mutable std::size_t scratch = 0;

 private:
  std::vector<KeyRun> make_runs(const TestSegment& segment) const {
    const auto run_at = [&](std::size_t key, std::size_t length) {
      return KeyRun{.k = {k.data() + key * kv_stride, kv_stride},
                    .v = {v.data() + key * kv_stride, kv_stride},
                    .length = length};
    };
    std::vector<KeyRun> runs;
    std::size_t key = 0;
    for (const std::size_t length : segment.inherited) {
      runs.push_back(run_at(key, length));
      key += length;
    }
    runs.push_back(run_at(segment.own, segment.length));
    return runs;
  }

  std::size_t queries_;
};

/// The contract in double precision, and how far an fp32 evaluation of it may be away.
struct Exact {
  std::vector<double> value;
  std::vector<double> bound;
};

/// A dot product of n terms is within n·2⁻²⁴·Σ|terms| of its value, whatever its order; a weight moves by
/// twice the largest error of a score, relatively; the rest is the sums over keys and a few roundings.
/// Weights under the smallest normal number may be lost.
Exact exact_head(const Batch& batch, const TestSegment& segment, std::size_t query, std::size_t head) {
  constexpr double kUnit = 0x1p-24;
  const std::size_t dim = batch.shape.head_dim;
  const std::size_t kv = head / (batch.shape.heads / batch.shape.kv_heads) * dim;
  std::vector<std::size_t> keys = Batch::keys_of(segment);
  keys.resize(keys.size() - segment.length + query + 1);
  const float* q = batch.q.data() + (segment.first + query) * batch.q_stride + head * batch.head_stride;

  std::vector<double> scores;
  double score_error = 0;
  for (const std::size_t key : keys) {
    double score = 0, magnitude = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      const double term = static_cast<double>(batch.scale) * q[d] * batch.k[key * batch.kv_stride + kv + d];
      score += term;
      magnitude += std::abs(term);
    }
    scores.push_back(score);
    score_error = std::max(score_error, static_cast<double>(dim + 3) * kUnit * magnitude);
  }
  const double maximum = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - maximum);

  const double relative = std::expm1(2 * score_error) + static_cast<double>(2 * keys.size() + 32) * kUnit;
  Exact result;
  for (std::size_t d = 0; d < dim; ++d) {
    double value = 0, magnitude = 0, underflow = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const double v = batch.v[keys[i] * batch.kv_stride + kv + d];
      const double term = scores[i] / sum * v;
      underflow += 0x1p-125 * std::abs(v);
      value += term;
      magnitude += std::abs(term);
    }
    const double gate = batch.shape.gated ? 1 / (1 + std::exp(-static_cast<double>(q[dim + d]))) : 1;
    result.value.push_back(gate * value);
    result.bound.push_back(gate * magnitude * relative + underflow);
  }
  return result;
}

void expect_close(const Batch& batch, const std::vector<TestSegment>& segments,
                  const std::vector<float>& out) {
  for (const TestSegment& segment : segments) {
    for (std::size_t query = 0; query < segment.length; ++query) {
      const std::vector<float> row = batch.row(out, segment.first + query);
      for (std::size_t head = 0; head < batch.shape.heads; ++head) {
        const Exact exact = exact_head(batch, segment, query, head);
        for (std::size_t d = 0; d < batch.shape.head_dim; ++d) {
          ASSERT_NEAR(row[head * batch.shape.head_dim + d], exact.value[d], exact.bound[d])
              << "query " << query << " head " << head << " d " << d;
        }
      }
    }
  }
}

testing::AssertionResult same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  if (x.size() != y.size()) return testing::AssertionFailure() << x.size() << " values against " << y.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(x[i]) != std::bit_cast<std::uint32_t>(y[i])) {
      return testing::AssertionFailure() << "at " << i << ": " << x[i] << " against " << y[i];
    }
  }
  return testing::AssertionSuccess();
}

/// Every form, and the vector forms on every instruction set.
class Attention : public testing::TestWithParam<const AttentionForm*> {
 protected:
  template <class Body>
  void on_targets(const Body& body) const {
    if (GetParam()->info.name == "reference") {
      body();
    } else {
      for_each_target(body);
    }
  }
};

std::vector<const AttentionForm*> all_forms() {
  std::vector<const AttentionForm*> forms;
  for (const AttentionForm& form : attention_forms()) forms.push_back(&form);
  return forms;
}

INSTANTIATE_TEST_SUITE_P(Forms, Attention, testing::ValuesIn(all_forms()),
                         [](const auto& info) { return std::string(info.param->info.name); });

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
}  // namespace assay::ops
