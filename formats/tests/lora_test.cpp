#include "formats/lora.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "formats/canonical_names.hpp"
#include "formats/safetensors.hpp"
#include "formats/tests/support.hpp"

namespace assay::formats {
namespace {

using nlohmann::json;
using test::error_of;
using ::testing::HasSubstr;

const std::filesystem::path kTestData = ASSAY_TEST_DATA;
constexpr std::size_t kRows = 11;
constexpr std::size_t kColumns = 37;
constexpr std::size_t kRank = 5;
const std::string kModule = "layers.0.mlp.up_proj";

json plain_config() {
  return {{"peft_type", "LORA"}, {"r", kRank}, {"lora_alpha", 12}, {"bias", "none"}};
}

LoraConfig parse_lora(const json& config) {
  return parse_lora_config(config.dump(), "adapter_config.json");
}
Error refused_lora(const json& config) {
  return error_of([&] { parse_lora(config); });
}

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

const std::vector<float> kA = random_values(kRank * kColumns, 1);
const std::vector<float> kB = random_values(kRows * kRank, 2);
const std::vector<float> kW = random_values(kRows * kColumns, 3);

/// Owns the bytes of a source made in memory.
struct Memory {
  std::string file;
  std::shared_ptr<const TensorSource> source;

  explicit Memory(const std::vector<test::Tensor>& tensors)
      : file(test::safetensors(tensors)),
        source(parse_safetensors(test::bytes_of(file), "test.safetensors")) {}
};

test::Tensor matrix(const std::string& name, std::size_t rows, std::size_t columns,
                    const std::vector<float>& values) {
  return {name, "F32", {rows, columns}, test::raw(values)};
}

std::vector<test::Tensor> adapter(const std::string& prefix, const std::string& suffix = "") {
  return {matrix(prefix + ".lora_A" + suffix + ".weight", kRank, kColumns, kA),
          matrix(prefix + ".lora_B" + suffix + ".weight", kRows, kRank, kB)};
}

std::vector<test::Tensor> base() {
  return {matrix(kModule + ".weight", kRows, kColumns, kW),
          {"norm.weight", "F32", {2}, test::raw<float>({1, 2})}};
}

std::shared_ptr<const TensorSource> merge(const Memory& weights, const Memory& factors,
                                          const json& config = plain_config(), LoraReport* report = nullptr) {
  return merge_lora(canonical_names(weights.source), parse_lora(config), factors.source,
                    "adapter.safetensors", report);
}

std::vector<float> read(const TensorSource& source, std::uint64_t first = 0, std::uint64_t count = kRows) {
  std::vector<float> out(count * kColumns);
  source.read_rows(kModule + ".weight", first, count, out);
  return out;
}

void expect_merged(const std::vector<float>& merged, double scale) {
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (std::size_t r = 0; r < kRank; ++r) sum += double{kB[i * kRank + r]} * double{kA[r * kColumns + j]};
      EXPECT_NEAR(merged[i * kColumns + j], kW[i * kColumns + j] + scale * sum, 1e-5) << i << " " << j;
    }
  }
}

TEST(Lora, AddsTheScaledProduct) {
  const Memory weights(base());
  const Memory factors(adapter("base_model.model." + kModule));
  LoraReport report;
  const auto merged = merge(weights, factors, plain_config(), &report);
  EXPECT_EQ(report.matched, 1u);
  EXPECT_TRUE(report.unmatched.empty());
  expect_merged(read(*merged), 12.0 / kRank);
  EXPECT_TRUE(merged->stored_bytes(kModule + ".weight").empty());
}

TEST(Lora, LeavesOtherTensorsAlone) {
  const Memory weights(base());
  const Memory factors(adapter("base_model.model." + kModule));
  const auto merged = merge(weights, factors);
  EXPECT_EQ(merged->names(), canonical_names(weights.source)->names());
  EXPECT_EQ(read_tensor(*merged, "norm.weight", std::array<std::uint64_t, 1>{2}), (std::vector<float>{1, 2}));
  EXPECT_EQ(merged->stored_bytes("norm.weight").size(), 8u);
}

TEST(Lora, RankStabilisedScalesByTheRoot) {
  const Memory weights(base());
  const Memory factors(adapter("base_model.model." + kModule));
  json config = plain_config();
  config["use_rslora"] = true;
  expect_merged(read(*merge(weights, factors, config)), 12.0 / std::sqrt(5.0));
}

