#include "ops/conv1d/conv1d.hpp"

#include <numeric>

#include "base/error.hpp"
#include "ops/conv1d/tests/conv_testing.hpp"

namespace assay::ops {
namespace {

struct Conv1dCase {
  ConvShape shape;
  std::size_t length = 1;
  std::size_t stride = 1;
  std::size_t dilation = 1;
  std::size_t padding = 0;
  Extras extras = {};
};

/// What a form says of itself to a message.
void PrintTo(const Conv1dCase& one, std::ostream* out) {
  *out << one.shape.in_channels << "→" << one.shape.out_channels << " k" << one.shape.kernel << " length "
       << one.length << " stride " << one.stride << " dilation " << one.dilation << " padding "
       << one.padding;
}

Conv1dArgs arguments(const Conv1dCase& one, const Conv1dWeight& weight) {
  return {.length = one.length,
          .w = &weight,
          .stride = one.stride,
          .dilation = one.dilation,
          .padding = one.padding};
}

std::size_t rows_of(const Conv1dCase& one) {
  const Conv1dWeight weight{.shape = one.shape};
  return conv1d_length(arguments(one, weight));
}

std::vector<float> run(const Conv1dForm& form, std::size_t threads, const Conv1dCase& one,
                       const ConvInputs& inputs) {
  Machine machine(threads);
  const Conv1dWeight weight = form.pack(one.shape, inputs.rows_of_w(one.shape));
  EXPECT_EQ(weight.data.size(), form.packed_bytes(one.shape));
  EXPECT_EQ(weight.form, &form);
  Guarded y(rows_of(one) * one.shape.out_channels);
  Conv1dArgs args = arguments(one, weight);
  args.x = {inputs.x.data(), one.shape.in_channels};
  args.fusion = inputs.fusion(one.extras, one.shape.out_channels);
  args.y = {y.data(), one.shape.out_channels};
  conv1d(machine.context, args);
  EXPECT_TRUE(y.intact());
  return {y.span().begin(), y.span().end()};
}

/// The contract's sums over the taps, in double.
std::vector<ExactSum> exact_sums(const Conv1dCase& one, const ConvInputs& inputs) {
  const ConvFusion fusion = inputs.fusion(one.extras, one.shape.out_channels);
  const ConvShape& shape = one.shape;
  std::vector<ExactSum> sums(rows_of(one) * shape.out_channels);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t t = i / shape.out_channels;
    const float* w = inputs.w.data() + i % shape.out_channels * shape.row_size();
    for (std::size_t j = 0; j < shape.kernel; ++j) {
      const std::size_t row = t * one.stride + j * one.dilation;
      if (row < one.padding || row - one.padding >= one.length) continue;
      for (std::size_t c = 0; c < shape.in_channels; ++c) {
        sums[i].add(w[j * shape.in_channels + c], exact_input(inputs, shape, fusion, row - one.padding, c));
      }
    }
  }
  return sums;
}

void expect_near(Precision precision, const Conv1dCase& one, const ConvInputs& inputs,
                 std::span<const ExactSum> sums, std::span<const float> y) {
  const ConvFusion fusion = inputs.fusion(one.extras, one.shape.out_channels);
  ASSERT_EQ(y.size(), sums.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t t = i / one.shape.out_channels;
    const std::size_t o = i % one.shape.out_channels;
    ASSERT_TRUE(is_near_sum(y[i], sums[i], fusion, t, o, precision))
        << testing::PrintToString(one) << ", row " << t << ", channel " << o;
  }
}

/// AMX's loops on emulated tile registers, which every machine has.
std::vector<float> run_on_emulated_tiles(const Conv1dCase& one, const ConvInputs& inputs) {
  const taps::Kernel& kernel = taps::kAmxKernel<panels::EmulatedTiles>;
  std::vector<std::size_t> indices(one.shape.kernel);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  const auto w = taps::pack(*kernel.layout, one.shape, {&indices, 1}, inputs.rows_of_w(one.shape));
  const taps::Phase phase{.taps = one.shape.kernel, .first_x = -static_cast<std::ptrdiff_t>(one.padding)};
  Machine machine(2);
  Guarded y(rows_of(one) * one.shape.out_channels);
  taps::run(kernel, machine.context,
            {.x = {inputs.x.data(), one.shape.in_channels},
             .length = one.length,
             .w = w.data(),
             .in_channels = one.shape.in_channels,
             .out_channels = one.shape.out_channels,
             .phases = {&phase, 1},
             .positions = rows_of(one),
             .x_step = one.stride,
             .tap_step = one.dilation,
             .rows = rows_of(one),
             .fusion = inputs.fusion(one.extras, one.shape.out_channels),
             .y = {y.data(), one.shape.out_channels}});
  EXPECT_TRUE(y.intact());
  return {y.span().begin(), y.span().end()};
}

/// Edges of every dimension that tiles, panels and steps are cut at.
std::vector<Conv1dCase> edge_cases() {
  std::vector<Conv1dCase> cases;
  for (const std::size_t channels : {1u, 2u, 3u, 15u, 16u, 17u, 31u, 32u, 33u}) {
    cases.push_back({{channels, 5, 3}, 9, 1, 1, 1, kAll});
    cases.push_back({{7, channels, 3}, 9, 1, 2, 2, kPlain});
  }
  for (const std::size_t length : {1u, 5u, 6u, 7u, 11u, 12u, 13u, 15u, 16u, 17u, 31u, 32u, 33u, 65u}) {
    cases.push_back({{4, 3, 7}, length, 1, 1, 3, kAll});
    cases.push_back({{3, 4, 1}, length, 1, 1, 0, {true, false, false, true}});
  }
  for (const std::size_t stride : {2u, 3u, 4u, 6u}) {
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{1}, stride, 3 * stride + 1, std::size_t{40}}) {
      cases.push_back({{6, 5, 2 * stride}, length, stride, 1, (stride + 1) / 2, kAll});
    }
  }
  for (const std::size_t dilation : {1u, 3u, 9u})
    cases.push_back({{34, 33, 7}, 70, 1, dilation, 3 * dilation, kAll});
  cases.push_back({{2, 3, 2}, 9, 5, 1, 0, kPlain});            // rows that no tap reaches
  cases.push_back({{2, 3, 5}, 2, 1, 4, 8, kPlain});            // mostly padding
  cases.push_back({{40, 300, 3}, 20, 1, 1, 1, {true, true}});  // several blocks of a tap's steps
  cases.push_back({{33, 64, 7}, 100, 1, 1, 3, kPlain});
  return cases;
}

