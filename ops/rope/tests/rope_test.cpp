#include "ops/rope/rope.hpp"
#include "base/dtype.hpp"

#include "base/tests/expect_error.hpp"
#include "ops/tests/op_testing.hpp"

namespace assay::ops {
namespace {

struct Tables {
  std::vector<float> cos, sin;
};

Tables tables(const std::vector<std::int32_t>& positions, std::size_t rotary_dim, float theta) {
  Tables made;
  made.cos.resize(positions.size() * rotary_dim / 2);
  made.sin.resize(made.cos.size());
  rope_table(positions, rotary_dim, theta, made.cos, made.sin);
  return made;
}

std::vector<std::int32_t> some_positions(std::size_t count) {
  std::vector<std::int32_t> positions(count);
  for (std::size_t i = 0; i < count; ++i) positions[i] = static_cast<std::int32_t>(i * i * 7 + i);
  return positions;
}

TEST(RopeTable, FrequenciesAreRoundedToBf16WhereAskedFor) {
  const std::vector<std::int32_t> positions{0, 1, 77};
  std::vector<float> cos(positions.size() * 8);
  std::vector<float> sin(cos.size());
  rope_table(positions, 16, 1e6f, cos, sin, true);
  for (std::size_t row = 0; row < positions.size(); ++row) {
    for (std::size_t i = 0; i < 8; ++i) {
      const float frequency = bf16_to_float(float_to_bf16(1.0f / std::pow(1e6f, static_cast<float>(i) / 8)));
      const float angle = frequency * static_cast<float>(positions[row]);
      EXPECT_EQ(cos[row * 8 + i], std::cos(angle));
      EXPECT_EQ(sin[row * 8 + i], std::sin(angle));
    }
  }
  EXPECT_NE(cos, tables(positions, 16, 1e6f).cos);
}

TEST(RopeTable, AnglesAreProductsOfFp32Numbers) {
  const std::vector<std::int32_t> positions{0, 1, 2, 1000, 8191, 65535};
  for (const float theta : {10'000.0f, 1'000'000.0f, 10'000'000.0f}) {
    const Tables made = tables(positions, 64, theta);
    for (std::size_t row = 0; row < positions.size(); ++row) {
      for (std::size_t i = 0; i < 32; ++i) {
        const float frequency = 1.0f / std::pow(theta, static_cast<float>(2 * i) / 64.0f);
        const auto angle = static_cast<double>(frequency * static_cast<float>(positions[row]));
        EXPECT_TRUE(is_near(made.cos[row * 32 + i], std::cos(angle), 0, 1e-7));
        EXPECT_TRUE(is_near(made.sin[row * 32 + i], std::sin(angle), 0, 1e-7));
      }
    }
  }
}

TEST(RopeTable, PositionZeroTurnsNothing) {
  const Tables made = tables({0}, 64, 10'000.0f);
  EXPECT_TRUE(std::ranges::all_of(made.cos, [](float value) { return value == 1; }));
  EXPECT_TRUE(std::ranges::all_of(made.sin, [](float value) { return value == 0; }));
}

TEST(RopeTable, ARowDoesNotDependOnTheOthers) {
  const auto positions = some_positions(20);
  const Tables whole = tables(positions, 32, 10'000.0f);
  for (std::size_t row = 0; row < positions.size(); ++row) {
    const Tables alone = tables({positions[row]}, 32, 10'000.0f);
    EXPECT_TRUE(same_bits(alone.cos, std::span(whole.cos).subspan(row * 16, 16)));
    EXPECT_TRUE(same_bits(alone.sin, std::span(whole.sin).subspan(row * 16, 16)));
  }
}

TEST(RopeTable, RefusesTablesOfAnotherSizeAndOddDimensions) {
  std::vector<float> values(16);
  const std::vector<std::int32_t> positions{1, 2};
  expect_error(ErrorKind::internal, "rope_table",
               [&] { rope_table(positions, 32, 1e4f, std::span(values).first(16), values); });
  expect_error(ErrorKind::internal, "even", [&] {
    rope_table(positions, 9, 1e4f, std::span(values).first(8), std::span(values).first(8));
  });
}

struct Shape {
  std::size_t rows, heads, head_dim, rotary_dim, gap;
  std::size_t head_stride() const { return head_dim + gap; }
  std::size_t row_stride() const { return heads * head_stride() + gap; }
};

std::vector<float> run(const RopeForm& form, std::size_t threads, const Shape& shape,
                       const std::vector<float>& x, const Tables& angles) {
  Machine machine(threads);
  Guarded turned{std::span<const float>(x)};
  form.run(machine.context, {shape.rows,
                             shape.heads,
                             shape.rotary_dim,
                             {turned.data(), shape.row_stride()},
                             shape.head_stride(),
                             angles.cos.data(),
                             angles.sin.data()});
  EXPECT_TRUE(turned.intact());
  return {turned.span().begin(), turned.span().end()};
}

std::vector<double> exact(const Shape& shape, const std::vector<float>& x, const Tables& angles) {
  std::vector<double> y(x.begin(), x.end());
  const std::size_t half = shape.rotary_dim / 2;
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const std::size_t first = row * shape.row_stride() + head * shape.head_stride();
      for (std::size_t i = 0; i < half; ++i) {
        const double a = x[first + i];
        const double b = x[first + half + i];
        const double c = angles.cos[row * half + i];
        const double s = angles.sin[row * half + i];
        y[first + i] = a * c - b * s;
        y[first + half + i] = b * c + a * s;
      }
    }
  }
  return y;
}

TEST(Rope, EveryShapeTurnsItsPairsAndNothingElse) {
  for_each_form(rope_forms(), [&](const RopeForm& form) {
    for (const std::size_t half : {0u, 1u, 3u, 4u, 7u, 8u, 9u, 15u, 16u, 17u, 32u, 33u, 64u}) {
      for (const std::size_t rows : {0u, 1u, 5u}) {
        const Shape shape{rows, 3, 2 * half + 6, 2 * half, 5};
        const auto x = random_floats(rows * shape.row_stride(), static_cast<unsigned>(half));
        const Tables angles = tables(some_positions(rows), shape.rotary_dim, 10'000.0f);
        const auto y = run(form, 2, shape, x, angles);
        const auto expected = exact(shape, x, angles);
        // Two products and a sum, each rounded, of values up to 2 · √2.
        for (std::size_t i = 0; i < y.size(); ++i) ASSERT_TRUE(is_near(y[i], expected[i], 0, 8 * kHalfUlp));
      }
    }
  });
}

TEST(Rope, EveryFormHasTheReferencesBits) {
  const Shape shape{7, 4, 80, 70, 3};
  const auto x = random_floats(shape.rows * shape.row_stride(), 3, -100, 100);
  const Tables angles = tables(some_positions(shape.rows), shape.rotary_dim, 1'000'000.0f);
  const auto reference = run(rope_forms().front(), 1, shape, x, angles);
  for_each_form(rope_forms(), [&](const RopeForm& form) {
    EXPECT_TRUE(same_bits(run(form, 1, shape, x, angles), reference));
  });
}

TEST(Rope, ARowHasTheSameBitsAloneInABatchAndWithAnyThreads) {
  const Shape shape{40, 16, 256, 64, 0};
  const auto x = random_floats(shape.rows * shape.row_stride(), 4);
  const auto positions = some_positions(shape.rows);
  const Tables angles = tables(positions, shape.rotary_dim, 10'000.0f);
  for_each_form(rope_forms(), [&](const RopeForm& form) {
    const auto whole = run(form, 1, shape, x, angles);
    EXPECT_TRUE(same_bits(run(form, 2, shape, x, angles), whole));
    EXPECT_TRUE(same_bits(run(form, 5, shape, x, angles), whole));
    Shape one = shape;
    one.rows = 1;
    const auto begin = static_cast<std::ptrdiff_t>(17 * shape.row_stride());
    const auto end = static_cast<std::ptrdiff_t>(18 * shape.row_stride());
    EXPECT_TRUE(same_bits(run(form, 1, one, {x.begin() + begin, x.begin() + end},
                              tables({positions[17]}, shape.rotary_dim, 10'000.0f)),
                          std::span(whole).subspan(17 * shape.row_stride(), shape.row_stride())));
  });
}

TEST(Rope, ANonFiniteValueReachesItsPairAlone) {
  const Shape shape{2, 2, 40, 34, 0};
  const Tables angles = tables(some_positions(shape.rows), shape.rotary_dim, 10'000.0f);
  for_each_form(rope_forms(), [&](const RopeForm& form) {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      auto x = random_floats(shape.rows * shape.row_stride(), 5);
      x[16] = bad;
      const auto y = run(form, 1, shape, x, angles);
      for (std::size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(std::isfinite(y[i]), i != 16 && i != 33) << i;
      }
    }
  });
}

}  // namespace
}  // namespace assay::ops
