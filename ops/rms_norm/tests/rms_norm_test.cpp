#include "ops/rms_norm/rms_norm.hpp"

#include "ops/tests/op_testing.hpp"

namespace assay::ops {
namespace {

/// Sizes and strides of a case, with room between rows and groups.
struct Shape {
  std::size_t rows = 1;
  std::size_t groups = 1;
  std::size_t dim = 1;
  bool gated = false;
  std::size_t gap = 0;  ///< between groups and again at the end of each row

  std::size_t group_stride() const { return dim + gap; }
  std::size_t row_stride() const { return groups * group_stride() + gap; }
};

struct Inputs {
  std::vector<float> x, w, gate;
};

Inputs random_inputs(const Shape& shape, unsigned seed) {
  return {random_floats(shape.rows * shape.row_stride(), seed), random_floats(shape.dim, seed + 1),
          random_floats(shape.rows * shape.groups * shape.dim, seed + 2, -20, 20)};
}

constexpr float kEpsilon = 1e-6f;

RmsNormArgs arguments(const Shape& shape, const Inputs& inputs, float* y) {
  RmsNormArgs args;
  args.rows = shape.rows;
  args.groups = shape.groups;
  args.dim = shape.dim;
  args.x = {inputs.x.data(), shape.row_stride()};
  args.x_group_stride = shape.gap == 0 ? 0 : shape.group_stride();
  args.w = inputs.w.data();
  args.eps = kEpsilon;
  if (shape.gated) args.gate = {inputs.gate.data(), shape.groups * shape.dim};
  args.y = {y, shape.row_stride()};
  args.y_group_stride = args.x_group_stride;
  return args;
}

std::vector<float> run(const RmsNormForm& form, std::size_t threads, const Shape& shape,
                       const Inputs& inputs) {
  Machine machine(threads);
  Guarded y(inputs.x.size());
  form.run(machine.context, arguments(shape, inputs, y.data()));
  EXPECT_TRUE(y.intact());
  return {y.span().begin(), y.span().end()};
}

/// The contract in double; where nothing is written, the sentinel.
std::vector<double> exact(const Shape& shape, const Inputs& inputs) {
  std::vector<double> y(inputs.x.size(), static_cast<double>(Guarded::kSentinel));
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t group = 0; group < shape.groups; ++group) {
      const std::size_t first = row * shape.row_stride() + group * shape.group_stride();
      double sum = 0;
      for (std::size_t i = 0; i < shape.dim; ++i)
        sum += std::pow(static_cast<double>(inputs.x[first + i]), 2);
      const double scale =
          1 / std::sqrt(sum / static_cast<double>(shape.dim) + static_cast<double>(kEpsilon));
      for (std::size_t i = 0; i < shape.dim; ++i) {
        const double value = inputs.x[first + i] * scale * inputs.w[i];
        const double gate = inputs.gate[(row * shape.groups + group) * shape.dim + i];
        y[first + i] = shape.gated ? value * exact_silu(gate) : value;
      }
    }
  }
  return y;
}

/// The sum of squares in any order is within dim half ulps, its root within half of that; then a dozen
/// roundings for the scale, the products and silu.
double relative_bound(std::size_t dim) {
  return (static_cast<double>(dim) / 2 + 16) * kHalfUlp;
}

void expect_near(std::span<const float> actual, std::span<const double> expected, std::size_t dim) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(is_near(actual[i], expected[i], relative_bound(dim), 1e-36)) << i << ", dim " << dim;
  }
}

TEST(RmsNorm, EveryShapeIsWithinItsBoundOfDoubles) {
  for_each_form(rms_norm_forms(), [&](const RmsNormForm& form) {
    for (const std::size_t dim :
         {1u, 3u, 4u, 5u, 8u, 9u, 15u, 16u, 17u, 31u, 32u, 33u, 63u, 64u, 65u, 128u, 255u, 2560u}) {
      for (const std::size_t rows : {0u, 1u, 3u}) {
        for (const Shape& shape : {Shape{rows, 1, dim, false, 0}, Shape{rows, 3, dim, true, 0},
                                   Shape{rows, 2, dim, false, 5}, Shape{rows, 4, dim, true, 1}}) {
          const Inputs inputs = random_inputs(shape, static_cast<unsigned>(dim));
          expect_near(run(form, 2, shape, inputs), exact(shape, inputs), dim);
        }
      }
    }
  });
}