/// Every form on every case.
void expect_all_near(const std::vector<Conv1dCase>& cases) {
  for (const Conv1dCase& one : cases) {
    const ConvInputs inputs(one.shape, one.length, rows_of(one), 3);
    const std::vector<ExactSum> sums = exact_sums(one, inputs);
    for_each_form(conv1d_forms(), [&](const Conv1dForm& form) {
      expect_near(form.info.precision, one, inputs, sums, run(form, 2, one, inputs));
    });
    expect_near(Precision::bf16, one, inputs, sums, run_on_emulated_tiles(one, inputs));
  }
}

TEST(Conv1d, EveryEdgeIsWithinItsBoundOfDoubles) {
  expect_all_near(edge_cases());
}

TEST(Conv1d, RandomShapesAreWithinTheirBoundOfDoubles) {
  std::mt19937 random(11);
  const auto draw = [&](std::size_t low, std::size_t high) { return low + random() % (high - low + 1); };
  std::vector<Conv1dCase> cases;
  for (int i = 0; i < 25; ++i) {
    const auto flags = random();
    cases.push_back({{draw(1, 70), draw(1, 70), draw(1, 8)},
                     draw(1, 60),
                     draw(1, 4),
                     draw(1, 5),
                     draw(0, 12),
                     {(flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0}});
  }
  expect_all_near(cases);
}

TEST(Conv1d, TheBitsAreTheSameOnAnyThreads) {
  const Conv1dCase one{{70, 65, 7}, 400, 1, 3, 9, kAll};
  const ConvInputs inputs(one.shape, one.length, rows_of(one), 6);
  for_each_form(conv1d_forms(), [&](const Conv1dForm& form) {
    if (form.info.name.starts_with("reference")) return;
    const auto whole = run(form, 1, one, inputs);
    EXPECT_TRUE(same_bits(run(form, 2, one, inputs), whole));
    EXPECT_TRUE(same_bits(run(form, 5, one, inputs), whole));
  });
}

/// A part of x with what the taps reach on either side gives that part of y, wherever it is cut.
TEST(Conv1d, ARowHasTheSameBitsWhereverItIs) {
  const Conv1dCase one{{20, 40, 7}, 90, 1, 3, 9, {true, true, true, false}};
  const ConvInputs inputs(one.shape, one.length, rows_of(one), 7);
  for_each_form(conv1d_forms(), [&](const Conv1dForm& form) {
    const auto whole = run(form, 1, one, inputs);
    for (const std::size_t first : {1u, 13u, 30u}) {
      Conv1dCase cut = one;
      cut.length = 50;
      ConvInputs part = inputs;
      part.x.assign(inputs.x.begin() + static_cast<std::ptrdiff_t>(first * 40),
                    inputs.x.begin() + static_cast<std::ptrdiff_t>((first + 50) * 40));
      const auto y = run(form, 1, cut, part);
      EXPECT_TRUE(same_bits(std::span(y).subspan(9 * 20, 32 * 20),
                            std::span(whole).subspan((first + 9) * 20, 32 * 20)));
    }
  });
}

TEST(Conv1d, TheResidualMayBeTheOutput) {
  const Conv1dCase one{{35, 35, 1}, 70, 1, 1, 0, kAll};
  const ConvInputs inputs(one.shape, one.length, rows_of(one), 8);
  for_each_form(conv1d_forms(), [&](const Conv1dForm& form) {
    Machine machine(2);
    const auto apart = run(form, 1, one, inputs);
    const Conv1dWeight weight = form.pack(one.shape, inputs.rows_of_w(one.shape));
    Guarded y{std::span<const float>(inputs.residual)};
    Conv1dArgs args = arguments(one, weight);
    args.x = {inputs.x.data(), 35};
    args.fusion = inputs.fusion(one.extras, 35);
    args.fusion.residual = {y.data(), 35};
    args.y = {y.data(), 35};
    conv1d(machine.context, args);
    EXPECT_TRUE(y.intact());
    EXPECT_TRUE(same_bits(y.span(), apart));
  });
}

TEST(Conv1d, RowsMayBeApart) {
  const Conv1dCase one{{5, 6, 3}, 20, 1, 1, 1, {true, true, false, false}};
  const ConvInputs inputs(one.shape, one.length, rows_of(one), 9);
  for_each_form(conv1d_forms(), [&](const Conv1dForm& form) {
    Machine machine(1);
    const auto close = run(form, 1, one, inputs);
    const Conv1dWeight weight = form.pack(one.shape, inputs.rows_of_w(one.shape));
    std::vector<float> x(20 * 9, kNan);
    for (std::size_t t = 0; t < 20; ++t)
      std::copy_n(inputs.x.begin() + static_cast<std::ptrdiff_t>(t * 6), 6,
                  x.begin() + static_cast<std::ptrdiff_t>(t * 9));
    std::vector<float> y(20 * 11, Guarded::kSentinel);
    Conv1dArgs args = arguments(one, weight);
    args.x = {x.data(), 9};
    args.fusion = inputs.fusion(one.extras, 5);
    args.y = {y.data(), 11};
    conv1d(machine.context, args);
    for (std::size_t t = 0; t < 20; ++t) {
      EXPECT_TRUE(same_bits(std::span(y).subspan(t * 11, 5), std::span(close).subspan(t * 5, 5)));
      EXPECT_EQ(y[t * 11 + 5], Guarded::kSentinel);
      EXPECT_EQ(y[t * 11 + 10], Guarded::kSentinel);
    }
  });
}

TEST(Conv1d, ANaNReachesTheRowsWhoseTapsSeeItAndNoOthers) {
  const Conv1dCase one{{33, 17, 3}, 60, 1, 5, 5, kPlain};
  for (const float bad : {kNan, kInfinity}) {
    ConvInputs inputs(one.shape, one.length, rows_of(one), 10);
    inputs.x[27 * 17 + 4] = bad;
    for_each_form(conv1d_forms(), [&](const Conv1dForm& form) {
      const auto y = run(form, 1, one, inputs);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t t = i / 33;
        EXPECT_EQ(std::isfinite(y[i]), t != 22 && t != 27 && t != 32) << t;
      }
    });
  }
}

