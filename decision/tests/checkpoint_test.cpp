#include "decision/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/safetensors.hpp"
#include "formats/tests/support.hpp"

namespace assay::decision {
namespace {

namespace fs = std::filesystem;
using formats::test::error_of;
using formats::test::Pickle;
using formats::test::TemporaryDirectory;
using formats::test::Tensor;
using ::testing::HasSubstr;

const fs::path kData = ASSAY_TEST_DATA;
constexpr std::size_t kHidden = 256;
constexpr std::size_t kDim = 2;

/// A head.pt in the making; each field is one operation sequence that pushes its value.
struct Head {
  std::map<std::string, std::function<void(Pickle&)>> fields = {
      {"base", [](Pickle& p) { p.text("../base"); }},
      {"lora", [](Pickle& p) { p.integer(0); }},
      {"head_dim", [](Pickle& p) { p.integer(kDim); }},
      {"temperature", [](Pickle& p) { p.number(1.5); }},
  };
  std::map<std::string, std::vector<std::int64_t>> shapes = {
      {"q.weight", {kDim, kHidden}}, {"q.bias", {kDim}}, {"k.weight", {kDim, kHidden}}, {"k.bias", {kDim}}};
  float value = 0.25f;

  std::string bytes() const {
    Pickle pickle;
    pickle.op("}(");
    for (const auto& [name, push] : fields) {
      pickle.text(name);
      push(pickle);
    }
    std::vector<std::pair<std::string, std::string>> entries;
    pickle.text("head").op("}(");
    for (const auto& [name, shape] : shapes) {
      const std::int64_t columns = shape.size() == 2 ? shape[1] : 1;
      const std::int64_t count = shape[0] * columns;
      const auto strides =
          shape.size() == 2 ? std::vector<std::int64_t>{columns, 1} : std::vector<std::int64_t>{1};
      pickle.text(name).tensor("FloatStorage", name, count, 0, shape, strides);
      entries.emplace_back("head/data/" + name,
                           formats::test::raw(std::vector<float>(static_cast<std::size_t>(count), value)));
    }
    entries.emplace_back("head/data.pkl", pickle.op("uu").done());
    return formats::test::zip_of(entries);
  }
};

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    directory_.copy(kData / "kev-tiny-hybrid/base", "base");
    directory_.copy(kData / "kev-tiny-hybrid/run", "run");
  }

