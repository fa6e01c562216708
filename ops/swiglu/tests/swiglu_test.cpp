#include "ops/swiglu/swiglu.hpp"

#include "ops/tests/op_testing.hpp"

namespace assay::ops {
namespace {

// silu's bound, then one more rounding for the product.
constexpr double kRelative = 5 * 2 * kHalfUlp;
constexpr double kAbsolute = 3e-37;

std::vector<float> run(const SwigluForm& form, std::size_t threads, const std::vector<float>& gate,
                       const std::vector<float>& up, std::size_t rows) {
  Machine machine(threads);
  const std::size_t dim = gate.size() / rows;
  Guarded y(gate.size());
  form.run(machine.context, {rows, dim, {gate.data(), dim}, {up.data(), dim}, {y.data(), dim}});
  EXPECT_TRUE(y.intact());
  return {y.span().begin(), y.span().end()};
}

TEST(Swiglu, SiluIsWithinItsBoundOverAllOfFp32) {
  std::vector<float> gate;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 32749) {
    gate.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (float z = -110; z < 110; z += 0.03f) gate.push_back(z);
  const std::vector<float> ones(gate.size(), 1.0f);
  for_each_form(swiglu_forms(), [&](const SwigluForm& form) {
    const auto y = run(form, 1, gate, ones, 1);
    for (std::size_t i = 0; i < gate.size(); ++i) {
      ASSERT_TRUE(is_near(y[i], exact_silu(gate[i]), 4 * 2 * kHalfUlp, kAbsolute)) << gate[i];
    }
  });
}

TEST(Swiglu, ExtremesAreZeroInfinityOrNan) {
  const std::vector<float> gate{-kInfinity, kInfinity, kNan,    -1e30f, 1e30f, -0.0f,
                                0.0f,       1e-45f,    -1e-45f, -200,   90};
  const std::vector<float> ones(gate.size(), 1.0f);
  for_each_form(swiglu_forms(), [&](const SwigluForm& form) {
    const auto y = run(form, 1, gate, ones, 1);
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_EQ(y[1], kInfinity);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 0.0f);
    EXPECT_EQ(y[4], 1e30f);
    for (std::size_t i = 5; i < y.size(); ++i) {
      EXPECT_TRUE(is_near(y[i], exact_silu(gate[i]), kRelative, kAbsolute)) << gate[i];
    }
  });
}

TEST(Swiglu, EveryShapeIsWithinItsBoundOfDoubles) {
  for_each_form(swiglu_forms(), [&](const SwigluForm& form) {
    for (const std::size_t dim : {0u, 1u, 3u, 4u, 5u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 33u, 100u, 1023u}) {
      for (const std::size_t rows : {1u, 3u}) {
        const auto gate = random_floats(rows * dim, 1, -20, 20);
        const auto up = random_floats(rows * dim, 2);
        const auto y = run(form, 2, gate, up, rows);
        for (std::size_t i = 0; i < y.size(); ++i) {
          ASSERT_TRUE(is_near(y[i], exact_silu(gate[i]) * up[i], kRelative, kAbsolute));
        }
      }
    }
  });
}

TEST(Swiglu, NoRowsWriteNothing) {
  Machine machine(2);
  for_each_form(swiglu_forms(), [&](const SwigluForm& form) {
    Guarded y(8);
    form.run(machine.context, {0, 8, {nullptr, 8}, {nullptr, 8}, {y.data(), 8}});
    EXPECT_TRUE(std::ranges::all_of(y.span(), [](float value) { return value == Guarded::kSentinel; }));
  });
}

TEST(Swiglu, StridesAreKeptAndWhatLiesBetweenRowsIsLeft) {
  constexpr std::size_t kRows = 3;
  constexpr std::size_t kDim = 21;
  const auto gate = random_floats(kRows * 30, 3);
  const auto up = random_floats(kRows * 25, 4);
  Machine machine(1);
  for_each_form(swiglu_forms(), [&](const SwigluForm& form) {
    Guarded y(kRows * 27);
    form.run(machine.context, {kRows, kDim, {gate.data(), 30}, {up.data(), 25}, {y.data(), 27}});
    EXPECT_TRUE(y.intact());
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t i = 0; i < 27; ++i) {
        const float value = y.data()[row * 27 + i];
        if (i >= kDim) {
          ASSERT_EQ(value, Guarded::kSentinel);
        } else {
          ASSERT_TRUE(
              is_near(value, exact_silu(gate[row * 30 + i]) * up[row * 25 + i], kRelative, kAbsolute));
        }
      }
    }
  });
}

TEST(Swiglu, InPlaceOnGateOrUpHasTheSameBits) {
  constexpr std::size_t kDim = 37;
  const auto gate = random_floats(kDim, 5);
  const auto up = random_floats(kDim, 6);
  Machine machine(1);
  for_each_form(swiglu_forms(), [&](const SwigluForm& form) {
    const auto apart = run(form, 1, gate, up, 1);
    auto on_gate = gate;
    form.run(machine.context, {1, kDim, {on_gate.data(), kDim}, {up.data(), kDim}, {on_gate.data(), kDim}});
    EXPECT_TRUE(same_bits(on_gate, apart));
    auto on_up = up;
    form.run(machine.context, {1, kDim, {gate.data(), kDim}, {on_up.data(), kDim}, {on_up.data(), kDim}});
    EXPECT_TRUE(same_bits(on_up, apart));
  });
}

TEST(Swiglu, ARowHasTheSameBitsAloneInABatchAndWithAnyThreads) {
  constexpr std::size_t kRows = 9;
  constexpr std::size_t kDim = 3001;
  const auto gate = random_floats(kRows * kDim, 7, -30, 30);
  const auto up = random_floats(kRows * kDim, 8);
  for_each_form(swiglu_forms(), [&](const SwigluForm& form) {
    const auto whole = run(form, 1, gate, up, kRows);
    EXPECT_TRUE(same_bits(run(form, 2, gate, up, kRows), whole));
    EXPECT_TRUE(same_bits(run(form, 5, gate, up, kRows), whole));
    for (std::size_t row = 0; row < kRows; ++row) {
      const auto slice = [&](const std::vector<float>& values) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * kDim);
        return std::vector<float>(begin, begin + kDim);
      };
      EXPECT_TRUE(same_bits(run(form, 1, slice(gate), slice(up), 1), slice(whole)));
    }
  });
}

}  // namespace
}  // namespace assay::ops