TEST(Lora, EveryPrefixAndAdapterNameMatches) {
  const Memory weights(base());
  for (const char* prefix :
       {"base_model.model.", "base_model.model.model.", "base_model.model.model.language_model."}) {
    for (const char* suffix : {"", ".default"}) {
      const Memory factors(adapter(prefix + kModule, suffix));
      expect_merged(read(*merge(weights, factors)), 12.0 / kRank);
    }
  }
}

TEST(Lora, RowsDoNotDependOnHowTheyAreRead) {
  const Memory weights(base());
  const Memory factors(adapter("base_model.model." + kModule));
  const auto merged = merge(weights, factors);
  const std::vector<float> whole = read(*merged);
  for (std::size_t group = 1; group <= kRows; ++group) {
    std::vector<float> pieces;
    for (std::size_t first = 0; first < kRows; first += group) {
      const std::vector<float> part = read(*merged, first, std::min(group, kRows - first));
      pieces.insert(pieces.end(), part.begin(), part.end());
    }
    merged->release(kModule + ".weight");
    EXPECT_EQ(pieces, whole) << group;
  }
}

TEST(Lora, PatternsFollowPeft) {
  // The first pattern in the file's order that matches a whole path, or what follows one of its dots.
  const LoraConfig config = parse_lora_config(
      R"({"peft_type":"LORA","r":8,"lora_alpha":16,
          "rank_pattern":{"z_proj":2,"layers.1.up_proj":3,"up_proj":4,"^model.down_proj":5,"layers\\.[0-3]\\.k_proj":6,"down_proj":7},
          "alpha_pattern":{"up_proj":1}})",
      "adapter_config.json");
  EXPECT_EQ(config.rank_of("layers.1.up_proj"), 3u);
  EXPECT_EQ(config.rank_of("layers.2.up_proj"), 4u);
  EXPECT_EQ(config.rank_of("model.down_proj"), 5u);
  EXPECT_EQ(config.rank_of("layers.0.down_proj"), 7u);
  EXPECT_EQ(config.rank_of("layers.3.k_proj"), 6u);
  EXPECT_EQ(config.rank_of("layers.4.k_proj"), 8u);
  EXPECT_EQ(config.rank_of("layers.0.gup_proj"), 8u);
  EXPECT_EQ(config.rank_of("layers.0.up_proj.inner"), 8u);
  EXPECT_EQ(config.rank_of("up_proj"), 4u);
  EXPECT_FLOAT_EQ(config.scale_of("layers.1.up_proj"), 1.0f / 3.0f);
  EXPECT_FLOAT_EQ(config.scale_of("layers.0.q_proj"), 2.0f);
}

TEST(Lora, APatternOutOfBoundsIsRefusedWhereItIsUsed) {
  json config = plain_config();
  config["rank_pattern"] = {{"(", 4}};
  EXPECT_EQ(refused_lora(config).kind(), ErrorKind::malformed);
  config["rank_pattern"] = {{"((a*)*)*[bc]", 4}};
  const LoraConfig slow = parse_lora(config);
  EXPECT_EQ(error_of([&] { slow.rank_of(std::string(60, 'a')); }).kind(), ErrorKind::malformed);
}

TEST(Lora, FeaturesThatChangeWeightsAreRefusedByName) {
  const std::vector<std::pair<std::string, json>> features = {
      {"use_dora", true},
      {"lora_bias", true},
      {"modules_to_save", {"head"}},
      {"bias", "all"},
      {"bias", "lora_only"},
      {"trainable_token_indices", {1, 2}},
      {"trainable_token_indices", {{"embed_tokens", {1}}}},
      {"layer_replication", {{0, 4}}},
      {"target_parameters", {"x"}},
      {"use_qalora", true},
      {"alora_invocation_tokens", {5}},
      {"use_bdlora", {{"a", 1}}},
      {"init_lora_weights", "pissa"},
      {"init_lora_weights", "olora"},
      {"init_lora_weights", "loftq"},
      {"peft_type", "IA3"},
      {"a_feature_of_next_year", 3}};
  for (const auto& [key, value] : features) {
    json config = plain_config();
    config[key] = value;
    const Error error = refused_lora(config);
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << key << " " << value;
    EXPECT_THAT(error.what(), HasSubstr("adapter_config.json: " + key));
  }
}

