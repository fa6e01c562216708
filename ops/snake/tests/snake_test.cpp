#include "ops/snake/snake.hpp"

#include "ops/tests/op_testing.hpp"

namespace assay::ops {
namespace {

struct Inputs {
  std::vector<float> x, alpha, inverse_beta;

  std::size_t channels() const { return alpha.size(); }
  std::size_t rows() const { return alpha.empty() ? 0 : x.size() / alpha.size(); }
};

Inputs random_inputs(std::size_t rows, std::size_t channels, float largest, unsigned seed) {
  return {random_floats(rows * channels, seed, -largest, largest),
          random_floats(channels, seed + 1, 0.01f, 3), random_floats(channels, seed + 2, 0.01f, 3)};
}

std::vector<float> run(const SnakeForm& form, std::size_t threads, const Inputs& inputs) {
  Machine machine(threads);
  Guarded y(inputs.x.size());
  form.run(machine.context, {.rows = inputs.rows(),
                             .channels = inputs.channels(),
                             .x = {inputs.x.data(), inputs.channels()},
                             .snake = {inputs.alpha.data(), inputs.inverse_beta.data()},
                             .y = {y.data(), inputs.channels()}});
  EXPECT_TRUE(y.intact());
  return {y.span().begin(), y.span().end()};
}

double exact(double x, double alpha, double inverse_beta) {
  return x + std::pow(std::sin(alpha * x), 2) * inverse_beta;
}

void expect_within_bound(const Inputs& inputs, std::span<const float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double alpha = inputs.alpha[i % inputs.channels()];
    const double inverse_beta = inputs.inverse_beta[i % inputs.channels()];
    const double expected = exact(inputs.x[i], alpha, inverse_beta);
    const double z = std::fabs(alpha * inputs.x[i]);
    ASSERT_TRUE(is_near(y[i], expected, 0x1p-23, 0x1p-23 * (4 + z) * inverse_beta))
        << i << ": x " << inputs.x[i] << " alpha " << alpha;
  }
}

TEST(Snake, EveryShapeIsWithinItsBoundOfDoubles) {
  for_each_form(snake_forms(), [](const SnakeForm& form) {
    for (const std::size_t channels : {1u, 2u, 3u, 4u, 7u, 8u, 9u, 15u, 16u, 17u, 33u, 128u}) {
      for (const std::size_t rows : {0u, 1u, 5u}) {
        const Inputs inputs = random_inputs(rows, channels, 3, static_cast<unsigned>(channels));
        expect_within_bound(inputs, run(form, 2, inputs));
      }
    }
  });
}

TEST(Snake, TheBoundHoldsFromTheSmallestToTheLargestArguments) {
  for_each_form(snake_forms(), [](const SnakeForm& form) {
    for (const float largest : {1e-38f, 1e-20f, 1e-3f, 1.0f, 30.0f, 1e4f, 1e7f, 1e12f, 1e30f}) {
      const Inputs inputs = random_inputs(40, 33, largest, 7);
      expect_within_bound(inputs, run(form, 1, inputs));
    }
  });
}

/// Around the zeros and peaks of the sine the argument's reduction shows.
TEST(Snake, TheBoundHoldsAroundEveryQuarterTurn) {
  Inputs inputs{{}, {1.0f}, {1.0f}};
  for (int quarter = -400; quarter <= 400; ++quarter) {
    const auto centre = static_cast<float>(quarter * 1.5707963267948966);
    for (const float offset : {-1e-3f, -1e-6f, 0.0f, 1e-6f, 1e-3f}) inputs.x.push_back(centre + offset);
  }
  for_each_form(snake_forms(),
                [&](const SnakeForm& form) { expect_within_bound(inputs, run(form, 1, inputs)); });
}

TEST(Snake, InfinitiesAndNaNBecomeNaNAndStayInTheirPlace) {
  for_each_form(snake_forms(), [](const SnakeForm& form) {
    for (const float bad : {kInfinity, -kInfinity, kNan}) {
      Inputs inputs = random_inputs(3, 19, 2, 8);
      inputs.x[19 + 4] = bad;
      const auto y = run(form, 1, inputs);
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i == 19 + 4) << i;
    }
  });
}

TEST(Snake, InPlaceAndOnAnyThreadsTheBitsAreTheSame) {
  Machine machine(1);
  for_each_form(snake_forms(), [&](const SnakeForm& form) {
    Inputs inputs = random_inputs(700, 37, 5, 9);
    const auto apart = run(form, 1, inputs);
    EXPECT_TRUE(same_bits(run(form, 3, inputs), apart));
    form.run(machine.context, {.rows = inputs.rows(),
                               .channels = inputs.channels(),
                               .x = {inputs.x.data(), inputs.channels()},
                               .snake = {inputs.alpha.data(), inputs.inverse_beta.data()},
                               .y = {inputs.x.data(), inputs.channels()}});
    EXPECT_TRUE(same_bits(inputs.x, apart));
  });
}

}  // namespace
}  // namespace assay::ops
