#include "ops/causal_conv1d/causal_conv1d.hpp"

#include "base/tests/expect_error.hpp"
#include "ops/tests/op_testing.hpp"

namespace assay::ops {
namespace {

struct Layer {
  std::size_t channels;
  std::size_t width;
  std::vector<float> w;

  Layer(std::size_t channel_count, std::size_t kernel)
      : channels(channel_count),
        width(kernel),
        w(random_floats(channel_count * kernel, static_cast<unsigned>(channel_count + kernel))) {}
  std::size_t state_size() const { return (width - 1) * channels; }
  CausalConv1dArgs arguments(const float* x, float* y, std::span<const SequenceSegment> segments) const {
    return {channels, width, w.data(), {x, channels}, {y, channels}, segments};
  }
};

struct Result {
  std::vector<float> y, final;
};

/// One segment over all of x.
Result run(const CausalConv1dForm& form, const Layer& layer, const std::vector<float>& x,
           const float* initial, std::size_t threads = 1) {
  Machine machine(threads);
  Guarded y(x.size());
  Guarded final(layer.state_size());
  const SequenceSegment segment{0, x.size() / layer.channels, initial, final.data()};
  form.run(machine.context, layer.arguments(x.data(), y.data(), {&segment, 1}));
  EXPECT_TRUE(y.intact() && final.intact());
  return {{y.span().begin(), y.span().end()}, {final.span().begin(), final.span().end()}};
}

std::vector<float> join(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> joined = a;
  joined.insert(joined.end(), b.begin(), b.end());
  return joined;
}

std::vector<float> rows_of(const std::vector<float>& values, const Layer& layer, std::size_t first,
                           std::size_t last) {
  return {values.begin() + static_cast<std::ptrdiff_t>(first * layer.channels),
          values.begin() + static_cast<std::ptrdiff_t>(last * layer.channels)};
}

/// The contract in double over the state and the inputs in one row; `weight` receives Σ|w · x|, what the
/// rounding of the sum is relative to.
double exact_sum(const Layer& layer, const std::vector<float>& history, std::size_t t, std::size_t c,
                 double& weight) {
  double sum = 0;
  weight = 0;
  for (std::size_t j = 0; j < layer.width; ++j) {
    const double product = static_cast<double>(layer.w[j * layer.channels + c]) *
                           static_cast<double>(history[(t + j) * layer.channels + c]);
    sum += product;
    weight += std::fabs(product);
  }
  return sum;
}

void expect_exact(const Layer& layer, const std::vector<float>& initial, const std::vector<float>& x,
                  const Result& result) {
  const auto history = join(initial, x);
  const std::size_t length = x.size() / layer.channels;
  for (std::size_t t = 0; t < length; ++t) {
    for (std::size_t c = 0; c < layer.channels; ++c) {
      double weight = 0;
      const double sum = exact_sum(layer, history, t, c, weight);
      // 2 · width roundings of the sum; silu's slope is at most 1.1; 4 ulp of silu itself.
      const double bound = 1.1 * 2 * static_cast<double>(layer.width) * kHalfUlp * weight + 1e-36;
      ASSERT_TRUE(is_near(result.y[t * layer.channels + c], exact_silu(sum), 8 * kHalfUlp, bound))
          << t << " " << c;
    }
  }
  EXPECT_TRUE(same_bits(result.final, rows_of(history, layer, length, length + layer.width - 1)));
}

TEST(CausalConv1d, EveryShapeAndLengthIsWithinItsBoundOfDoubles) {
  for_each_form(causal_conv1d_forms(), [&](const CausalConv1dForm& form) {
    for (const std::size_t width : {2u, 3u, 4u, 8u}) {
      for (const std::size_t channels : {1u, 3u, 4u, 7u, 8u, 15u, 16u, 17u, 33u, 255u, 256u, 257u, 300u}) {
        const Layer layer(channels, width);
        const auto initial = random_floats(layer.state_size(), 5);
        for (const std::size_t length :
             {std::size_t{0}, std::size_t{1}, width - 1, width, width + 1, 2 * width + 1}) {
          const auto x = random_floats(length * channels, 6);
          expect_exact(layer, initial, x, run(form, layer, x, initial.data()));
        }
      }
    }
  });
}

TEST(CausalConv1d, AMissingStateHasTheBitsOfAStateOfZeros) {
  for_each_form(causal_conv1d_forms(), [&](const CausalConv1dForm& form) {
    const Layer layer(300, 4);
    const std::vector<float> zeros(layer.state_size(), 0.0f);
    for (std::size_t length = 0; length <= 9; ++length) {
      const auto x = random_floats(length * layer.channels, 7);
      const Result with = run(form, layer, x, zeros.data());
      const Result without = run(form, layer, x, nullptr);
      EXPECT_TRUE(same_bits(with.y, without.y));
      EXPECT_TRUE(same_bits(with.final, without.final));
    }
  });
}

TEST(CausalConv1d, CutAnywhereWithTheStateCarriedHasTheBitsOfTheWhole) {
  for_each_form(causal_conv1d_forms(), [&](const CausalConv1dForm& form) {
    for (const std::size_t width : {2u, 4u, 8u}) {
      const Layer layer(19, width);
      const auto initial = random_floats(layer.state_size(), 8);
      for (std::size_t length = 0; length <= 2 * width + 1; ++length) {
        const auto x = random_floats(length * layer.channels, 9);
        const Result whole = run(form, layer, x, initial.data());
        for (std::size_t cut = 0; cut <= length; ++cut) {
          const Result head = run(form, layer, rows_of(x, layer, 0, cut), initial.data());
          const Result tail = run(form, layer, rows_of(x, layer, cut, length), head.final.data());
          ASSERT_TRUE(same_bits(join(head.y, tail.y), whole.y)) << width << " " << length << " " << cut;
          ASSERT_TRUE(same_bits(tail.final, whole.final)) << width << " " << length << " " << cut;
        }
      }
    }
  });
}

TEST(CausalConv1d, TokenByTokenHasTheBitsOfTheWhole) {
  for_each_form(causal_conv1d_forms(), [&](const CausalConv1dForm& form) {
    const Layer layer(270, 4);
    const auto x = random_floats(11 * layer.channels, 10);
    const Result whole = run(form, layer, x, nullptr);
    Result so_far{{}, std::vector<float>(layer.state_size(), 0.0f)};
    for (std::size_t t = 0; t < 11; ++t) {
      const Result step = run(form, layer, rows_of(x, layer, t, t + 1), so_far.final.data());
      so_far = {join(so_far.y, step.y), step.final};
    }
    EXPECT_TRUE(same_bits(so_far.y, whole.y));
    EXPECT_TRUE(same_bits(so_far.final, whole.final));
  });
}

/// Siblings from one parent state, of every length about the kernel's, in one call among rows of nobody.
TEST(CausalConv1d, SiblingsOfOneParentAnswerAsIfAlone) {
  const Layer layer(261, 4);
  const auto parent = random_floats(layer.state_size(), 11);
  constexpr std::size_t kSiblings = 10;
  constexpr std::size_t kRows = 60;
  const auto x = random_floats(kRows * layer.channels, 12);
  for_each_form(causal_conv1d_forms(), [&](const CausalConv1dForm& form) {
    for (const std::size_t threads : {1u, 2u, 5u}) {
      Machine machine(threads);
      Guarded y(x.size());
      std::vector<Guarded> finals(kSiblings, Guarded(layer.state_size()));
      std::vector<SequenceSegment> segments;
      std::size_t row = 1;  // row 0 belongs to no segment
      for (std::size_t i = 0; i < kSiblings; row += i, ++i) {
        segments.push_back({row, i, i % 3 == 2 ? nullptr : parent.data(), finals[i].data()});
      }
      segments.back().final = nullptr;
      form.run(machine.context, layer.arguments(x.data(), y.data(), segments));
      EXPECT_TRUE(y.intact());
      for (std::size_t i = 0; i < kSiblings; ++i) {
        const SequenceSegment& segment = segments[i];
        const std::size_t end = segment.first + segment.length;
        const Result alone = run(form, layer, rows_of(x, layer, segment.first, end), segment.initial);
        const auto mine = y.span().subspan(segment.first * layer.channels, segment.length * layer.channels);
        EXPECT_TRUE(same_bits(mine, alone.y)) << i;
        if (segment.final != nullptr) {
          EXPECT_TRUE(same_bits(finals[i].span(), alone.final)) << i;
        }
        EXPECT_TRUE(finals[i].intact());
      }
      const auto unowned = y.span().first(layer.channels);
      EXPECT_TRUE(std::ranges::all_of(unowned, [](float value) { return value == Guarded::kSentinel; }));
    }
  });
}

TEST(CausalConv1d, ASegmentOfLengthZeroCopiesItsState) {
  for_each_form(causal_conv1d_forms(), [&](const CausalConv1dForm& form) {
    const Layer layer(20, 4);
    const auto state = random_floats(layer.state_size(), 13);
    EXPECT_TRUE(same_bits(run(form, layer, {}, state.data()).final, state));
    EXPECT_TRUE(same_bits(run(form, layer, {}, nullptr).final, std::vector<float>(layer.state_size(), 0.0f)));
  });
}

TEST(CausalConv1d, StridesAreKeptAndWhatLiesBetweenRowsIsLeft) {
  const Layer layer(21, 4);
  constexpr std::size_t kLength = 6;
  const auto x = random_floats(kLength * 30, 14);
  std::vector<float> dense;
  for (std::size_t t = 0; t < kLength; ++t)
    dense.insert(dense.end(), &x[t * 30], &x[t * 30] + layer.channels);
  Machine machine(1);
  for_each_form(causal_conv1d_forms(), [&](const CausalConv1dForm& form) {
    Guarded y(kLength * 26);
    const SequenceSegment segment{0, kLength, nullptr, nullptr};
    form.run(machine.context,
             {layer.channels, layer.width, layer.w.data(), {x.data(), 30}, {y.data(), 26}, {&segment, 1}});
    const Result expected = run(form, layer, dense, nullptr);
    EXPECT_TRUE(y.intact());
    for (std::size_t t = 0; t < kLength; ++t) {
      EXPECT_TRUE(same_bits(y.span().subspan(t * 26, layer.channels),
                            std::span(expected.y).subspan(t * layer.channels, layer.channels)));
      EXPECT_TRUE(std::ranges::all_of(y.span().subspan(t * 26 + layer.channels, 26 - layer.channels),
                                      [](float value) { return value == Guarded::kSentinel; }));
    }
  });
}

TEST(CausalConv1d, ThreadsChangeNoBits) {
  const Layer layer(1100, 4);
  const auto x = random_floats(37 * layer.channels, 15, -50, 50);
  for_each_form(causal_conv1d_forms(), [&](const CausalConv1dForm& form) {
    const Result one = run(form, layer, x, nullptr, 1);
    for (const std::size_t threads : {2u, 5u}) {
      const Result many = run(form, layer, x, nullptr, threads);
      EXPECT_TRUE(same_bits(many.y, one.y));
      EXPECT_TRUE(same_bits(many.final, one.final));
    }
  });
}

TEST(CausalConv1d, ANonFiniteInputReachesItsWindowAndChannelAlone) {
  const Layer layer(18, 4);
  for_each_form(causal_conv1d_forms(), [&](const CausalConv1dForm& form) {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      auto x = random_floats(9 * layer.channels, 16);
      x[2 * layer.channels + 17] = bad;
      const Result clean = run(form, layer, random_floats(9 * layer.channels, 16), nullptr);
      const Result result = run(form, layer, x, nullptr);
      for (std::size_t t = 0; t < 9; ++t) {
        for (std::size_t c = 0; c < layer.channels; ++c) {
          const bool touched = c == 17 && t >= 2 && t < 2 + layer.width;
          const std::size_t i = t * layer.channels + c;
          if (!touched) {
            ASSERT_EQ(result.y[i], clean.y[i]);
          } else if (std::isnan(bad)) {
            ASSERT_TRUE(std::isnan(result.y[i]));
          } else {
            // silu of an infinite sum: itself, or 0 below.
            ASSERT_TRUE(result.y[i] == kInfinity || result.y[i] == 0);
          }
        }
      }
    }
  });
}

TEST(CausalConv1d, AKernelLengthOutsideTheContractIsRefused) {
  Machine machine(1);
  for_each_form(causal_conv1d_forms(), [&](const CausalConv1dForm& form) {
    for (const std::size_t width : {0u, 1u, 9u}) {
      const SequenceSegment segment{};
      expect_error(ErrorKind::invalid_argument, "kernel of " + std::to_string(width), [&] {
        form.run(machine.context, {1, width, nullptr, {nullptr, 1}, {nullptr, 1}, {&segment, 1}});
      });
    }
  });
}

}  // namespace
}  // namespace assay::ops
