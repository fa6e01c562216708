#include "ops/matmul/matmul.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "ops/matmul/amx_tiles.hpp"
#include "ops/matmul/panels.hpp"
#include "ops/matmul/tests/emulated_tiles.hpp"

namespace assay::ops {
namespace {

/// A form on one of its instruction sets: Highway's forms appear once for each that this machine has. AMX's
/// loops and layouts run everywhere, on emulated tile registers.
struct Subject {
  std::string name;
  Precision precision = Precision::fp32;
  std::function<MatmulWeight(std::size_t, std::size_t, const WeightRows&)> pack;
  std::function<void(const Context&, const MatmulArgs&)> run;
};

void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.name;
}

class HeldTarget {
 public:
  explicit HeldTarget(std::int64_t target) { hwy::SetSupportedTargetsForTest(target); }
  ~HeldTarget() { hwy::SetSupportedTargetsForTest(0); }
  HeldTarget(const HeldTarget&) = delete;
  HeldTarget& operator=(const HeldTarget&) = delete;
};

Subject held_to(std::int64_t target, const MatmulForm& form) {
  return {std::string(form.info.name) + "_" + hwy::TargetName(target), form.info.precision,
          [target, &form](std::size_t n, std::size_t k, const WeightRows& rows) {
            const HeldTarget held(target);
            return form.pack(n, k, rows);
          },
          [target, &form](const Context& context, const MatmulArgs& args) {
            const HeldTarget held(target);
            form.run(context, args);
          }};
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const MatmulForm& form : matmul_forms()) {
    if (!device::cpu_supports(form.info.needs)) continue;
    if (form.info.name.starts_with("vector")) {
      for (const std::int64_t target : hwy::SupportedAndGeneratedTargets())
        all.push_back(held_to(target, form));
    } else {
      all.push_back({std::string(form.info.name), form.info.precision, form.pack, form.run});
    }
  }
  all.push_back({"amx_bf16_emulated", Precision::bf16,
                 [](std::size_t n, std::size_t k, const WeightRows& rows) {
                   return panels::pack(panels::kBf16Layout, n, k, rows);
                 },
                 [](const Context& context, const MatmulArgs& args) {
                   panels::run(panels::kAmxKernel<panels::EmulatedTiles>, context, args);
                 }});
  return all;
}

struct Shape {
  std::size_t m, n, k;
};

float rounded(Precision precision, float value) {
  return precision == Precision::bf16 ? bf16_to_float(float_to_bf16(value)) : value;
}

constexpr float kSentinel = -12345.75f;

/// One product and its surroundings: rows wider than k and n, guards before, between and after them.
struct Problem {
  static constexpr std::size_t kGuard = 37;

  Shape shape;
  std::size_t x_stride;
  std::size_t y_stride;
  std::vector<float> x;
  std::vector<float> w;
  std::vector<float> y;

  Problem(Shape s, std::uint32_t seed, std::size_t slack = 5)
      : shape(s),
        x_stride(s.k + slack),
        y_stride(s.n + slack),
        x(s.m * x_stride, std::numeric_limits<float>::quiet_NaN()),
        w(s.n * s.k),
        y(2 * kGuard + s.m * y_stride, kSentinel) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < s.m; ++i) std::generate_n(x_row(i), s.k, [&] { return normal(random); });
    for (float& value : w) value = normal(random);
  }

  float* x_row(std::size_t i) { return x.data() + i * x_stride; }
  const float* x_row(std::size_t i) const { return x.data() + i * x_stride; }
  float* y_row(std::size_t i) { return y.data() + kGuard + i * y_stride; }

  WeightRows rows() const {
    return [this](std::size_t first, std::size_t count, std::span<float> out) {
      std::copy_n(w.begin() + static_cast<std::ptrdiff_t>(first * shape.k), count * shape.k, out.begin());
    };
  }
};

MatmulWeight packed(const Subject& subject, const Problem& problem) {
  return subject.pack(problem.shape.n, problem.shape.k, problem.rows());
}

void run(const Subject& subject, const MatmulWeight& w, Problem& problem, std::size_t threads = 1,
         bool accumulate = false) {
  // One pool a size for all tests: starting threads takes longer than these products.
  static std::map<std::size_t, device::ThreadPool> pools;
  device::ThreadPool& pool = pools.try_emplace(threads, threads).first->second;
  static device::Arena arena;
  subject.run({pool, arena}, {.x = {problem.x.data(), problem.x_stride},
                              .m = problem.shape.m,
                              .w = &w,
                              .y = {problem.y_row(0), problem.y_stride},
                              .accumulate = accumulate});
  EXPECT_EQ(arena.used(), 0u) << "scratch outlives the run";
}

