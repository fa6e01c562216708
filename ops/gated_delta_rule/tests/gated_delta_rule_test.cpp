#include "ops/gated_delta_rule/gated_delta_rule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
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
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Shape {
  std::size_t key_heads = 1;
  std::size_t value_heads = 1;
  std::size_t key_dim = 8;
  std::size_t value_dim = 8;
  std::size_t state_size() const { return value_heads * key_dim * value_dim; }
};

using State = std::vector<float>;

/// Tokens [first, first + length) of a batch; without an initial state, null is given.
struct TestSegment {
  std::size_t first;
  std::size_t length;
  std::optional<State> initial = {};
};

struct Result {
  std::vector<float> o;
  std::vector<State> finals;  ///< one a segment
};

/// One call's inputs: rows are farther apart than they are wide.
class Batch {
 public:
  Batch(const Shape& shape, std::size_t tokens) : shape(shape), tokens_(tokens) {
    std::mt19937 generator(static_cast<std::uint32_t>(tokens * 131 + shape.key_dim * 17 + shape.value_dim));
    const auto fill = [&](std::vector<float>& values, std::size_t count, auto draw) {
      values.resize(count);
      for (float& value : values) value = draw(generator);
    };
    key_stride = shape.key_heads * shape.key_dim + kGap;
    value_stride = shape.value_heads * shape.value_dim + kGap;
    gate_stride = shape.value_heads + kGap;
    const std::normal_distribution<float> normal;
    fill(q, tokens * key_stride, normal);
    fill(k, tokens * key_stride, normal);
    fill(v, tokens * value_stride, normal);
    fill(a, tokens * gate_stride, std::uniform_real_distribution<float>(-4, 4));
    fill(b, tokens * gate_stride, std::uniform_real_distribution<float>(-4, 4));
    fill(decay, shape.value_heads, std::uniform_real_distribution<float>(-2.0f, -0.01f));
    fill(dt_bias, shape.value_heads, std::uniform_real_distribution<float>(-4, 1));
  }

  State random_state() const {
    std::mt19937 generator(7);
    std::normal_distribution<float> draw;
    State state(shape.state_size());
    for (float& value : state) value = draw(generator);
    return state;
  }

  Result run(const GatedDeltaRuleForm& form, const std::vector<TestSegment>& segments,
             std::size_t threads = 1) const {
    Result result{.o = std::vector<float>(tokens_ * value_stride + kGap, kGuard), .finals = {}};
    // A guard zone behind each final state.
    result.finals.assign(segments.size(), State(shape.state_size() + kGap, kGuard));
    std::vector<SequenceSegment> list;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      list.push_back({.first = segments[i].first,
                      .length = segments[i].length,
                      .initial = segments[i].initial ? segments[i].initial->data() : nullptr,
                      .final = result.finals[i].data()});
    }
    run_list(form, list, result.o, threads);
    for (State& final : result.finals) {
      EXPECT_THAT(std::vector<float>(final.end() - kGap, final.end()), testing::Each(kGuard));
      final.resize(shape.state_size());
    }
    return result;
  }

  void run_list(const GatedDeltaRuleForm& form, const std::vector<SequenceSegment>& list,
                std::vector<float>& o, std::size_t threads = 1) const {
    GatedDeltaRuleArgs args{.key_heads = shape.key_heads,
                            .value_heads = shape.value_heads,
                            .key_dim = shape.key_dim,
                            .value_dim = shape.value_dim};
    args.q = {q.data(), key_stride};
    args.k = {k.data(), key_stride};
    args.v = {v.data(), value_stride};
    args.a = {a.data(), gate_stride};
    args.b = {b.data(), gate_stride};
    args.decay = decay.data();
    args.dt_bias = dt_bias.data();
    args.o = {o.data(), value_stride};
    args.segments = list;
    device::ThreadPool pool(threads);
    device::Arena arena;
    form.run({pool, arena}, args);
  }

  std::vector<float> row(const Result& result, std::size_t token) const {
    const auto begin = result.o.begin() + static_cast<std::ptrdiff_t>(token * value_stride);
    return {begin, begin + static_cast<std::ptrdiff_t>(shape.value_heads * shape.value_dim)};
  }

  Shape shape;
  std::size_t key_stride, value_stride, gate_stride;
  std::vector<float> q, k, v, a, b, decay, dt_bias;

 private:
  std::size_t tokens_;
};