TEST(Lora, FieldsThatLeaveMergedWeightsAloneArePassedOver) {
  json config = json::parse(read_text_file(kTestData / "kev-tiny-hybrid/run/adapter_config.json"));
  EXPECT_EQ(parse_lora(config).rank, 8u);
  config["fan_in_fan_out"] = true;
  config["init_lora_weights"] = "gaussian";
  EXPECT_EQ(parse_lora(config).alpha, 16);
}

TEST(Lora, ABrokenConfigurationIsRefused) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, json>>{{"r", 0},
                                                 {"r", -1},
                                                 {"r", 1 << 20},
                                                 {"r", "8"},
                                                 {"lora_alpha", "16"},
                                                 {"use_rslora", 1},
                                                 {"rank_pattern", {{"x", 0}}},
                                                 {"rank_pattern", 3},
                                                 {"alpha_pattern", {{"x", nullptr}}}}) {
    json config = plain_config();
    config[key] = value;
    EXPECT_EQ(refused_lora(config).kind(), ErrorKind::malformed) << key << " " << value;
  }
  for (const char* key : {"r", "lora_alpha"}) {
    json config = plain_config();
    config.erase(key);
    EXPECT_EQ(refused_lora(config).kind(), ErrorKind::missing) << key;
  }
}

TEST(Lora, AnAdapterForAnotherBaseIsRefusedWithCounts) {
  const Memory weights(base());
  std::vector<test::Tensor> tensors = adapter("base_model.model." + kModule);
  for (const test::Tensor& tensor : adapter("base_model.model.layers.9.mlp.up_proj"))
    tensors.push_back(tensor);
  const Memory some(tensors);
  LoraReport report;
  const Error partly = error_of([&] { merge(weights, some, plain_config(), &report); });
  EXPECT_EQ(partly.kind(), ErrorKind::mismatch);
  EXPECT_THAT(partly.what(),
              HasSubstr("1 modules that the base has and 1 that it has not, 'layers.9.mlp.up_proj'"));
  EXPECT_EQ(report.matched, 1u);
  EXPECT_THAT(report.unmatched, ::testing::ElementsAre("layers.9.mlp.up_proj"));

  const Memory none(adapter("base_model.model.visual.blocks.0.up_proj"));
  EXPECT_EQ(error_of([&] { merge(weights, none); }).kind(), ErrorKind::mismatch);
  const Memory empty({});
  EXPECT_EQ(error_of([&] { merge(weights, empty); }).kind(), ErrorKind::missing);
}

TEST(Lora, FactorsOfAnotherShapeAreNamed) {
  const Memory weights(base());
  const std::string prefix = "base_model.model." + kModule;
  const std::vector<test::Tensor> good = adapter(prefix);
  const auto expect_mismatch = [&](const std::vector<test::Tensor>& tensors) {
    const Memory factors(tensors);
    const Error error = error_of([&] { merge(weights, factors); });
    EXPECT_EQ(error.kind(), ErrorKind::mismatch);
    EXPECT_THAT(error.what(), HasSubstr(kModule));
  };
  expect_mismatch({matrix(prefix + ".lora_A.weight", kColumns, kRank, kA), good[1]});
  expect_mismatch({good[0], matrix(prefix + ".lora_B.weight", kRank, kRows, kB)});
  expect_mismatch(
      {matrix(prefix + ".lora_A.weight", kRank - 1, kColumns, random_values((kRank - 1) * kColumns, 4)),
       good[1]});
}

TEST(Lora, HalfAPairIsNamed) {
  const Memory weights(base());
  for (const std::size_t kept : {std::size_t{0}, std::size_t{1}}) {
    const Memory factors({adapter("base_model.model." + kModule)[kept]});
    const Error error = error_of([&] { merge(weights, factors); });
    EXPECT_EQ(error.kind(), ErrorKind::missing);
    EXPECT_THAT(error.what(), HasSubstr("module '" + kModule + "'"));
  }
}