TEST(RmsNorm, ADimensionOfZeroWritesNothing) {
  for_each_form(rms_norm_forms(), [&](const RmsNormForm& form) {
    const Shape shape{2, 2, 0, false, 3};
    const auto y = run(form, 1, shape, random_inputs(shape, 1));
    EXPECT_TRUE(std::ranges::all_of(y, [](float value) { return value == Guarded::kSentinel; }));
  });
}

TEST(RmsNorm, InPlaceHasTheSameBits) {
  Machine machine(1);
  for_each_form(rms_norm_forms(), [&](const RmsNormForm& form) {
    for (const Shape& shape : {Shape{3, 1, 67, false, 0}, Shape{3, 2, 33, true, 0}}) {
      Inputs inputs = random_inputs(shape, 9);
      const auto apart = run(form, 1, shape, inputs);
      form.run(machine.context, arguments(shape, inputs, inputs.x.data()));
      EXPECT_TRUE(same_bits(inputs.x, apart));
    }
  });
}

TEST(RmsNorm, ARowHasTheSameBitsAloneInABatchAndWithAnyThreads) {
  for_each_form(rms_norm_forms(), [&](const RmsNormForm& form) {
    const Shape shape{23, 3, 1111, true, 2};
    const Inputs inputs = random_inputs(shape, 10);
    const auto whole = run(form, 1, shape, inputs);
    EXPECT_TRUE(same_bits(run(form, 2, shape, inputs), whole));
    EXPECT_TRUE(same_bits(run(form, 5, shape, inputs), whole));
    Shape one = shape;
    one.rows = 1;
    for (const std::size_t row : {0u, 7u, 22u}) {
      const auto slice = [row](const std::vector<float>& values, std::size_t stride) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * stride);
        return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(stride));
      };
      const Inputs alone{slice(inputs.x, shape.row_stride()), inputs.w,
                         slice(inputs.gate, shape.groups * shape.dim)};
      EXPECT_TRUE(same_bits(run(form, 1, one, alone), slice(whole, shape.row_stride())));
    }
  });
}

TEST(RmsNorm, ExtremesEndAsInTheReference) {
  const RmsNormForm& reference = rms_norm_forms().front();
  const std::vector<std::vector<float>> places = {
      {1e30f, -1e30f},  // the sum of squares is infinite, so the vector becomes 0
      {kInfinity, 1.0f}, {-kInfinity, kInfinity}, {kNan, 0.0f},
      {1e-45f, -1e-40f}, {0.0f, -0.0f},           {1e19f, 1e19f}};
  for_each_form(rms_norm_forms(), [&](const RmsNormForm& form) {
    for (const auto& values : places) {
      for (const std::size_t place : {0u, 15u, 16u, 40u}) {
        const Shape shape{3, 1, 43, false, 0};
        Inputs inputs = random_inputs(shape, 11);
        std::ranges::copy(values, inputs.x.begin() + static_cast<std::ptrdiff_t>(shape.dim + place));
        const auto y = run(form, 1, shape, inputs);
        const auto expected = run(reference, 1, shape, inputs);
        for (std::size_t i = 0; i < y.size(); ++i) {
          ASSERT_TRUE(is_near(y[i], expected[i], 2 * relative_bound(shape.dim), 1e-36)) << i;
        }
        const auto neighbours = std::span(y).first(shape.dim);
        EXPECT_TRUE(std::ranges::all_of(neighbours, [](float value) { return std::isfinite(value); }));
      }
    }
  });
}

TEST(RmsNorm, AVectorOfZerosStaysZero) {
  for_each_form(rms_norm_forms(), [&](const RmsNormForm& form) {
    const Shape shape{1, 1, 19, false, 0};
    Inputs inputs = random_inputs(shape, 12);
    std::ranges::fill(inputs.x, 0.0f);
    EXPECT_TRUE(std::ranges::all_of(run(form, 1, shape, inputs), [](float value) { return value == 0; }));
  });
}

}  // namespace
}  // namespace assay::ops