/// y[i, j] within the contract's bound of the sum in fp64 of the products of the operands as the form sees
/// them; VDPBF16PS and TDPBF16PS take subnormals as zeros and give zeros for them, so a bf16 form may lose
/// the products of subnormal operands and 2⁻¹²⁶ a step.
void expect_near_exact(const Subject& subject, const Problem& problem, std::size_t i, std::size_t j,
                       float before, float y) {
  double exact = before;
  double magnitude = std::abs(static_cast<double>(before));
  double flushed = 0;
  for (std::size_t l = 0; l < problem.shape.k; ++l) {
    const float x = rounded(subject.precision, problem.x_row(i)[l]);
    const float w = rounded(subject.precision, problem.w[j * problem.shape.k + l]);
    const double product = static_cast<double>(x) * static_cast<double>(w);
    exact += product;
    magnitude += std::abs(product);
    const bool subnormal = std::fpclassify(x) == FP_SUBNORMAL || std::fpclassify(w) == FP_SUBNORMAL;
    if (subnormal) flushed += std::abs(product);
  }
  const double steps = static_cast<double>(problem.shape.k) + 2;
  const double lost = subject.precision == Precision::bf16 ? flushed + steps * 0x1p-126 : steps * 0x1p-149;
  EXPECT_LE(std::abs(static_cast<double>(y) - exact), steps * 0x1p-24 * magnitude + lost)
      << "row " << i << " of " << problem.shape.m << ", feature " << j << " of " << problem.shape.n << ", k "
      << problem.shape.k << ", y " << y << ", exact " << exact;
}

void expect_all_near_exact(const Subject& subject, Problem& problem, float before = 0) {
  for (std::size_t i = 0; i < problem.shape.m; ++i) {
    for (std::size_t j = 0; j < problem.shape.n; ++j) {
      expect_near_exact(subject, problem, i, j, before, problem.y_row(i)[j]);
    }
  }
}

void expect_same_bits(const float* a, const float* b, std::size_t count, const std::string& what) {
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i]))
        << what << ", feature " << i;
  }
}

class Matmul : public testing::TestWithParam<Subject> {};

INSTANTIATE_TEST_SUITE_P(Forms, Matmul, testing::ValuesIn(subjects()),
                         [](const auto& parameter) { return parameter.param.name; });

// Around 1, a tile's rows (6, 12, 16, 32) and columns (16, 32), a pair, 16 pairs, and a block of 256 steps.
constexpr auto kEdgeRows = std::to_array<std::size_t>({0, 1, 2, 5, 6, 7, 11, 12, 13, 16, 17, 33, 49});
constexpr auto kEdgeFeatures = std::to_array<std::size_t>({0, 1, 4, 16, 31, 32, 33, 65});
constexpr auto kEdgeInputs = std::to_array<std::size_t>({0, 1, 2, 3, 31, 32, 33});

TEST_P(Matmul, EveryEdgeOfEveryDimensionIsNearExact) {
  std::uint32_t seed = 0;
  for (const std::size_t m : kEdgeRows) {
    for (const std::size_t n : kEdgeFeatures) {
      for (const std::size_t k : kEdgeInputs) {
        Problem problem({m, n, k}, ++seed);
        run(GetParam(), packed(GetParam(), problem), problem);
        expect_all_near_exact(GetParam(), problem);
      }
    }
  }
}

TEST_P(Matmul, SumsThatRestInMemoryBetweenBlocksAreNearExact) {
  std::uint32_t seed = 100;
  for (const std::size_t k : {255u, 256u, 257u, 511u, 512u, 513u, 545u, 1100u}) {
    for (const std::size_t m : {1u, 29u, 70u}) {
      Problem problem({m, 35, k}, ++seed);
      run(GetParam(), packed(GetParam(), problem), problem, 2);
      expect_all_near_exact(GetParam(), problem);
    }
  }
}

TEST_P(Matmul, RandomShapesAreNearExact) {
  std::mt19937 random(7);
  const auto up_to = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit)(random);
  };
  for (std::uint32_t round = 0; round < 25; ++round) {
    Problem problem({up_to(80), up_to(150), up_to(700)}, 1000 + round, up_to(9));
    run(GetParam(), packed(GetParam(), problem), problem, 1 + round % 4);
    expect_all_near_exact(GetParam(), problem);
  }
}

