#include "decision/gguf_checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/file.hpp"
#include "decision/tests/expect_error.hpp"
#include "formats/backbone_tensors.hpp"

namespace assay::decision {
namespace {

namespace fs = std::filesystem;

fs::path made(const std::string& name) {
  return fs::path(ASSAY_MADE_FIXTURES) / (name + ".gguf");
}

Checkpoint plain(const std::string& name) {
  return open_checkpoint(fs::path(ASSAY_TEST_DATA) / name / "run", std::nullopt);
}

std::vector<float> read_all(const Checkpoint& checkpoint, const formats::BackboneTensor& tensor) {
  return formats::read_tensor(*checkpoint.weights, tensor.name, tensor.shape);
}

bool is_decay(std::string_view name) {
  return name.ends_with(".A_log");
}

/// A norm whose distance from one is stored: what counts, and what GGUF holds, is one more.
bool is_offset_norm(const Checkpoint& checkpoint, std::string_view name) {
  return checkpoint.config.family == formats::Family::qwen3_5 && name.ends_with("norm.weight") &&
         !name.ends_with("linear_attn.norm.weight");
}

void expect_same_config(const formats::ModelConfig& a, const formats::ModelConfig& b) {
  EXPECT_EQ(a.family, b.family);
  EXPECT_EQ(a.layers, b.layers);
  const auto fields = [](const formats::ModelConfig& c) {
    return std::vector<std::size_t>{
        c.hidden_size,      c.intermediate_size,  c.vocabulary_size, c.heads,
        c.kv_heads,         c.head_dim,           c.rotary_dim,      c.max_positions,
        c.linear_key_heads, c.linear_value_heads, c.linear_key_dim,  c.linear_value_dim,
        c.linear_conv_width};
  };
  EXPECT_EQ(fields(a), fields(b));
  EXPECT_EQ(a.rope_theta, b.rope_theta);
  EXPECT_EQ(a.rms_norm_eps, b.rms_norm_eps);
}

class GgufCheckpoint : public testing::TestWithParam<const char*> {};

TEST_P(GgufCheckpoint, HasTheConfigurationOfTheRunThatItWasMadeFrom) {
  expect_same_config(open_gguf_checkpoint(made(GetParam() + std::string(".f32"))).config,
                     plain(GetParam()).config);
}

TEST_P(GgufCheckpoint, HasTheMergedWeightsBitForBitInF32) {
  const Checkpoint from_run = plain(GetParam());
  const Checkpoint from_gguf = open_gguf_checkpoint(made(GetParam() + std::string(".f32")));
  for (const formats::BackboneTensor& tensor : formats::backbone_tensors(from_run.config)) {
    std::vector<float> expected = read_all(from_run, tensor);
    std::vector<float> found = read_all(from_gguf, tensor);
    if (is_offset_norm(from_run, tensor.name)) {
      for (float& value : expected) value = 1.0f + value;
      for (float& value : found) value = 1.0f + value;
    }
    if (is_decay(tensor.name)) {
      for (float& value : expected) value = -std::exp(value);
      for (float& value : found) value = -std::exp(value);
    }
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)), 0) << tensor.name;
  }
}

TEST_P(GgufCheckpoint, HasTheHeadOfTheRun) {
  const PointerHead expected = plain(GetParam()).head;
  const PointerHead found = open_gguf_checkpoint(made(GetParam() + std::string(".f32"))).head;
  EXPECT_EQ(found.dim, expected.dim);
  EXPECT_EQ(found.hidden, expected.hidden);
  EXPECT_EQ(found.q_weight, expected.q_weight);
  EXPECT_EQ(found.q_bias, expected.q_bias);
  EXPECT_EQ(found.k_weight, expected.k_weight);
  EXPECT_EQ(found.k_bias, expected.k_bias);
  EXPECT_EQ(found.temperature, expected.temperature);
}

