#include "lab/synthetic_weights.hpp"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "lab/bench_decision.hpp"

namespace assay::lab {
namespace {

std::vector<float> read(const formats::TensorSource& source, const std::string& name, std::uint64_t first,
                        std::uint64_t count) {
  const formats::TensorInfo& info = formats::require(source, name);
  std::vector<float> values(formats::element_count(info) / info.shape[0] * count);
  source.read_rows(name, first, count, values);
  return values;
}

TEST(SyntheticWeights, RowsAreTheSameInWhateverPiecesTheyAreRead) {
  const auto source = synthetic_weights(shape_config("kev-tiny"), 1);
  const std::string name = "layers.0.mlp.up_proj.weight";
  const std::vector<float> whole = read(*source, name, 0, 64);
  std::vector<float> pieces = read(*source, name, 0, 13);
  const std::vector<float> rest = read(*source, name, 13, 51);
  pieces.insert(pieces.end(), rest.begin(), rest.end());
  EXPECT_EQ(whole, pieces);
}

TEST(SyntheticWeights, SeedTensorAndRowEachChangeTheValues) {
  const auto source = synthetic_weights(shape_config("kev-tiny"), 1);
  const auto other = synthetic_weights(shape_config("kev-tiny"), 2);
  const std::string name = "layers.0.mlp.up_proj.weight";
  const std::vector<float> values = read(*source, name, 0, 1);
  EXPECT_NE(values, read(*source, name, 1, 1));
  EXPECT_NE(values, read(*source, "layers.1.mlp.up_proj.weight", 0, 1));
  EXPECT_NE(values, read(*other, name, 0, 1));
}

TEST(SyntheticWeights, ElementsAreExactInBf16AndSpreadAsTheirTensorSays) {
  const auto source = synthetic_weights(shape_config("kev-tiny"), 1);
  const std::vector<float> values = read(*source, "layers.0.mlp.down_proj.weight", 0, 256);
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    ASSERT_EQ(value, bf16_to_float(float_to_bf16(value)));
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const auto count = static_cast<double>(values.size());
  const double deviation = 1.6 / std::sqrt(640.0);
  EXPECT_NEAR(sum / count, 0, 0.01 * deviation);
  EXPECT_NEAR(std::sqrt(squares / count), deviation, 0.01 * deviation);
}

TEST(SyntheticWeights, StoredEmbeddingBytesAreTheValuesThatRowsGive) {
  const auto source = synthetic_weights(shape_config("kev-tiny"), 1);
  const std::span<const std::byte> stored = source->stored_bytes("embed_tokens.weight");
  const std::vector<float> values = read(*source, "embed_tokens.weight", 0, 1536);
  ASSERT_EQ(stored.size(), values.size() * 2);
  std::vector<float> converted(values.size());
  convert_to_float(DType::bf16, stored.data(), converted);
  EXPECT_EQ(converted, values);
  EXPECT_TRUE(source->stored_bytes("norm.weight").empty());
}

TEST(SyntheticWeights, AnUnknownShapeTensorOrRowIsAnError) {
  EXPECT_THROW(shape_config("kev-5t"), Error);
  const auto source = synthetic_weights(shape_config("kev-tiny"), 1);
  EXPECT_EQ(source->find("lm_head.weight"), nullptr);
  std::vector<float> one(256);
  EXPECT_THROW(source->read_rows("lm_head.weight", 0, 1, one), Error);
  EXPECT_THROW(source->read_rows("embed_tokens.weight", 1536, 1, one), Error);
  EXPECT_THROW(source->read_rows("embed_tokens.weight", 0, 2, one), Error);
}

TEST(SyntheticWeights, TheRealShapesHaveTheParametersOfTheRealModels) {
  const auto parameters = [](std::string_view shape) {
    const auto source = synthetic_weights(shape_config(shape), 1);
    const auto names = source->names();
    return std::accumulate(names.begin(), names.end(), std::uint64_t{0},
                           [&](std::uint64_t sum, const auto& name) {
                             return sum + formats::element_count(*source->find(name));
                           });
  };
  EXPECT_NEAR(static_cast<double>(parameters("kev-0.8b")) * 1e-9, 0.75, 0.01);
  EXPECT_NEAR(static_cast<double>(parameters("kev-4b")) * 1e-9, 4.21, 0.01);
}

TEST(DecisionBench, OperationsOfARowAreTwiceTheProductWeightsATokenAndTheMixers) {
  const formats::ModelConfig config = shape_config("kev-tiny");
  const OperationCount count = count_operations(config, 3, 2, 2);
  const double mlp = 3.0 * 256 * 640;
  const double linear = 256.0 * (2 * 256 + 512 + 512 + 8) + 512.0 * 256;
  const double full = 256.0 * (2 * 512 + 2 * 256) + 512.0 * 256;
  EXPECT_DOUBLE_EQ(count.matmul, 2 * 7 * (4 * mlp + 3 * linear + full));
  // The state's 1 + 2 + 3 pairs; each question's two tokens see it, the first itself and the second both.
  EXPECT_DOUBLE_EQ(count.attention, 4.0 * (6 + 2 * (2 * 3 + 3)) * 2 * 256);
  EXPECT_DOUBLE_EQ(count.gated_delta_rule, 3 * 7.0 * 7 * 4 * 128 * 128);
  EXPECT_DOUBLE_EQ(count.causal_conv1d, 3 * 2.0 * 7 * 1024 * 4);
}

TEST(DecisionBench, ReportsEveryCaseWithAsManySamplesAsAsked) {
  DecisionBenchOptions options;
  options.shape = "kev-tiny";
  options.rows = {33, 40};
  options.questions = {1, 3};
  options.repeat = 2;
  options.threads = 1;
  const DecisionBenchReport report = bench_decision(options, [](std::string_view) {});
  ASSERT_EQ(report.cases.size(), 4u);
  for (const DecisionBenchCase& bench_case : report.cases) EXPECT_EQ(bench_case.seconds.size(), 2u);
  EXPECT_EQ(report.cases[1].total_tokens, 33u + 2 * 32);
  EXPECT_EQ(to_json(report)["cases"].size(), 4u);
  EXPECT_NE(to_table(report).find("kev-tiny"), std::string::npos);
}

TEST(DecisionBench, NumbersOutOfRangeAreErrorsThatNameTheFlag) {
  const auto message = [](auto change) {
    DecisionBenchOptions options;
    options.shape = "kev-tiny";
    change(options);
    try {
      bench_decision(options, [](std::string_view) {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message([](auto& o) { o.rows = {32}; }).find("--rows"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.rows = {8193}; }).find("--rows"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.questions = {0}; }).find("--questions"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.repeat = 0; }).find("--repeat"), std::string::npos);
}

}  // namespace
}  // namespace assay::lab