TEST_P(Matmul, AccumulateAddsTheWholeSumToWhatYHeld) {
  for (const Shape shape : {Shape{1, 40, 9}, Shape{30, 70, 600}, Shape{13, 31, 0}}) {
    Problem plain(shape, 3);
    Problem added = plain;
    const MatmulWeight w = packed(GetParam(), plain);
    run(GetParam(), w, plain, 2);
    for (std::size_t i = 0; i < shape.m; ++i) std::fill_n(added.y_row(i), shape.n, 0.375f);
    run(GetParam(), w, added, 2, true);
    for (std::size_t i = 0; i < shape.m; ++i) {
      for (std::size_t j = 0; j < shape.n; ++j) ASSERT_EQ(added.y_row(i)[j], plain.y_row(i)[j] + 0.375f);
    }
    expect_all_near_exact(GetParam(), added, 0.375f);
  }
}

TEST_P(Matmul, NoInputsGiveZeros) {
  Problem problem({3, 33, 0}, 1);
  run(GetParam(), packed(GetParam(), problem), problem);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 33; ++j) ASSERT_EQ(problem.y_row(i)[j], 0.0f);
  }
}

TEST_P(Matmul, WritesNothingOutsideItsRows) {
  for (const std::size_t n : {1u, 31u, 32u, 33u, 100u}) {
    for (const std::size_t m : {1u, 12u, 33u}) {
      for (const bool accumulate : {false, true}) {
        Problem problem({m, n, 40}, 5);
        run(GetParam(), packed(GetParam(), problem), problem, 2, accumulate);
        for (std::size_t i = 0; i < m; ++i) {
          EXPECT_NE(problem.y_row(i)[n - 1], kSentinel);
          std::fill_n(problem.y_row(i), n, kSentinel);
        }
        EXPECT_EQ(std::ranges::count(problem.y, kSentinel), static_cast<std::ptrdiff_t>(problem.y.size()));
      }
    }
  }
}

TEST_P(Matmul, ARowAloneHasTheBitsItHasInAnyBatch) {
  constexpr std::size_t kRows = 75;
  for (const std::size_t k : {7u, 600u}) {
    Problem batch({kRows, 70, k}, 11);
    const MatmulWeight w = packed(GetParam(), batch);
    run(GetParam(), w, batch, 2);
    for (const std::size_t count : {1u, 2u, 5u, 13u, 34u}) {
      for (std::size_t first = 0; first + count <= kRows; first += 19) {
        Problem few({count, 70, k}, 0);
        for (std::size_t i = 0; i < count; ++i) std::copy_n(batch.x_row(first + i), k, few.x_row(i));
        run(GetParam(), w, few);
        for (std::size_t i = 0; i < count; ++i) {
          expect_same_bits(few.y_row(i), batch.y_row(first + i), 70,
                           std::to_string(count) + " rows, row " + std::to_string(i));
        }
      }
    }
  }
}

TEST_P(Matmul, ThreadsDoNotChangeBits) {
  for (const Shape shape : {Shape{1, 500, 1100}, Shape{50, 200, 600}, Shape{300, 33, 70}}) {
    Problem one(shape, 13);
    const MatmulWeight w = packed(GetParam(), one);
    run(GetParam(), w, one);
    for (const std::size_t threads : {2u, 3u, 7u}) {
      Problem more(shape, 13);
      run(GetParam(), w, more, threads);
      expect_same_bits(more.y.data(), one.y.data(), one.y.size(), std::to_string(threads) + " threads");
    }
  }
}

TEST_P(Matmul, NanAndInfinityStayInTheirRowAndFeature) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t at : {0u, 1u, 32u, 600u}) {
    Problem problem({20, 50, 601}, 17);
    problem.x_row(3)[at] = kNan;
    problem.x_row(4)[at] = kInfinity;
    problem.w[7 * 601 + at] = -kNan;
    problem.w[8 * 601 + at] = -kInfinity;
    run(GetParam(), packed(GetParam(), problem), problem);
    for (std::size_t i = 0; i < 20; ++i) {
      for (std::size_t j = 0; j < 50; ++j) {
        const float y = problem.y_row(i)[j];
        if (i == 3 || j == 7) {
          EXPECT_TRUE(std::isnan(y)) << i << " " << j;
        } else if (i == 4 || j == 8) {
          const float sign = problem.x_row(i)[at] * problem.w[j * 601 + at];
          EXPECT_EQ(y, std::copysign(kInfinity, sign)) << i << " " << j;
        } else {
          expect_near_exact(GetParam(), problem, i, j, 0, y);
        }
      }
    }
  }
}

TEST_P(Matmul, ANanInTheOperandsWithAPayloadInItsLowBitsAloneStaysNan) {
  const float low_bits_nan = std::bit_cast<float>(0x7f800001u);
  Problem problem({14, 40, 70}, 19);
  problem.x_row(2)[69] = low_bits_nan;
  problem.w[5 * 70] = -low_bits_nan;
  run(GetParam(), packed(GetParam(), problem), problem);
  for (std::size_t j = 0; j < 40; ++j) EXPECT_TRUE(std::isnan(problem.y_row(2)[j])) << j;
  for (std::size_t i = 0; i < 14; ++i) EXPECT_TRUE(std::isnan(problem.y_row(i)[5])) << i;
  EXPECT_TRUE(std::isfinite(problem.y_row(0)[0]));
}