/// The contract in double precision for one head, and the largest norm that a state column ever had.
class ExactHead {
 public:
  ExactHead(const Batch& batch, const TestSegment& segment, std::size_t head)
      : batch_(batch), head_(head), state_(batch.shape.key_dim * batch.shape.value_dim) {
    if (segment.initial) {
      const auto begin = segment.initial->begin() + static_cast<std::ptrdiff_t>(head * state_.size());
      std::copy_n(begin, state_.size(), state_.begin());
    }
    see_norms(0);
  }

  /// o of the token, after it.
  std::vector<double> step(std::size_t token) {
    const std::size_t dk = batch_.shape.key_dim, dv = batch_.shape.value_dim;
    const std::size_t key_head = head_ / (batch_.shape.value_heads / batch_.shape.key_heads);
    std::vector<double> k = normalised(batch_.k, token * batch_.key_stride + key_head * dk);
    std::vector<double> q = normalised(batch_.q, token * batch_.key_stride + key_head * dk);
    const double a =
        static_cast<double>(batch_.a[token * batch_.gate_stride + head_]) + batch_.dt_bias[head_];
    const double keep = std::exp(batch_.decay[head_] * (a > 20 ? a : std::log1p(std::exp(a))));
    const double b = batch_.b[token * batch_.gate_stride + head_];
    const double write = 1 / (1 + std::exp(-b));
    std::vector<double> o(dv);
    double largest = 0;
    for (std::size_t j = 0; j < dv; ++j) {
      double read = 0;
      for (std::size_t i = 0; i < dk; ++i) read += (state_[i * dv + j] *= keep) * k[i];
      const double v = batch_.v[token * batch_.value_stride + head_ * dv + j];
      largest = std::max(largest, std::abs(v));
      for (std::size_t i = 0; i < dk; ++i) {
        state_[i * dv + j] += k[i] * write * (v - read);
        o[j] += state_[i * dv + j] * q[i] / std::sqrt(static_cast<double>(dk));
      }
    }
    see_norms(largest);
    return o;
  }

  const std::vector<double>& state() const { return state_; }

  /// What an fp32 form may be away by, in o and in S: units in the last place of the largest column that the
  /// state had. Every step is a contraction but for the value that it writes, so rounding errors are carried
  /// on and do not grow. Over 2,000 tokens the forms show up to 13 units; the reference shows as many.
  double bound() const { return 0x1p-24 * 64 * norm_ + 1e-36; }

 private:
  std::vector<double> normalised(const std::vector<float>& values, std::size_t at) const {
    std::vector<double> y(values.begin() + static_cast<std::ptrdiff_t>(at),
                          values.begin() + static_cast<std::ptrdiff_t>(at + batch_.shape.key_dim));
    double squares = 0;
    for (const double value : y) squares += value * value;
    for (double& value : y) value /= std::sqrt(squares + 1e-6);
    return y;
  }

  void see_norms(double value) {
    const std::size_t dv = batch_.shape.value_dim;
    norm_ = std::max(norm_, value);
    for (std::size_t j = 0; j < dv; ++j) {
      double squares = 0;
      for (std::size_t i = 0; i < batch_.shape.key_dim; ++i)
        squares += state_[i * dv + j] * state_[i * dv + j];
      norm_ = std::max(norm_, std::sqrt(squares));
    }
  }

  const Batch& batch_;
  std::size_t head_;
  std::vector<double> state_;
  double norm_ = 0;
};