TEST(Conv1d, AFusedSnakeIsTheOpSnakesOfThatKindOfForm) {
  const Conv1dCase fused{{24, 50, 3}, 40, 1, 1, 1, {false, true, false, false}};
  const ConvInputs inputs(fused.shape, fused.length, rows_of(fused), 12);
  for_each_form(conv1d_forms(), [&](const Conv1dForm& form) {
    Machine machine(1);
    ConvInputs before = inputs;
    const bool plain = form.info.name.starts_with("reference");
    snake_forms()[plain ? 0 : 1].run(machine.context,
                                     {.rows = 40,
                                      .channels = 50,
                                      .x = {inputs.x.data(), 50},
                                      .snake = {inputs.in_alpha.data(), inputs.in_inverse_beta.data()},
                                      .y = {before.x.data(), 50}});
    Conv1dCase bare = fused;
    bare.extras = kPlain;
    EXPECT_TRUE(same_bits(run(form, 1, fused, inputs), run(form, 1, bare, before)));
  });
}

TEST(Conv1d, AKernelStrideOrDilationOfZeroIsRefused) {
  const auto refused = [](const Conv1dCase& one) {
    try {
      rows_of(one);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::invalid_argument;
    }
    return false;
  };
  EXPECT_TRUE(refused({{1, 1, 0}, 5}));
  EXPECT_TRUE(refused({{1, 1, 1}, 5, 0}));
  EXPECT_TRUE(refused({{1, 1, 1}, 5, 1, 0}));
}

}  // namespace
}  // namespace assay::ops