TEST_P(Matmul, LargestValuesOverflowToInfinityWithTheRightSign) {
  const float largest = bf16_to_float(0x7f7f);  // of bf16: fp32's own largest rounds to infinity
  Problem problem({3, 34, 40}, 23);
  std::ranges::fill(problem.x, 0.0f);
  std::ranges::fill(problem.w, 0.0f);
  for (std::size_t j = 0; j < 34; ++j) problem.w[j * 40 + 9] = j % 2 == 0 ? largest : -largest;
  problem.x_row(0)[9] = 1;
  problem.x_row(1)[9] = largest;
  problem.x_row(2)[9] = -0.5f;
  run(GetParam(), packed(GetParam(), problem), problem);
  for (std::size_t j = 0; j < 34; ++j) {
    const float sign = j % 2 == 0 ? 1.0f : -1.0f;
    EXPECT_EQ(problem.y_row(0)[j], sign * largest);
    EXPECT_EQ(problem.y_row(1)[j], sign * std::numeric_limits<float>::infinity());
    EXPECT_EQ(problem.y_row(2)[j], sign * -0.5f * largest);
  }
}

TEST_P(Matmul, SubnormalsAreKeptOrFlushedButNeverWorse) {
  Problem problem({9, 40, 66}, 29);
  std::mt19937 random(29);
  for (std::size_t i = 0; i < 9; ++i) {
    for (std::size_t l = 0; l < 66; ++l) {
      if (random() % 2 == 0) problem.x_row(i)[l] *= 0x1p-130f;
    }
  }
  for (float& value : problem.w) value *= random() % 2 == 0 ? 0x1p-128f : 0x1p100f;
  run(GetParam(), packed(GetParam(), problem), problem);
  expect_all_near_exact(GetParam(), problem);
}

TEST_P(Matmul, PackReadsEachRowOnceInOrderAFewHundredAtATime) {
  for (const std::size_t n : {1u, 32u, 33u, 700u}) {
    Problem problem({1, n, 24}, 31);
    std::size_t next = 0;
    const MatmulWeight w =
        GetParam().pack(n, 24, [&](std::size_t first, std::size_t count, std::span<float> rows) {
          EXPECT_EQ(first, next);
          EXPECT_GE(count, 1u);
          EXPECT_LE(count, 512u);
          EXPECT_LE(first + count, n);
          EXPECT_EQ(rows.size(), count * 24);
          problem.rows()(first, count, rows);
          next = first + count;
        });
    EXPECT_EQ(next, n);
    EXPECT_EQ(w.n, n);
    EXPECT_EQ(w.k, 24u);
  }
}

TEST(MatmulForms, StartWithTheReferenceAndHaveNamesOfTheirOwn) {
  const std::span<const MatmulForm> forms = matmul_forms();
  ASSERT_FALSE(forms.empty());
  EXPECT_EQ(forms[0].info.name, "reference");
  EXPECT_EQ(forms[0].info.precision, Precision::fp32);
  for (const MatmulForm& form : forms) {
    EXPECT_EQ(std::ranges::count(forms, form.info.name, [](const MatmulForm& f) { return f.info.name; }), 1);
    EXPECT_FALSE(form.info.layout.empty());
    EXPECT_FALSE(form.info.summary.empty());
  }
}

TEST(MatmulForms, PackNamesItsFormAndTakesTheBytesItSaid) {
  for (const MatmulForm& form : matmul_forms()) {
    if (!device::cpu_supports(form.info.needs)) continue;
    for (const Shape shape : {Shape{0, 33, 47}, Shape{0, 0, 5}, Shape{0, 5, 0}}) {
      const Problem problem(shape, 37);
      const MatmulWeight w = form.pack(shape.n, shape.k, problem.rows());
      EXPECT_EQ(w.form, &form);
      EXPECT_EQ(w.data.bytes(), form.packed_bytes(shape.n, shape.k));
    }
  }
}

TEST(MatmulForms, BigBf16WeightsTakeTwoBytesEach) {
  for (const MatmulForm& form : matmul_forms()) {
    const std::size_t each = form.info.precision == Precision::bf16 ? 2 : 4;
    EXPECT_EQ(form.packed_bytes(18432, 2560), 18432u * 2560u * each) << form.info.name;
  }
}

}  // namespace
}  // namespace assay::ops