TEST_P(GgufCheckpoint, TokenizesAsTheFixtureDoes) {
  const Checkpoint checkpoint = open_gguf_checkpoint(made(GetParam() + std::string(".f32")));
  const fs::path file = fs::path(ASSAY_TEST_DATA) / (GetParam() + std::string(".fixture.tokens.json"));
  for (const auto& record : nlohmann::json::parse(read_text_file(file))) {
    EXPECT_EQ(checkpoint.tokenizer.encode(record.at("text").get<std::string>()),
              record.at("ids").get<std::vector<std::int32_t>>());
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GgufCheckpoint, testing::Values("kev-tiny-hybrid", "kev-tiny-dense"),
                         [](const auto& info) { return std::string(info.param).substr(9); });

TEST(GgufCheckpointTypes, HalfTypesHoldEveryMatrixRoundedOnce) {
  const Checkpoint from_run = plain("kev-tiny-dense");
  const std::map<std::string, float (*)(float)> rounded = {
      {"f16", [](float value) { return f16_to_float(float_to_f16(value)); }},
      {"bf16", [](float value) { return bf16_to_float(float_to_bf16(value)); }}};
  for (const auto& [type, round] : rounded) {
    const Checkpoint from_gguf = open_gguf_checkpoint(made("kev-tiny-dense." + type));
    for (const formats::BackboneTensor& tensor : formats::backbone_tensors(from_run.config)) {
      std::vector<float> expected = read_all(from_run, tensor);
      if (tensor.shape.size() == 2) std::ranges::transform(expected, expected.begin(), round);
      EXPECT_EQ(read_all(from_gguf, tensor), expected) << type << " " << tensor.name;
    }
  }
}

TEST(GgufCheckpointTypes, Q8_0HoldsEveryMatrixWithinHalfAStepOfItsBlock) {
  const Checkpoint from_run = plain("kev-tiny-hybrid");
  const Checkpoint from_gguf = open_gguf_checkpoint(made("kev-tiny-hybrid.q8_0"));
  std::size_t quantised = 0;
  for (const formats::BackboneTensor& tensor : formats::backbone_tensors(from_run.config)) {
    if (tensor.shape.size() != 2) continue;
    EXPECT_EQ(from_gguf.weights->find(tensor.name)->type, DType::q8_0) << tensor.name;
    const std::vector<float> expected = read_all(from_run, tensor);
    const std::vector<float> found = read_all(from_gguf, tensor);
    for (std::size_t begin = 0; begin < expected.size(); begin += 32) {
      float largest = 0, off = 0;
      for (std::size_t i = begin; i < begin + 32; ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        off = std::max(off, std::abs(expected[i] - found[i]));
      }
      // Half a step, and what rounding the scale to fp16 (2^-11 of it) moves the largest of 127 steps.
      ASSERT_LE(off, largest / 127 * (0.5f + 127 * 0x1p-11f) + 1e-7f) << tensor.name << " " << begin;
    }
    ++quantised;
  }
  EXPECT_GT(quantised, 20u);
}

TEST(GgufCheckpointIdentity, IsEqualForEqualFilesOnly) {
  const auto identity = [](const char* name) { return open_gguf_checkpoint(made(name)).files->identity(); };
  EXPECT_EQ(identity("kev-tiny-dense.f32"), identity("kev-tiny-dense.f32"));
  EXPECT_NE(identity("kev-tiny-dense.f32"), identity("kev-tiny-dense.bf16"));
  EXPECT_NE(identity("kev-tiny-dense.f32"), plain("kev-tiny-dense").files->identity());
}

TEST(GgufCheckpointDispatch, OpenCheckpointKnowsTheFileByItsMagic) {
  EXPECT_EQ(open_checkpoint(made("kev-tiny-dense.f32"), std::nullopt).config.family, formats::Family::qwen3);
}

// ---------------------------------------------------------------- files that are not quite right

/// A made file with bytes of its header replaced by as many others.
class Changed {
 public:
  explicit Changed(const std::string& name) : bytes_(read_text_file(made(name))) {}

  Changed& replace(std::string_view from, std::string_view to) {
    const std::size_t at = bytes_.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    EXPECT_EQ(from.size(), to.size());
    bytes_.replace(at, to.size(), to);
    return *this;
  }

  /// The value, of four bytes, of a metadata key.
  template <class T>
  Changed& set(std::string_view key, T value) {
    static_assert(sizeof value == 4);
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    bytes_.replace(bytes_.find(key) + key.size() + sizeof(std::uint32_t), bytes.size(), bytes);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class GgufCheckpointErrors : public testing::Test {
 protected:
  ~GgufCheckpointErrors() override { fs::remove(path_); }

  const fs::path& write(const Changed& file) const {
    std::ofstream(path_, std::ios::binary) << file.bytes();
    return path_;
  }

 private:
  const fs::path path_ =
      fs::path(testing::TempDir()) /
      (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".gguf");
};

TEST_F(GgufCheckpointErrors, AnotherDecisionTypeIsRefusedByName) {
  const fs::path path = write(Changed("kev-tiny-dense.f16").replace("kev", "lev"));
  expect_error(ErrorKind::unsupported, {path.string(), "qwen3.decision.type", "'lev'"},
               [&] { open_gguf_checkpoint(path); });
}

TEST_F(GgufCheckpointErrors, ALanguageModelIsNoDecisionModel) {
  const fs::path path =
      write(Changed("kev-tiny-dense.f16").replace("qwen3.decision.type", "qwen3.decision.none"));
  expect_error(ErrorKind::unsupported, {"qwen3.decision.type", "without a decision head"},
               [&] { open_gguf_checkpoint(path); });
}

TEST_F(GgufCheckpointErrors, TemperaturesThatDifferByTypeAreRefused) {
  const fs::path path = write(Changed("kev-tiny-dense.f16").set("decision.temperature.score", 2.0f));
  expect_error(ErrorKind::unsupported, {"temperature"}, [&] { open_gguf_checkpoint(path); });
}

TEST_F(GgufCheckpointErrors, ATemperatureForSomeOptionCountsAloneIsRefused) {
  const fs::path path = write(Changed("kev-tiny-dense.f16")
                                  .set("decision.temperature.score", 2.0f)
                                  .replace("decision.temperature.score", "decision.temperature.sco.2"));
  expect_error(ErrorKind::unsupported, {"temperature"}, [&] { open_gguf_checkpoint(path); });
}

TEST_F(GgufCheckpointErrors, ATemperatureThatIsNotPositiveIsRefused) {
  for (const float value : {0.0f, -1.0f}) {
    const fs::path path = write(Changed("kev-tiny-dense.f16").set("decision.temperature.choice", value));
    expect_error(ErrorKind::mismatch, {"decision.temperature.choice"}, [&] { open_gguf_checkpoint(path); });
  }
}

TEST_F(GgufCheckpointErrors, AHeadOfAnotherNameIsRefusedByName) {
  const fs::path path =
      write(Changed("kev-tiny-dense.f16").replace("cls.output.weight", "cls.autput.weight"));
  expect_error(ErrorKind::unsupported, {"cls.autput.weight"}, [&] { open_gguf_checkpoint(path); });
}

TEST_F(GgufCheckpointErrors, AHeadOfAnotherSizeThanDeclaredIsRefused) {
  const fs::path path =
      write(Changed("kev-tiny-dense.f16").set("qwen3.embedding_length_out", std::uint32_t{64}));
  expect_error(ErrorKind::mismatch, {"qwen3.embedding_length_out", "64", "128"},
               [&] { open_gguf_checkpoint(path); });
}

TEST_F(GgufCheckpointErrors, AMissingDelimiterIsNamed) {
  const fs::path path = write(Changed("kev-tiny-dense.f16").replace("<|box_end|>", "<|box_enD|>"));
  expect_error(ErrorKind::missing, {path.string(), "<|box_end|>"}, [&] { open_gguf_checkpoint(path); });
}

TEST_F(GgufCheckpointErrors, AMissingLayerIsNamed) {
  const fs::path path = write(Changed("kev-tiny-dense.f16").set("qwen3.block_count", std::uint32_t{4}));
  expect_error(ErrorKind::missing, {"layers.3."}, [&] { open_gguf_checkpoint(path); });
}

}  // namespace
}  // namespace assay::decision