void expect_close(const Batch& batch, const std::vector<TestSegment>& segments, const Result& result) {
  for (std::size_t index = 0; index < segments.size(); ++index) {
    const TestSegment& segment = segments[index];
    for (std::size_t head = 0; head < batch.shape.value_heads; ++head) {
      ExactHead exact(batch, segment, head);
      for (std::size_t t = 0; t < segment.length; ++t) {
        const std::vector<double> o = exact.step(segment.first + t);
        const std::vector<float> row = batch.row(result, segment.first + t);
        for (std::size_t j = 0; j < o.size(); ++j) {
          ASSERT_NEAR(row[head * o.size() + j], o[j], exact.bound()) << "head " << head << " token " << t;
        }
      }
      for (std::size_t i = 0; i < exact.state().size(); ++i) {
        ASSERT_NEAR(result.finals[index][head * exact.state().size() + i], exact.state()[i], exact.bound())
            << "head " << head << " state " << i;
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
class GatedDeltaRule : public testing::TestWithParam<const GatedDeltaRuleForm*> {
 protected:
  template <class Body>
  void on_targets(const Body& body) const {
    if (form().info.name == "reference") {
      body();
    } else {
      for_each_target(body);
    }
  }
  const GatedDeltaRuleForm& form() const { return *GetParam(); }
};

std::vector<const GatedDeltaRuleForm*> all_forms() {
  std::vector<const GatedDeltaRuleForm*> forms;
  for (const GatedDeltaRuleForm& form : gated_delta_rule_forms()) forms.push_back(&form);
  return forms;
}

INSTANTIATE_TEST_SUITE_P(Forms, GatedDeltaRule, testing::ValuesIn(all_forms()),
                         [](const auto& info) { return std::string(info.param->info.name); });

TEST_P(GatedDeltaRule, AgreesWithDoublePrecisionOverShapes) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{1, 3, 7, 5}, Shape{2, 4, 16, 33}, Shape{2, 2, 128, 128},
                             Shape{1, 2, 40, 130}, Shape{3, 3, 64, 20}, Shape{2, 4, 66, 17}}) {
    SCOPED_TRACE(shape.key_dim);
    const Batch batch(shape, 60);
    const std::vector<TestSegment> segments = {
        {1, 37, batch.random_state()}, {38, 0, batch.random_state()}, {40, 3}, {44, 16}};
    on_targets([&] { expect_close(batch, segments, batch.run(form(), segments, 2)); });
  }
}

TEST_P(GatedDeltaRule, AgreesWithDoublePrecisionAtEveryRemainder) {
  const std::size_t longest = 2 * std::max<std::size_t>(form().chunk, 32) + 1;
  const Batch batch({1, 2, 6, 5}, longest);
  const State initial = batch.random_state();
  for (std::size_t length = 0; length <= longest; ++length) {
    SCOPED_TRACE(length);
    const std::vector<TestSegment> segments = {{0, length, initial}};
    expect_close(batch, segments, batch.run(form(), segments));
  }
}

TEST_P(GatedDeltaRule, DoesNotDriftOverLongSequences) {
  for (const bool slow : {false, true}) {
    SCOPED_TRACE(slow);
    Batch batch({1, 1, 32, 24}, 2000);
    if (slow) {  // Hardly any decay, and strong writes along keys that resemble each other.
      std::fill(batch.decay.begin(), batch.decay.end(), -1e-4f);
      std::fill(batch.b.begin(), batch.b.end(), 20.0f);
      for (std::size_t i = batch.key_stride; i < batch.k.size(); ++i) {
        batch.k[i] = batch.k[i % batch.key_stride] + 0.3f * batch.k[i];
      }
    }
    const std::vector<TestSegment> segments = {{0, 2000}};
    expect_close(batch, segments, batch.run(form(), segments));
  }
}

TEST_P(GatedDeltaRule, ACutAtAMultipleOfTheChunkChangesNothing) {
  on_targets([&] {
    const std::size_t chunk = form().chunk;
    const std::size_t length = chunk == 1 ? 70 : 2 * chunk + 5;
    const Batch batch({1, 2, 20, 36}, length);
    const State initial = batch.random_state();
    const Result whole = batch.run(form(), {{0, length, initial}});
    for (std::size_t cut = 0; cut <= length; cut += chunk) {
      const Result head = batch.run(form(), {{0, cut, initial}});
      const Result tail = batch.run(form(), {{cut, length - cut, head.finals[0]}});
      EXPECT_TRUE(same_bits(whole.finals[0], tail.finals[0])) << cut;
      for (std::size_t t = 0; t < length; ++t) {
        EXPECT_TRUE(same_bits(batch.row(whole, t), batch.row(t < cut ? head : tail, t))) << cut << " " << t;
      }
    }
  });
}

TEST_P(GatedDeltaRule, BatchMatesAndThreadsChangeNothing) {
  on_targets([&] {
    const Batch batch({2, 4, 24, 40}, 190);
    const std::vector<TestSegment> segments = {
        {0, 5}, {5, 140, batch.random_state()}, {145, 1, batch.random_state()}, {146, 0}, {150, 33}};
    const Result together = batch.run(form(), segments, 1);
    for (const std::size_t threads : {2u, 3u}) {
      const Result again = batch.run(form(), segments, threads);
      EXPECT_TRUE(same_bits(together.o, again.o));
      EXPECT_EQ(together.finals, again.finals);
    }
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const Result alone = batch.run(form(), {segments[i]});
      EXPECT_TRUE(same_bits(together.finals[i], alone.finals[0])) << i;
      for (std::size_t t = segments[i].first; t < segments[i].first + segments[i].length; ++t) {
        EXPECT_TRUE(same_bits(batch.row(together, t), batch.row(alone, t))) << t;
      }
    }
  });
}