TEST(Lora, TensorsOfOtherAdapterKindsAreRefusedByName) {
  const Memory weights(base());
  const std::string module = "base_model.model." + kModule;
  const std::vector<std::string> names = {
      module + ".lora_magnitude_vector", "base_model.model.embed_tokens.lora_embedding_A",
      module + ".lora_B.bias", "base_model.model.head.modules_to_save.weight",
      "base_model.model.embed_tokens.token_adapter.trainable_tokens_delta"};
  for (const std::string& name : names) {
    std::vector<test::Tensor> tensors = adapter(module);
    tensors.push_back(matrix(name, 1, 1, {1}));
    const Memory factors(tensors);
    const Error error = error_of([&] { merge(weights, factors); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << name;
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
  const Memory stray({matrix("something.else", 1, 1, {1})});
  EXPECT_EQ(error_of([&] { merge(weights, stray); }).kind(), ErrorKind::malformed);
}

TEST(Lora, AnAdapterOnAVectorIsUnsupported) {
  const Memory weights(base());
  const Memory factors(
      {matrix("base_model.model.norm.lora_A.weight", kRank, 1, random_values(kRank, 5)),
       matrix("base_model.model.norm.lora_B.weight", 2, kRank, random_values(2 * kRank, 6))});
  EXPECT_EQ(error_of([&] { merge(weights, factors); }).kind(), ErrorKind::unsupported);
}

TEST(Lora, NonFiniteFactorsAndSumsAreNamed) {
  const Memory weights(base());
  std::vector<test::Tensor> tensors = adapter("base_model.model." + kModule);
  std::vector<float> a = kA;
  a[3] = NAN;
  tensors[0].data = test::raw(a);
  const Memory bad_factor(tensors);
  const Error factor = error_of([&] { read(*merge(weights, bad_factor)); });
  EXPECT_EQ(factor.kind(), ErrorKind::non_finite);
  EXPECT_THAT(factor.what(), HasSubstr("lora_A.weight': NaN at element 3"));

  tensors[0].data = test::raw(std::vector<float>(kRank * kColumns, 3e38f));
  const Memory overflowing(tensors);
  const Error sum = error_of([&] { read(*merge(weights, overflowing)); });
  EXPECT_EQ(sum.kind(), ErrorKind::non_finite);
  EXPECT_THAT(sum.what(), HasSubstr(kModule));
}

TEST(LoraFiles, TheFixtureMergesWhole) {
  LoraReport report;
  const auto weights = canonical_names(open_safetensors(kTestData / "kev-tiny-hybrid/base"));
  const auto merged = merge_lora(weights, kTestData / "kev-tiny-hybrid/run", &report);
  EXPECT_EQ(report.matched, 31u);
  const std::vector<std::uint64_t> shape = {1024, 256};
  EXPECT_NE(read_tensor(*merged, "layers.0.linear_attn.in_proj_qkv.weight", shape),
            read_tensor(*weights, "layers.0.linear_attn.in_proj_qkv.weight", shape));
}

TEST(LoraFiles, AnAdapterWithoutWeightsSaysWhatIsThere) {
  const test::TemporaryDirectory directory;
  directory.write("adapter_config.json", plain_config().dump());
  const Memory weights(base());
  const auto open = [&] { return error_of([&] { merge_lora(weights.source, directory.path()); }); };
  EXPECT_EQ(open().kind(), ErrorKind::missing);
  directory.write("adapter_model.bin", "x");
  EXPECT_THAT(open().what(), HasSubstr("only adapter_model.bin is there"));
}

TEST(Lora, EveryModuleThatTargetModulesNamesMustBeAdapted) {
  std::vector<test::Tensor> weights = base();
  weights.push_back(matrix("layers.1.mlp.up_proj.weight", kRows, kColumns, kW));
  weights.push_back(matrix("embed_tokens.weight", kRows, kColumns, kW));
  const Memory two(weights);
  const Memory one(adapter("base_model.model.model." + kModule));
  json config = plain_config();
  for (const json& targets : {json::array({"up_proj"}), json::array({"q_proj", "mlp.up_proj"}),
                              json::array({kModule, "layers.1.mlp.up_proj"})}) {
    config["target_modules"] = targets;
    const Error error = error_of([&] { merge(two, one, config); });
    EXPECT_EQ(error.kind(), ErrorKind::missing) << targets;
    EXPECT_THAT(error.what(), HasSubstr("layers.1.mlp.up_proj")) << targets;
  }
  // A pattern is of the author's whole model; a name is a whole part of a path, and the table is no target.
  for (const json& targets : {json::array({"layers.0.mlp.up_proj"}), json::array({kModule, "embed_tokens"}),
                              json(".*up_proj"), json(nullptr)}) {
    config["target_modules"] = targets;
    EXPECT_NO_THROW(merge(two, one, config)) << targets;
  }
  config["target_modules"] = json::array({"up_proj"});
  for (const json& layers : {json::array({0}), json(0)}) {
    config["layers_to_transform"] = layers;
    EXPECT_NO_THROW(merge(two, one, config)) << layers;
  }
  config["layers_to_transform"] = nullptr;
  config["exclude_modules"] = json::array({"layers.1.mlp.up_proj"});
  EXPECT_NO_THROW(merge(two, one, config));
}

TEST(Lora, AModuleThatIsNoTargetMustNotBeAdapted) {
  const Memory weights(base());
  const Memory factors(adapter("base_model.model.model." + kModule));
  const std::vector<std::pair<std::string, json>> limits = {
      {"target_modules", json::array({"v_proj"})},
      {"target_modules", json::array({"p_proj"})},
      {"target_modules", json::array()},
      {"layers_to_transform", json::array({1})},
      {"layers_to_transform", 10},
      {"exclude_modules", json::array({"mlp.up_proj"})}};
  for (const auto& [field, value] : limits) {
    json config = plain_config();
    config["target_modules"] = json::array({"up_proj"});
    EXPECT_NO_THROW(merge(weights, factors, config));
    config[field] = value;
    const Error error = error_of([&] { merge(weights, factors, config); });
    EXPECT_EQ(error.kind(), ErrorKind::mismatch) << value;
    EXPECT_THAT(error.what(), HasSubstr(kModule)) << value;
  }
}

TEST(Lora, TargetsOfAnotherTypeAreRefusedByField) {
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, json>>{{"target_modules", json::array({"up_proj", 7})},
                                                 {"exclude_modules", json::array({nullptr})},
                                                 {"layers_to_transform", "0"},
                                                 {"layers_to_transform", json::array({-1})}}) {
    json config = plain_config();
    config["target_modules"] = json::array({"up_proj"});
    config[field] = value;
    EXPECT_THAT(refused_lora(config).what(), HasSubstr(field));
  }
}

TEST(Lora, AnAdapterWithoutTensorsIsCalledThat) {
  const Memory weights(base());
  const Memory none({});
  EXPECT_THAT(error_of([&] { merge(weights, none); }).what(), HasSubstr("no tensors"));
}

TEST(Lora, AnAlphaBeyondFp32IsTheConfigurationsFault) {
  json config = plain_config();
  config["lora_alpha"] = 1e300;
  EXPECT_THAT(refused_lora(config).what(), HasSubstr("lora_alpha"));
  config["lora_alpha"] = 12;
  config["alpha_pattern"] = {{"up_proj", -1e300}};
  EXPECT_THAT(refused_lora(config).what(), HasSubstr("alpha_pattern.up_proj"));
}

TEST(Lora, FactorsOfAnIntegerTypeAreRefusedByName) {
  const Memory weights(base());
  for (const bool first : {true, false}) {
    std::vector<test::Tensor> factors = adapter("base_model.model.model." + kModule);
    factors[first ? 0 : 1].dtype = "I32";
    const Memory memory(factors);
    const Error error = error_of([&] { merge(weights, memory); });
    EXPECT_EQ(error.kind(), ErrorKind::mismatch);
    EXPECT_THAT(error.what(), HasSubstr(first ? "lora_A" : "lora_B"));
    EXPECT_THAT(error.what(), HasSubstr("I32"));
  }
}

TEST(Lora, AnAdapterOnTheLanguageModelsOutputIsNotTheBackbones) {
  std::vector<test::Tensor> weights = base();
  weights.push_back(matrix("lm_head.weight", kRows, kColumns, kW));
  std::vector<test::Tensor> factors = adapter("base_model.model.model." + kModule);
  for (test::Tensor& tensor : adapter("base_model.model.lm_head")) factors.push_back(std::move(tensor));
  const Memory with_head(weights);
  const Memory memory(factors);
  EXPECT_THAT(error_of([&] { merge(with_head, memory); }).what(), HasSubstr("lm_head"));
}

}  // namespace
}  // namespace assay::formats
