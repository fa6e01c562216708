#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "device/arena.hpp"
#include "ops/attention/attention.hpp"
#include "ops/tests/targets.hpp"

/// What the tests of `attention` share.
namespace assay::ops::attention_testing {

inline constexpr float kGuard = 12345.0f;
inline constexpr std::size_t kGap = 3;  ///< elements between rows that no form may touch

struct Shape {
  std::size_t heads;
  std::size_t kv_heads;
  std::size_t head_dim;
  bool gated = true;
};

/// Queries [first, first + length) of a batch whose keys are [0, inherited) of a store and then their own,
/// which lie at [own, own + own_keys) in it. Inherited keys are cut into runs of these lengths.
struct TestSegment {
  std::size_t first;
  std::size_t length;
  std::vector<std::size_t> inherited = {};
  std::size_t own = 0;
  std::size_t own_keys = length;
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
    args.mask = mask;
    args.window = window;
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
    std::vector<std::size_t> keys(inherited + segment.own_keys);
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i < inherited ? i : segment.own + i - inherited;
    return keys;
  }

  /// Where the keys that a query sees lie in the store, in order.
  std::vector<std::size_t> seen_by(const TestSegment& segment, std::size_t query) const {
    const std::vector<std::size_t> keys = keys_of(segment);
    std::vector<std::size_t> seen;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool near = (i > query ? i - query : query - i) <= window;
      const bool sees = mask == AttentionMask::full     ? true
                        : mask == AttentionMask::causal ? i <= keys.size() - segment.own_keys + query
                                                        : near;
      if (sees) seen.push_back(keys[i]);
    }
    return seen;
  }

  AttentionMask mask = AttentionMask::causal;
  std::size_t window = 0;
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
    runs.push_back(run_at(segment.own, segment.own_keys));
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
inline Exact exact_head(const Batch& batch, const TestSegment& segment, std::size_t query, std::size_t head) {
  constexpr double kUnit = 0x1p-24;
  const std::size_t dim = batch.shape.head_dim;
  const std::size_t kv = head / (batch.shape.heads / batch.shape.kv_heads) * dim;
  const std::vector<std::size_t> keys = batch.seen_by(segment, query);
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

inline void expect_close(const Batch& batch, const std::vector<TestSegment>& segments,
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

inline testing::AssertionResult same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  if (x.size() != y.size()) return testing::AssertionFailure() << x.size() << " values against " << y.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(x[i]) != std::bit_cast<std::uint32_t>(y[i])) {
      return testing::AssertionFailure() << "at " << i << ": " << x[i] << " against " << y[i];
    }
  }
  return testing::AssertionSuccess();
}

/// Every form, and the vector forms on every instruction set.
class AttentionFormTest : public testing::TestWithParam<const AttentionForm*> {
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

inline std::vector<const AttentionForm*> all_forms() {
  std::vector<const AttentionForm*> forms;
  for (const AttentionForm& form : attention_forms()) forms.push_back(&form);
  return forms;
}

inline std::string form_name(const testing::TestParamInfo<const AttentionForm*>& info) {
  return std::string(info.param->info.name);
}

}  // namespace assay::ops::attention_testing