TEST_P(GatedDeltaRule, ManySiblingsStartFromOneStateAndLeaveItAlone) {
  const Batch batch({1, 2, 12, 10}, 220);
  const State initial = batch.random_state();
  State shared = initial;
  std::vector<SequenceSegment> list;
  std::vector<State> finals(20, State(initial.size()));
  for (std::size_t i = 0, first = 0; i < finals.size(); first += i, ++i) {
    list.push_back({.first = first, .length = i, .initial = shared.data(), .final = finals[i].data()});
  }
  std::vector<float> o(batch.v.size() + kGap, kGuard);
  batch.run_list(form(), list, o, 2);
  EXPECT_EQ(shared, initial);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Result alone = batch.run(form(), {{list[i].first, list[i].length, initial}});
    EXPECT_TRUE(same_bits(finals[i], alone.finals[0])) << i;
  }
}

TEST_P(GatedDeltaRule, NoInitialStateIsAZeroState) {
  on_targets([&] {
    const Batch batch({2, 2, 20, 33}, 50);
    const Result without = batch.run(form(), {{0, 50}});
    const Result zeros = batch.run(form(), {{0, 50, State(batch.shape.state_size())}});
    EXPECT_TRUE(same_bits(without.o, zeros.o));
    EXPECT_TRUE(same_bits(without.finals[0], zeros.finals[0]));
  });
}

TEST_P(GatedDeltaRule, AnEmptySegmentCopiesItsState) {
  const Batch batch({2, 4, 9, 11}, 1);
  const State initial = batch.random_state();
  const Result result = batch.run(form(), {{0, 0, initial}, {0, 0}});
  EXPECT_TRUE(same_bits(result.finals[0], initial));
  EXPECT_TRUE(same_bits(result.finals[1], State(batch.shape.state_size())));
  EXPECT_THAT(result.o, testing::Each(kGuard));
}

TEST_P(GatedDeltaRule, TheFinalStateIsOptional) {
  const Batch batch({1, 2, 16, 16}, 40);
  std::vector<float> o(batch.v.size() + kGap, kGuard);
  batch.run_list(form(), {{.first = 0, .length = 40, .initial = nullptr, .final = nullptr}}, o);
  EXPECT_TRUE(same_bits(o, batch.run(form(), {{0, 40}}).o));
}

TEST_P(GatedDeltaRule, NothingToDoIsAllowed) {
  const Batch batch({1, 2, 16, 16}, 2);
  EXPECT_THAT(batch.run(form(), {}).o, testing::Each(kGuard));
}

TEST_P(GatedDeltaRule, TouchesNothingBetweenRowsNorOutsideItsSegments) {
  const Batch batch({1, 3, 10, 21}, 40);
  const Result result = batch.run(form(), {{2, 17}, {25, 3}});
  for (std::size_t i = 0; i < result.o.size(); ++i) {
    const std::size_t token = i / batch.value_stride;
    const bool inside =
        i % batch.value_stride < 63 && ((token >= 2 && token < 19) || (token >= 25 && token < 28));
    if (!inside) {
      ASSERT_EQ(result.o[i], kGuard) << i;
    }
  }
}

/// What a row of gates holds at token t of the extreme cases.
struct ExtremeGates {
  const char* name;
  std::function<float(std::size_t)> a;
  std::function<float(std::size_t)> b;
};

