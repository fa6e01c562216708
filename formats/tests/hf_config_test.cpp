#include "formats/hf_config.hpp"
#include "base/tests/expect_error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/tests/support.hpp"

namespace assay::formats {
namespace {

using nlohmann::json;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kData = ASSAY_TEST_DATA;

json fixture(const std::string& name) {
  return json::parse(read_text_file(kData / name / "base/config.json"));
}
json hybrid() {
  return fixture("kev-tiny-hybrid");
}
json dense() {
  return fixture("kev-tiny-dense");
}

ModelConfig parse(const json& config) {
  return parse_hf_config(config.dump(), "config.json");
}
Error refused(const json& config) {
  return error_of([&] { parse(config); });
}

TEST(HfConfig, ReadsAHybrid) {
  const ModelConfig config = parse(hybrid());
  EXPECT_EQ(config.family, Family::qwen3_5);
  EXPECT_EQ(config.hidden_size, 256u);
  EXPECT_EQ(config.intermediate_size, 640u);
  EXPECT_EQ(config.vocabulary_size, 1536u);
  EXPECT_THAT(config.layers, ElementsAre(LayerType::linear_attention, LayerType::linear_attention,
                                         LayerType::linear_attention, LayerType::full_attention));
  EXPECT_EQ(config.heads, 2u);
  EXPECT_EQ(config.kv_heads, 1u);
  EXPECT_EQ(config.head_dim, 256u);
  EXPECT_EQ(config.rotary_dim, 64u);
  EXPECT_EQ(config.rope_theta, 1e7f);
  EXPECT_EQ(config.rms_norm_eps, 1e-6f);
  EXPECT_EQ(config.conv_channels(), 1024u);
  EXPECT_EQ(config.linear_conv_width, 4u);
}

TEST(HfConfig, ReadsADenseModel) {
  const ModelConfig config = parse(dense());
  EXPECT_EQ(config.family, Family::qwen3);
  EXPECT_EQ(config.rotary_dim, 128u);
  EXPECT_EQ(config.rope_theta, 1e6f);
  EXPECT_EQ(config.conv_channels(), 0u);
}

TEST(HfConfig, ReadsTheTextPartOfANestedConfiguration) {
  json text = hybrid();
  const json nested = {
      {"model_type", "qwen3_5"}, {"text_config", text}, {"vision_config", {{"hidden_size", 3}}}};
  EXPECT_EQ(parse(nested).hidden_size, 256u);
  EXPECT_EQ(parse(nested).rotary_dim, 64u);
}

TEST(HfConfig, ReadsTheOlderRotaryFields) {
  json config = hybrid();
  config.erase("rope_parameters");
  config["rope_theta"] = 1e7;
  config["rope_scaling"] = nullptr;
  config["partial_rotary_factor"] = 0.5;
  EXPECT_EQ(parse(config).rotary_dim, 128u);
  EXPECT_EQ(parse(config).rope_theta, 1e7f);
  config["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {11, 11, 10}}};
  EXPECT_EQ(parse(config).rotary_dim, 128u);
}

TEST(HfConfig, RotaryFieldsThatDisagreeAreRefusedWithBothPlaces) {
  for (const char* field : {"partial_rotary_factor", "rope_theta"}) {
    json config = hybrid();
    config[field] = config["rope_parameters"][field];
    EXPECT_NO_THROW(parse(config)) << field;
    config[field] = 0.5;
    EXPECT_THAT(refused(config).what(), HasSubstr(std::string("rope_parameters.") + field));
    EXPECT_THAT(refused(config).what(), HasSubstr(std::string("config.json: ") + field));
  }
}

TEST(HfConfig, LayerTypesFollowTheIntervalWhereNotListed) {
  json config = hybrid();
  config.erase("layer_types");
  EXPECT_EQ(parse(config).layers, parse(hybrid()).layers);
  config["full_attention_interval"] = 2;
  EXPECT_EQ(parse(config).layers[1], LayerType::full_attention);
  config = dense();
  config.erase("layer_types");
  EXPECT_EQ(parse(config).layers, parse(dense()).layers);
}

TEST(HfConfig, FeaturesThatNothingRunsAreRefusedByName) {
  const std::vector<std::pair<std::string, json>> features = {
      {"attention_bias", true},
      {"use_sliding_window", true},
      {"hidden_act", "gelu"},
      {"num_experts", 8},
      {"num_experts_per_tok", 2},
      {"quantization_config", {{"quant_method", "awq"}}},
      {"attn_output_gate", false},
      {"model_type", "qwen3_5_moe_text"},
      {"model_type", "qwen3_moe"},
      {"model_type", "llama"},
      {"rope_parameters", {{"rope_type", "yarn"}, {"rope_theta", 1e6}}},
      {"rope_scaling", {{"type", "linear"}}},
      {"layer_types", {"full_attention", "full_attention", "full_attention", "sliding_attention"}}};
  for (const auto& [key, value] : features) {
    json config = hybrid();
    config[key] = value;
    const Error error = refused(config);
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << key << " " << error.what();
    EXPECT_THAT(error.what(), HasSubstr("config.json: ")) << key;
    EXPECT_THAT(error.what(), HasSubstr(key));
  }
}

TEST(HfConfig, AQuantisedNestedModelIsRefused) {
  const json nested = {
      {"model_type", "qwen3_5"}, {"text_config", hybrid()}, {"quantization_config", {{"bits", 4}}}};
  EXPECT_EQ(refused(nested).kind(), ErrorKind::unsupported);
}

TEST(HfConfig, AMissingSizeIsNamed) {
  for (const char* key :
       {"hidden_size", "intermediate_size", "vocab_size", "num_hidden_layers", "num_attention_heads",
        "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim"}) {
    json config = hybrid();
    config.erase(key);
    const Error error = refused(config);
    EXPECT_EQ(error.kind(), ErrorKind::missing) << key;
    EXPECT_THAT(error.what(), HasSubstr(key));
  }
  json config = hybrid();
  config["rope_parameters"].erase("rope_theta");
  EXPECT_EQ(refused(config).kind(), ErrorKind::missing);
}

TEST(HfConfig, SizesThatAreAbsurdOrDisagreeAreNamed) {
  const std::vector<std::pair<std::string, json>> values = {{"hidden_size", 0},
                                                            {"hidden_size", -1},
                                                            {"hidden_size", 1.5},
                                                            {"hidden_size", "256"},
                                                            {"hidden_size", 1ull << 60},
                                                            {"vocab_size", 18446744073709551615ull},
                                                            {"num_hidden_layers", 0},
                                                            {"num_hidden_layers", 1000000000},
                                                            {"num_hidden_layers", 5},
                                                            {"num_attention_heads", 0},
                                                            {"num_key_value_heads", 0},
                                                            {"num_key_value_heads", 3},
                                                            {"head_dim", 1 << 30},
                                                            {"rms_norm_eps", 0},
                                                            {"rms_norm_eps", -1e-6},
                                                            {"linear_conv_kernel_dim", 1000000},
                                                            {"linear_num_value_heads", 3},
                                                            {"linear_key_head_dim", 0},
                                                            {"layer_types", "full_attention"},
                                                            {"max_position_embeddings", 0}};
  for (const auto& [key, value] : values) {
    json config = hybrid();
    config[key] = value;
    const Error error = refused(config);
    EXPECT_EQ(error.kind(), ErrorKind::malformed) << key << " " << value << " " << error.what();
    EXPECT_THAT(error.what(), HasSubstr(key));
  }
}

TEST(HfConfig, ARotaryFactorThatLeavesAnOddOrEmptyPartIsRefused) {
  for (const double factor : {0.0, -0.25, 1.5, 0.001, 3.0 / 256}) {
    json config = hybrid();
    config["rope_parameters"]["partial_rotary_factor"] = factor;
    config.erase("partial_rotary_factor");
    EXPECT_EQ(refused(config).kind(), ErrorKind::malformed) << factor;
  }
}

TEST(HfConfig, TextThatIsNoConfigurationIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("3"), std::string("{} x"),
        std::string(R"({"a":1,"a":2})"), std::string(R"({"a":1e999})"), std::string(100000, '['),
        std::string("{\"a\":\"\xff\"}")}) {
    EXPECT_EQ(error_of([&] { parse_hf_config(text, "config.json"); }).kind(), ErrorKind::malformed)
        << text.substr(0, 20);
  }
}

TEST(HfConfig, AConfigurationCutAnywhereIsRefused) {
  const std::string text = hybrid().dump();
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(
        error_of([&] { parse_hf_config(std::string_view(text).substr(0, size), "config.json"); }).kind(),
        ErrorKind::malformed);
  }
}

TEST(HfConfig, ANulEndsNothingInSilence) {
  expect_error(ErrorKind::malformed, "NUL",
               [] { parse_hf_config(std::string("{}\0{\"evil\": 1}", 14), "config.json"); });
}

}  // namespace
}  // namespace assay::formats