  Checkpoint open() const { return open_checkpoint(directory_ / "run", std::nullopt); }
  Error refused() const {
    return error_of([&] { open(); });
  }
  void write_head(const Head& head) const { directory_.write("run/head.pt", head.bytes()); }
  /// A run whose head is on the bare base.
  void without_adapter(const Head& head = {}) const {
    fs::remove(directory_ / "run/adapter_config.json");
    fs::remove(directory_ / "run/adapter_model.safetensors");
    write_head(head);
  }
  std::vector<Tensor> base_tensors() const {
    const auto source = formats::open_safetensors(kData / "kev-tiny-hybrid/base");
    std::vector<Tensor> tensors;
    for (const std::string& name : source->names()) {
      const auto bytes = source->stored_bytes(name);
      tensors.push_back({name, std::string(to_string(source->find(name)->type)), source->find(name)->shape,
                         std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
    }
    return tensors;
  }
  void write_base(const std::vector<Tensor>& tensors) const {
    directory_.write("base/model.safetensors", formats::test::safetensors(tensors));
  }

  TemporaryDirectory directory_;
};

void expect_equal_weights(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.weights->names(), b.weights->names());
  for (const std::string& name : a.weights->names()) {
    const auto& shape = a.weights->find(name)->shape;
    EXPECT_EQ(formats::read_tensor(*a.weights, name, shape), formats::read_tensor(*b.weights, name, shape))
        << name;
  }
}

TEST(CheckpointFixture, OpensBothFamilies) {
  const Checkpoint hybrid = open_checkpoint(kData / "kev-tiny-hybrid/run", std::nullopt);
  EXPECT_EQ(hybrid.config.family, formats::Family::qwen3_5);
  EXPECT_EQ(hybrid.head.dim, 64u);
  EXPECT_EQ(hybrid.head.hidden, kHidden);
  EXPECT_EQ(hybrid.head.q_weight.size(), 64u * kHidden);
  EXPECT_EQ(hybrid.head.k_bias.size(), 64u);
  EXPECT_EQ(hybrid.head.temperature, 1.37f);
  EXPECT_EQ(hybrid.sources.adapter->matched, 31u);
  EXPECT_EQ(hybrid.sources.weights_dtype, "fp32");
  EXPECT_EQ(hybrid.files->identity().size(), 64u);
  const Checkpoint dense = open_checkpoint(kData / "kev-tiny-dense/run", std::nullopt);
  EXPECT_EQ(dense.config.family, formats::Family::qwen3);
  EXPECT_EQ(dense.sources.adapter->matched, 21u);
  EXPECT_NE(dense.files->identity(), hybrid.files->identity());
}

TEST_F(CheckpointTest, IdentityFollowsTheContents) {
  const std::string before = open().files->identity();
  EXPECT_EQ(open().files->identity(), before);
  EXPECT_EQ(open_checkpoint(kData / "kev-tiny-hybrid/run", std::nullopt).files->identity(), before);
  directory_.write("run/adapter_config.json", read_text_file(directory_ / "run/adapter_config.json") + "\n");
  EXPECT_NE(open().files->identity(), before);
}

TEST_F(CheckpointTest, TheBaseIsTakenFromTheOptionFirst) {
  directory_.copy(kData / "kev-tiny-hybrid/base", "elsewhere");
  fs::remove_all(directory_ / "base");
  const Error lost = refused();
  EXPECT_EQ(lost.kind(), ErrorKind::missing);
  EXPECT_THAT(lost.what(), HasSubstr("'../base'"));
  EXPECT_THAT(lost.what(), HasSubstr("--base"));
  EXPECT_EQ(open_checkpoint(directory_ / "run", directory_ / "elsewhere").sources.base,
            directory_ / "elsewhere");
  EXPECT_EQ(error_of([&] { open_checkpoint(directory_ / "run", directory_ / "nowhere"); }).kind(),
            ErrorKind::missing);
}

TEST_F(CheckpointTest, TheBaseMayBeAnAbsolutePathOrInTheHubCache) {
  fs::rename(directory_ / "base", directory_ / "moved");
  Head head;
  head.fields["base"] = [&](Pickle& p) { p.text((directory_ / "moved").string()); };
  without_adapter(head);
  EXPECT_EQ(open().sources.base, directory_ / "moved");

  const std::string snapshot = "cache/models--org--tiny/snapshots/0123456789abcdef";
  fs::create_directories((directory_ / snapshot).parent_path());
  fs::rename(directory_ / "moved", directory_ / snapshot);
  ::setenv("HF_HUB_CACHE", (directory_ / "cache").c_str(), 1);
  head.fields["base"] = [](Pickle& p) { p.text("org/tiny"); };
  head.fields["base_revision"] = [](Pickle& p) { p.text("0123456789abcdef"); };
  write_head(head);
  EXPECT_EQ(open().sources.base, directory_ / snapshot);
  head.fields["base_revision"] = [](Pickle& p) { p.text("another"); };
  write_head(head);
  EXPECT_THAT(refused().what(), HasSubstr("'org/tiny' at revision another"));
  ::unsetenv("HF_HUB_CACHE");
}

TEST_F(CheckpointTest, AHeadWithoutAdapterRunsOnTheBareBase) {
  without_adapter();
  const Checkpoint checkpoint = open();
  EXPECT_FALSE(checkpoint.sources.adapter);
  EXPECT_EQ(checkpoint.head.temperature, 1.5f);
  EXPECT_EQ(checkpoint.weights->names().size(), base_tensors().size());
}

TEST_F(CheckpointTest, AnAdapterThatHeadSpeaksOfMustBeThere) {
  Head head;
  head.fields["lora"] = [](Pickle& p) { p.integer(8); };
  without_adapter(head);
  const Error error = refused();
  EXPECT_EQ(error.kind(), ErrorKind::missing);
  EXPECT_THAT(error.what(), HasSubstr("adapter_config.json"));
}

TEST_F(CheckpointTest, ARunWithAllWeightsNeedsNoBase) {
  Head head;
  head.fields["base"] = [](Pickle& p) { p.text("org/never-downloaded"); };
  head.fields["lora"] = [](Pickle& p) { p.op("N"); };
  without_adapter(head);
  fs::rename(directory_ / "base/model.safetensors", directory_ / "run/model.safetensors");
  fs::rename(directory_ / "base/config.json", directory_ / "run/config.json");
  EXPECT_EQ(open().sources.base, directory_ / "run");
}

TEST_F(CheckpointTest, ABaseForWhatHoldsItsOwnWeightsIsRefused) {
  Head head;
  head.fields["lora"] = [](Pickle& p) { p.op("N"); };
  without_adapter(head);
  for (const char* name : {"model.safetensors", "config.json"}) {
    fs::copy(directory_ / (std::string("base/") + name), directory_ / (std::string("run/") + name));
  }
  const auto with_base = [&](const fs::path& model) {
    return error_of([&] { open_checkpoint(model, directory_ / "base"); });
  };
  const fs::path gguf = directory_.write("model.gguf", "GGUF");
  for (const fs::path& model : {directory_ / "run", gguf}) {
    EXPECT_EQ(with_base(model).kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(with_base(model).what(), HasSubstr("--base"));
    EXPECT_THAT(with_base(model).what(), HasSubstr(model.string()));
  }
}

TEST_F(CheckpointTest, ALinkToNothingIsNoAbsentFile) {
  // Without the file the run would mean something else: the base's tokenizer, no adapter, another base.
  for (const char* name : {"run/tokenizer.json", "run/adapter_config.json", "run/head.pt", "base/config.json",
                           "base/model.safetensors"}) {
    const fs::path file = directory_ / name;
    const std::string contents = read_text_file(file);
    fs::remove(file);
    fs::create_symlink("gone", file);
    const Error error = refused();
    EXPECT_EQ(error.kind(), ErrorKind::missing) << name;
    EXPECT_THAT(error.what(), HasSubstr(file.filename().string()));
    EXPECT_THAT(error.what(), HasSubstr("gone"));
    fs::remove(file);
    directory_.write(name, contents);
  }
  EXPECT_NO_THROW(open());
}

TEST_F(CheckpointTest, TheTokenizerMayBeTheBases) {
  fs::remove(directory_ / "run/tokenizer.json");
  EXPECT_TRUE(fs::equivalent(open().sources.tokenizer, directory_ / "base/tokenizer.json"));
  fs::remove(directory_ / "base/tokenizer.json");
  EXPECT_EQ(refused().kind(), ErrorKind::missing);
}

TEST_F(CheckpointTest, ATokenizerWithoutADelimiterIsRefused) {
  std::string text = read_text_file(directory_ / "run/tokenizer.json");
  for (std::size_t at = 0; (at = text.find("<|box_end|>", at)) != std::string::npos;)
    text.replace(at, 11, "<|box_xxx|>");
  directory_.write("run/tokenizer.json", text);
  const Error error = refused();
  EXPECT_EQ(error.kind(), ErrorKind::missing);
  EXPECT_THAT(error.what(), HasSubstr("no token <|box_end|>"));
}

TEST_F(CheckpointTest, WhatIsNoRunIsRefused) {
  EXPECT_EQ(error_of([&] { open_checkpoint(directory_ / "nowhere", std::nullopt); }).kind(),
            ErrorKind::missing);
  const Error base = error_of([&] { open_checkpoint(directory_ / "base", std::nullopt); });
  EXPECT_EQ(base.kind(), ErrorKind::missing);
  EXPECT_THAT(base.what(), HasSubstr("name the run, and this with --base"));
  EXPECT_EQ(error_of([&] { open_checkpoint(directory_ / "run/head.pt", std::nullopt); }).kind(),
            ErrorKind::unsupported);
}

TEST_F(CheckpointTest, HeadsThatComputeOtherwiseAreUnsupportedByName) {
  for (const char* field : {"option_isolation", "special_embeddings"}) {
    Head head;
    head.fields[field] = [](Pickle& p) { p.op("\x88"); };
    without_adapter(head);
    const Error error = refused();
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << field;
    EXPECT_THAT(error.what(), HasSubstr(std::string("head.pt: ") + field));
  }
}

TEST_F(CheckpointTest, FieldsAbsentOrNoneTakeTheAuthorsDefaults) {
  Head head;
  head.fields.erase("temperature");
  head.fields.erase("lora");
  head.fields.erase("head_dim");
  head.fields["option_isolation"] = [](Pickle& p) { p.op("N"); };
  without_adapter(head);
  EXPECT_EQ(open().head.temperature, 1.0f);
  EXPECT_EQ(open().head.dim, kDim);
}

TEST_F(CheckpointTest, ATemperatureThatIsNoDivisorIsRefused) {
  for (const double value : {0.0, -1.0, 1e-60, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    Head head;
    head.fields["temperature"] = [&](Pickle& p) { p.number(value); };
    without_adapter(head);
    const Error error = refused();
    EXPECT_EQ(error.kind(), ErrorKind::malformed) << value;
    EXPECT_THAT(error.what(), HasSubstr("temperature"));
  }
}

TEST_F(CheckpointTest, ATextWithANulIsRefused) {
  for (const char* field : {"base", "base_revision", "weights_dtype"}) {
    Head head;
    head.fields[field] = [](Pickle& p) { p.text(std::string("../base\0/elsewhere", 18)); };
    without_adapter(head);
    const Error error = refused();
    EXPECT_EQ(error.kind(), ErrorKind::malformed) << field;
    EXPECT_THAT(error.what(), HasSubstr(std::string("head.pt: ") + field + ": \"../base\\x00/elsewhere\""));
  }
}

TEST_F(CheckpointTest, FieldsOfAnotherTypeAreNamed) {
  for (const char* field :
       {"base", "base_revision", "lora", "head_dim", "temperature", "option_isolation", "weights_dtype"}) {
    Head head;
    head.fields[field] = [](Pickle& p) { p.op("]"); };
    without_adapter(head);
    const Error error = refused();
    EXPECT_EQ(error.kind(), ErrorKind::mismatch) << field;
    EXPECT_THAT(error.what(), HasSubstr(field));
  }
}

TEST_F(CheckpointTest, HeadTensorsOfAnotherShapeAreNamed) {
  const std::map<std::string, std::vector<std::int64_t>> wrong = {{"q.weight", {kDim, kHidden - 1}},
                                                                  {"k.weight", {kDim + 1, kHidden}},
                                                                  {"q.bias", {kDim + 1}},
                                                                  {"k.bias", {kDim, 1}}};
  for (const auto& [name, shape] : wrong) {
    Head head;
    head.shapes[name] = shape;
    without_adapter(head);
    EXPECT_EQ(refused().kind(), ErrorKind::mismatch) << name;
  }
  Head dim;
  dim.fields["head_dim"] = [](Pickle& p) { p.integer(kDim + 1); };
  without_adapter(dim);
  EXPECT_THAT(refused().what(), HasSubstr("head.q.weight"));
  Head hidden;
  hidden.shapes["q.weight"] = hidden.shapes["k.weight"] = {kDim, 128};
  without_adapter(hidden);
  EXPECT_THAT(refused().what(), HasSubstr("hidden vectors of 128"));
}

TEST_F(CheckpointTest, AMissingOrNonFiniteHeadTensorIsNamed) {
  Head missing;
  missing.shapes.erase("k.bias");
  without_adapter(missing);
  const Error absent = refused();
  EXPECT_EQ(absent.kind(), ErrorKind::missing);
  EXPECT_THAT(absent.what(), HasSubstr("head.k.bias"));
  Head bad;
  bad.value = std::numeric_limits<float>::quiet_NaN();
  without_adapter(bad);
  const Error error = refused();
  EXPECT_EQ(error.kind(), ErrorKind::non_finite);
  EXPECT_THAT(error.what(), HasSubstr("head.q.weight"));
}

TEST_F(CheckpointTest, AHeadThatWouldRunCodeIsRefused) {
  Head head;
  head.fields["args"] = [](Pickle& p) { p.global("os", "system").op("(").text("true").op("tR"); };
  without_adapter(head);
  const Error error = refused();
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("would run code: os.system"));
}

TEST_F(CheckpointTest, AMissingOrMisshapenTensorOfTheBaseIsNamedBeforeAnyIsRead) {
  std::vector<Tensor> tensors = base_tensors();
  const Tensor last = tensors.back();
  ASSERT_EQ(last.name, "model.norm.weight");
  tensors.pop_back();
  write_base(tensors);
  const Error absent = refused();
  EXPECT_EQ(absent.kind(), ErrorKind::missing);
  EXPECT_THAT(absent.what(), HasSubstr("tensor 'norm.weight'"));
  tensors.push_back({last.name, last.dtype, {kHidden / 2}, last.data.substr(0, kHidden)});
  write_base(tensors);
  const Error error = refused();
  EXPECT_EQ(error.kind(), ErrorKind::mismatch);
  EXPECT_THAT(error.what(),
              HasSubstr("model.safetensors: tensor 'norm.weight': shape [128]; expected [256]"));
}

TEST_F(CheckpointTest, NonFiniteWeightsAreNamedWhenRead) {
  std::vector<Tensor> tensors = base_tensors();
  tensors.back().data.replace(6, 2, "\x80\x7f");
  write_base(tensors);
  const Checkpoint checkpoint = open();
  const Error error = error_of([&] {
    formats::read_tensor(*checkpoint.weights, "norm.weight", std::array<std::uint64_t, 1>{kHidden});
  });
  EXPECT_EQ(error.kind(), ErrorKind::non_finite);
  EXPECT_THAT(error.what(), HasSubstr("model.norm.weight': infinity at element 3"));
}

TEST_F(CheckpointTest, MultimodalNamesMeanTheSame) {
  const Checkpoint plain = open_checkpoint(kData / "kev-tiny-hybrid/run", std::nullopt);
  std::vector<Tensor> tensors = base_tensors();
  for (Tensor& tensor : tensors) tensor.name.replace(0, 6, "model.language_model.");
  tensors.push_back({"model.visual.patch_embed.proj.weight", "BF16", {1}, "\x80\x3f"});
  tensors.push_back({"mtp.norm.weight", "BF16", {1}, "\x80\x3f"});
  write_base(tensors);
  const std::string text = read_text_file(directory_ / "base/config.json");
  directory_.write("base/config.json",
                   R"({"model_type":"qwen3_5","vision_config":{},"text_config":)" + text + "}");
  expect_equal_weights(open(), plain);
}

TEST_F(CheckpointTest, ThreeShardsMeanTheSame) {
  const Checkpoint plain = open_checkpoint(kData / "kev-tiny-hybrid/run", std::nullopt);
  std::array<std::vector<Tensor>, 3> shards;
  std::string map;
  const std::vector<Tensor> tensors = base_tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::size_t shard = i % shards.size();
    shards[shard].push_back(tensors[i]);
    map += (map.empty() ? "\"" : ",\"") + tensors[i].name + "\":\"part-" + std::to_string(shard) +
           ".safetensors\"";
  }
  fs::remove(directory_ / "base/model.safetensors");
  for (std::size_t i = 0; i < shards.size(); ++i) {
    directory_.write("base/part-" + std::to_string(i) + ".safetensors",
                     formats::test::safetensors(shards[i]));
  }
  directory_.write("base/model.safetensors.index.json", R"({"weight_map":{)" + map + "}}");
  expect_equal_weights(open(), plain);
}

TEST_F(CheckpointTest, HalfPrecisionWeightsAreReadAsStored) {
  std::vector<Tensor> tensors = base_tensors();
  for (Tensor& tensor : tensors) {
    std::vector<float> values(tensor.data.size() / 2);
    convert_to_float(DType::bf16, formats::test::bytes_of(tensor.data).data(), values);
    tensor.data = formats::test::f16(values);
    tensor.dtype = "F16";
  }
  write_base(tensors);
  const Checkpoint half = open();
  const Checkpoint plain = open_checkpoint(kData / "kev-tiny-hybrid/run", std::nullopt);
  const std::array<std::uint64_t, 2> shape = {1536, kHidden};
  const std::vector<float> a = formats::read_tensor(*half.weights, "embed_tokens.weight", shape);
  const std::vector<float> b = formats::read_tensor(*plain.weights, "embed_tokens.weight", shape);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], f16_to_float(float_to_f16(b[i])));
}