TEST_P(GatedDeltaRule, ExtremeGatesStayWithinTheBound) {
  const auto always = [](float value) { return [value](std::size_t) { return value; }; };
  const std::vector<ExtremeGates> cases = {
      {"forgets all", always(1e4f), always(0.0f)},
      {"forgets all, infinitely", always(kInfinity), always(0.0f)},
      {"keeps all", always(-1e4f), always(0.0f)},
      {"keeps all, infinitely", always(-kInfinity), always(0.0f)},
      {"writes all", always(0.0f), always(1e4f)},
      {"writes nothing", always(0.0f), always(-1e4f)},
      {"keeps all, writes all", always(-1e4f), always(kInfinity)},
      {"keeps all, writes nothing", always(-kInfinity), always(-kInfinity)},
      // Differences of running sums of log-decays would lose the digits of the small ones here.
      {"forgets all now and then", [](std::size_t t) { return t % 9 == 4 ? 3e4f : -3.0f; }, always(2.0f)},
      {"forgets almost all", always(30.0f), always(2.0f)},
      {"fades through the subnormal numbers", always(1.0f),
       [](std::size_t t) { return t == 0 ? 9.0f : -1e4f; }},
  };
  for (const ExtremeGates& extreme : cases) {
    SCOPED_TRACE(extreme.name);
    Batch batch({1, 1, 20, 18}, 150);
    for (std::size_t t = 0; t < 150; ++t) {
      batch.a[t * batch.gate_stride] = extreme.a(t);
      batch.b[t * batch.gate_stride] = extreme.b(t);
    }
    const std::vector<TestSegment> segments = {{0, 150, batch.random_state()}};
    on_targets([&] { expect_close(batch, segments, batch.run(form(), segments)); });
  }
}

TEST_P(GatedDeltaRule, ZeroAndRepeatedKeysStayWithinTheBound) {
  for (const bool repeated : {false, true}) {
    SCOPED_TRACE(repeated);
    Batch batch({1, 1, 20, 18}, 150);
    std::fill(batch.b.begin(), batch.b.end(), 1e4f);
    std::fill(batch.a.begin(), batch.a.end(), -1e4f);
    for (std::size_t i = 0; i < batch.k.size(); ++i) {
      if (repeated) {
        batch.k[i] = batch.k[i % batch.key_stride];
      } else if (i / batch.key_stride % 3 != 1) {
        batch.k[i] = batch.q[i] = 0.0f;
      }
    }
    const std::vector<TestSegment> segments = {{0, 150, batch.random_state()}};
    on_targets([&] { expect_close(batch, segments, batch.run(form(), segments)); });
  }
}

TEST_P(GatedDeltaRule, NonFiniteInputsShowWhereTheReferenceShowsThem) {
  constexpr std::size_t kBadToken = 21, kTokens = 50;
  const GatedDeltaRuleForm& reference = gated_delta_rule_forms().front();
  for (const float bad : {kNan, kInfinity}) {
    for (std::vector<float> Batch::*input : {&Batch::q, &Batch::k, &Batch::v, &Batch::a, &Batch::b}) {
      Batch batch({1, 2, 12, 20}, kTokens);
      const std::size_t stride = (batch.*input).size() / kTokens;
      (batch.*input)[kBadToken * stride + 1] = bad;
      const Result expected = batch.run(reference, {{0, kTokens}});
      on_targets([&] {
        const Result result = batch.run(form(), {{0, kTokens}});
        for (std::size_t i = 0; i < result.o.size(); ++i) {
          ASSERT_EQ(std::isfinite(result.o[i]), std::isfinite(expected.o[i])) << "at " << i;
          ASSERT_LE(std::isnan(result.o[i]), std::isnan(expected.o[i])) << "at " << i;
        }
        for (std::size_t i = 0; i < batch.shape.state_size(); ++i) {
          ASSERT_EQ(std::isfinite(result.finals[0][i]), std::isfinite(expected.finals[0][i]))
              << "state " << i;
        }
      });
    }
  }
}

TEST_P(GatedDeltaRule, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(Batch({2, 3, 8, 8}, 1).run(form(), {}), Error);
  EXPECT_THROW(Batch({1, 1, 0, 8}, 1).run(form(), {}), Error);
  EXPECT_THROW(Batch({1, 1, 8, 0}, 1).run(form(), {}), Error);
}

TEST(GatedDeltaRuleForms, TheReferenceComesFirstAndChunksAreThoseOfTheNames) {
  std::vector<std::string> names;
  for (const GatedDeltaRuleForm& form : gated_delta_rule_forms()) {
    names.emplace_back(form.info.name);
    const std::size_t chunk = form.info.name.starts_with("chunk_") ? std::stoul(names.back().substr(6)) : 1;
    EXPECT_EQ(form.chunk, chunk);
  }
  EXPECT_THAT(names,
              testing::ElementsAre("reference", "vector", "chunk_16", "chunk_32", "chunk_64", "chunk_128"));
}

}  // namespace
}  // namespace assay::ops
