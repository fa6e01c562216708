#include "ops/conv_transpose1d/conv_transpose1d.hpp"

#include "base/error.hpp"
#include "ops/conv1d/tests/conv_testing.hpp"
#include "ops/conv_transpose1d/polyphase.hpp"

namespace assay::ops {
namespace {

struct TransposeCase {
  ConvShape shape;
  std::size_t stride = 1;
  std::size_t length = 1;
  std::size_t padding = 0;
  Extras extras = {};
};

void PrintTo(const TransposeCase& one, std::ostream* out) {
  *out << one.shape.in_channels << "→" << one.shape.out_channels << " k" << one.shape.kernel << " stride "
       << one.stride << " length " << one.length << " padding " << one.padding;
}

std::size_t rows_of(const TransposeCase& one) {
  const ConvTranspose1dWeight weight{.shape = one.shape, .stride = one.stride};
  return conv_transpose1d_length({.length = one.length, .w = &weight, .padding = one.padding});
}

ConvTranspose1dArgs arguments(const TransposeCase& one, const ConvInputs& inputs,
                              const ConvTranspose1dWeight& weight, Guarded& y) {
  return {.x = {inputs.x.data(), one.shape.in_channels},
          .length = one.length,
          .w = &weight,
          .padding = one.padding,
          .fusion = inputs.fusion(one.extras, one.shape.out_channels),
          .y = {y.data(), one.shape.out_channels}};
}

std::vector<float> run(const ConvTranspose1dForm& form, std::size_t threads, const TransposeCase& one,
                       const ConvInputs& inputs) {
  Machine machine(threads);
  const ConvTranspose1dWeight weight = form.pack(one.shape, one.stride, inputs.rows_of_w(one.shape));
  EXPECT_EQ(weight.data.size(), form.packed_bytes(one.shape, one.stride));
  EXPECT_EQ(weight.form, &form);
  Guarded y(rows_of(one) * one.shape.out_channels);
  conv_transpose1d(machine.context, arguments(one, inputs, weight, y));
  EXPECT_TRUE(y.intact());
  return {y.span().begin(), y.span().end()};
}

/// AMX's loops on emulated tile registers, which every machine has.
std::vector<float> run_on_emulated_tiles(std::size_t threads, const TransposeCase& one,
                                         const ConvInputs& inputs) {
  const taps::Kernel& kernel = taps::kAmxKernel<panels::EmulatedTiles>;
  Machine machine(threads);
  const ConvTranspose1dWeight weight =
      polyphase::pack(kernel, one.shape, one.stride, inputs.rows_of_w(one.shape));
  EXPECT_EQ(weight.data.size(), polyphase::packed_bytes(kernel, one.shape, one.stride));
  Guarded y(rows_of(one) * one.shape.out_channels);
  polyphase::run(kernel, machine.context, arguments(one, inputs, weight, y));
  EXPECT_TRUE(y.intact());
  return {y.span().begin(), y.span().end()};
}

/// The contract from the side of x, as a transposed convolution is usually told: every row of x adds its
/// products to `kernel` rows of y.
std::vector<ExactSum> exact_sums(const TransposeCase& one, const ConvInputs& inputs) {
  const ConvShape& shape = one.shape;
  const ConvFusion fusion = inputs.fusion(one.extras, shape.out_channels);
  std::vector<ExactSum> sums(rows_of(one) * shape.out_channels);
  for (std::size_t t = 0; t < one.length; ++t) {
    for (std::size_t j = 0; j < shape.kernel; ++j) {
      const std::size_t place = t * one.stride + j;
      if (place < one.padding || place - one.padding >= rows_of(one)) continue;
      for (std::size_t o = 0; o < shape.out_channels; ++o) {
        for (std::size_t c = 0; c < shape.in_channels; ++c) {
          sums[(place - one.padding) * shape.out_channels + o].add(
              inputs.w[o * shape.row_size() + j * shape.in_channels + c],
              exact_input(inputs, shape, fusion, t, c));
        }
      }
    }
  }
  return sums;
}

void expect_near(Precision precision, const TransposeCase& one, const ConvInputs& inputs,
                 std::span<const ExactSum> sums, std::span<const float> y) {
  const ConvFusion fusion = inputs.fusion(one.extras, one.shape.out_channels);
  ASSERT_EQ(y.size(), sums.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t row = i / one.shape.out_channels;
    const std::size_t o = i % one.shape.out_channels;
    ASSERT_TRUE(is_near_sum(y[i], sums[i], fusion, row, o, precision))
        << testing::PrintToString(one) << ", row " << row << ", channel " << o;
  }
}

std::vector<TransposeCase> edge_cases() {
  std::vector<TransposeCase> cases;
  for (const std::size_t stride : {1u, 2u, 3u, 4u, 6u, 10u}) {
    for (const std::size_t length : {0u, 1u, 2u, 13u, 17u}) {
      cases.push_back({{5, 6, 2 * stride}, stride, length, (stride + 1) / 2, kAll});
    }
  }
  for (const std::size_t channels : {1u, 2u, 3u, 15u, 16u, 17u, 31u, 32u, 33u}) {
    cases.push_back({{channels, 5, 4}, 2, 9, 1, kAll});
    cases.push_back({{7, channels, 4}, 2, 9, 1, kPlain});
  }
  cases.push_back({{4, 3, 7}, 3, 11, 2, kAll});   // phases of two and of three taps
  cases.push_back({{4, 3, 2}, 5, 6, 0, kAll});    // phases without a tap
  cases.push_back({{4, 3, 3}, 3, 6, 0, kPlain});  // one tap each
  cases.push_back({{4, 3, 4}, 2, 5, 4, kPlain});  // more than a row of x cut off
  cases.push_back({{3, 2, 4}, 2, 1, 2, kPlain});  // nothing left
  cases.push_back({{40, 290, 4}, 2, 30, 1, kAll});
  return cases;
}

/// Every form on every case.
void expect_all_near(const std::vector<TransposeCase>& cases) {
  for (const TransposeCase& one : cases) {
    const ConvInputs inputs(one.shape, one.length, rows_of(one), 3);
    const std::vector<ExactSum> sums = exact_sums(one, inputs);
    for_each_form(conv_transpose1d_forms(), [&](const ConvTranspose1dForm& form) {
      expect_near(form.info.precision, one, inputs, sums, run(form, 2, one, inputs));
    });
    expect_near(Precision::bf16, one, inputs, sums, run_on_emulated_tiles(2, one, inputs));
  }
}

TEST(ConvTranspose1d, EveryEdgeIsWithinItsBoundOfDoubles) {
  expect_all_near(edge_cases());
}

TEST(ConvTranspose1d, RandomShapesAreWithinTheirBoundOfDoubles) {
  std::mt19937 random(12);
  const auto draw = [&](std::size_t low, std::size_t high) { return low + random() % (high - low + 1); };
  std::vector<TransposeCase> cases;
  for (int i = 0; i < 25; ++i) {
    const auto flags = random();
    const std::size_t kernel = draw(1, 12);
    cases.push_back({{draw(1, 60), draw(1, 60), kernel},
                     draw(1, 8),
                     draw(1, 40),
                     draw(0, kernel / 2),
                     {(flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0}});
  }
  expect_all_near(cases);
}

TEST(ConvTranspose1d, TheBitsAreTheSameOnAnyThreadsAndWhereverARowIs) {
  const TransposeCase one{{40, 70, 8}, 4, 130, 2, {true, true, true, false}};
  const ConvInputs inputs(one.shape, one.length, rows_of(one), 6);
  for_each_form(conv_transpose1d_forms(), [&](const ConvTranspose1dForm& form) {
    const auto whole = run(form, 1, one, inputs);
    EXPECT_TRUE(same_bits(run(form, 2, one, inputs), whole));
    EXPECT_TRUE(same_bits(run(form, 5, one, inputs), whole));
    for (const std::size_t first : {1u, 40u, 77u}) {
      TransposeCase cut = one;
      cut.length = 50;
      ConvInputs part = inputs;
      part.x.assign(inputs.x.begin() + static_cast<std::ptrdiff_t>(first * 70),
                    inputs.x.begin() + static_cast<std::ptrdiff_t>((first + 50) * 70));
      const auto y = run(form, 1, cut, part);
      EXPECT_TRUE(same_bits(std::span(y).subspan(4 * 40, 190 * 40),
                            std::span(whole).subspan((first * 4 + 4) * 40, 190 * 40)));
    }
  });
}

TEST(ConvTranspose1d, TheBitsOfTilesAreTheSameOnAnyThreads) {
  const TransposeCase one{{40, 70, 8}, 4, 130, 2, kAll};
  const ConvInputs inputs(one.shape, one.length, rows_of(one), 6);
  const auto whole = run_on_emulated_tiles(1, one, inputs);
  EXPECT_TRUE(same_bits(run_on_emulated_tiles(2, one, inputs), whole));
  EXPECT_TRUE(same_bits(run_on_emulated_tiles(5, one, inputs), whole));
}

TEST(ConvTranspose1d, ANaNReachesTheRowsWhoseTapsSeeItAndNoOthers) {
  const TransposeCase one{{33, 17, 4}, 2, 60, 1, kPlain};
  for (const float bad : {kNan, kInfinity}) {
    ConvInputs inputs(one.shape, one.length, rows_of(one), 10);
    inputs.x[27 * 17 + 4] = bad;
    for_each_form(conv_transpose1d_forms(), [&](const ConvTranspose1dForm& form) {
      const auto y = run(form, 1, one, inputs);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t u = i / 33;
        EXPECT_EQ(std::isfinite(y[i]), u < 53 || u > 56) << u;
      }
    });
  }
}

TEST(ConvTranspose1d, AKernelOrStrideOfZeroIsRefused) {
  const auto refused = [](const TransposeCase& one) {
    try {
      rows_of(one);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::invalid_argument;
    }
    return false;
  };
  EXPECT_TRUE(refused({{1, 1, 0}, 1, 5}));
  EXPECT_TRUE(refused({{1, 1, 1}, 0, 5}));
}

}  // namespace
}  // namespace assay::ops