TEST_F(CheckpointTest, RankStabilisedScaleWithTheMatchingAlphaMeansTheSame) {
  // alpha/√r with alpha·√r/r for alpha: the same scale.
  const Checkpoint plain = open_checkpoint(kData / "kev-tiny-hybrid/run", std::nullopt);
  std::string text = read_text_file(directory_ / "run/adapter_config.json");
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("\"use_rslora\": false", "\"use_rslora\": true");
  replace("\"lora_alpha\": 16", "\"lora_alpha\": 5.656854249492381");
  directory_.write("run/adapter_config.json", text);
  expect_equal_weights(open(), plain);
}

TEST_F(CheckpointTest, TensorsThatTheModelWouldNotRunAreRefused) {
  const std::vector<Tensor> plain = base_tensors();
  const std::string prefix = plain.front().name.starts_with("model.") ? "model." : "";
  for (const char* name :
       {"layers.0.self_attn.q_proj.bias", "layers.9.mlp.up_proj.weight",
        "layers.0.mlp.gate_proj.weight_scale_inv", "norm.bias", "embed_tokens.weight_scale"}) {
    std::vector<Tensor> tensors = plain;
    tensors.push_back({prefix + name, "F32", {1}, formats::test::raw<float>({1})});
    write_base(tensors);
    const Error error = refused();
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << name;
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
}

TEST_F(CheckpointTest, TensorsOfOtherPartsOfAModelArePassedOver) {
  std::vector<Tensor> tensors = base_tensors();
  for (const char* name : {"lm_head.weight", "model.visual.blocks.0.attn.qkv.weight", "mtp.norm.weight",
                           "model.layers.0.self_attn.rotary_emb.inv_freq"}) {
    tensors.push_back({name, "F32", {1}, formats::test::raw<float>({1})});
  }
  write_base(tensors);
  EXPECT_NO_THROW(open());
}

TEST_F(CheckpointTest, AConfigurationOfFewerLayersThanTheWeightsIsRefused) {
  without_adapter();
  std::string config = read_text_file(directory_ / "base/config.json");
  auto json = nlohmann::json::parse(config);
  nlohmann::json& text = json.contains("text_config") ? json["text_config"] : json;
  text["num_hidden_layers"] = text["num_hidden_layers"].get<int>() - 1;
  if (text.contains("layer_types")) text["layer_types"].erase(text["layer_types"].size() - 1);
  directory_.write("base/config.json", json.dump());
  EXPECT_EQ(refused().kind(), ErrorKind::unsupported);
}

TEST_F(CheckpointTest, AnAdapterSavedInPartIsRefused) {
  const auto whole = formats::open_safetensors(kData / "kev-tiny-hybrid/run/adapter_model.safetensors");
  std::vector<Tensor> tensors;
  for (const std::string& name : whole->names()) {
    const auto bytes = whole->stored_bytes(name);
    if (name.find("layers.2.mlp.down_proj") != std::string::npos) continue;
    tensors.push_back({name, std::string(to_string(whole->find(name)->type)), whole->find(name)->shape,
                       std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
  }
  ASSERT_LT(tensors.size(), whole->names().size());
  directory_.write("run/adapter_model.safetensors", formats::test::safetensors(tensors));
  EXPECT_EQ(refused().kind(), ErrorKind::missing);
  EXPECT_THAT(refused().what(), HasSubstr("layers.2.mlp.down_proj"));
}

}  // namespace
}  // namespace assay::decision
