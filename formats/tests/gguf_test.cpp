#include "formats/gguf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "base/error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kF32 = 0, kF16 = 1, kQ8_0 = 8, kQ4_K = 12, kIQ4_XS = 23, kBF16 = 30;

/// Bytes put one after another, as a GGUF file has them.
class Bytes {
 public:
  template <class T>
  Bytes& number(T value) {
    const auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
    data.insert(data.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Bytes& raw(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    data.insert(data.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Bytes& text(std::string_view text) { return number(std::uint64_t{text.size()}).raw(text); }
  Bytes& append(const Bytes& other) {
    data.insert(data.end(), other.data.begin(), other.data.end());
    return *this;
  }
  Bytes& align(std::size_t to) {
    data.resize((data.size() + to - 1) / to * to);
    return *this;
  }
  std::vector<std::byte> data;
};

Bytes floats(std::span<const float> values) {
  Bytes bytes;
  for (const float value : values) bytes.number(value);
  return bytes;
}

/// A file in the making. Everything can be set wrong.
struct Builder {
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> shape;  ///< outermost first
    std::uint32_t type;
    Bytes content;
    std::optional<std::uint64_t> offset = {};
  };

  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::optional<std::uint64_t> pair_count, tensor_count;
  std::vector<std::pair<std::string, Bytes>> pairs;
  std::vector<Tensor> tensors;

  Builder& value(const std::string& key, GgufValueType type, Bytes content) {
    pairs.emplace_back(key, Bytes().number(type).append(content));
    return *this;
  }
  Builder& u32(const std::string& key, std::uint32_t number) {
    return value(key, GgufValueType::u32, Bytes().number(number));
  }
  Builder& f32(const std::string& key, float number) {
    return value(key, GgufValueType::f32, Bytes().number(number));
  }
  Builder& string(const std::string& key, std::string_view text) {
    return value(key, GgufValueType::string, Bytes().text(text));
  }
  Builder& strings(const std::string& key, const std::vector<std::string>& texts) {
    Bytes content;
    content.number(GgufValueType::string).number(std::uint64_t{texts.size()});
    for (const std::string& text : texts) content.text(text);
    return value(key, GgufValueType::array, content);
  }
  Builder& integers(const std::string& key, const std::vector<std::int32_t>& numbers) {
    Bytes content;
    content.number(GgufValueType::i32).number(std::uint64_t{numbers.size()});
    for (const std::int32_t number : numbers) content.number(number);
    return value(key, GgufValueType::array, content);
  }
  Builder& tensor(const std::string& name, std::vector<std::uint64_t> shape, std::uint32_t type,
                  Bytes content) {
    tensors.push_back({name, std::move(shape), type, std::move(content)});
    return *this;
  }
  Builder& f32_tensor(const std::string& name, std::vector<std::uint64_t> shape,
                      std::span<const float> values) {
    return tensor(name, std::move(shape), kF32, floats(values));
  }
  void erase(const std::string& key) {
    std::erase_if(pairs, [&](const auto& pair) { return pair.first == key; });
  }

  std::vector<std::byte> bytes() const {
    Bytes file, data;
    file.raw(magic).number(version);
    file.number(tensor_count.value_or(tensors.size())).number(pair_count.value_or(pairs.size()));
    for (const auto& [key, content] : pairs) file.text(key).append(content);
    for (const Tensor& tensor : tensors) {
      data.align(alignment);
      file.text(tensor.name).number(static_cast<std::uint32_t>(tensor.shape.size()));
      for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) file.number(*size);
      file.number(tensor.type).number(tensor.offset.value_or(data.data.size()));
      data.append(tensor.content);
    }
    return file.align(alignment).append(data).data;
  }
};

/// What the error of a call says; fails the test when there is none, or one of another kind.
std::string error_of(ErrorKind kind, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.kind()), to_string(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

std::string parse_error(const Builder& builder, ErrorKind kind = ErrorKind::malformed) {
  const std::vector<std::byte> bytes = builder.bytes();
  return error_of(kind, [&] { GgufFile::parse(bytes, "test.gguf"); });
}

Builder one_tensor(std::vector<std::uint64_t> shape = {2, 3}, std::uint32_t type = kF32,
                   std::size_t size = 24) {
  Builder builder;
  Bytes content;
  content.data.resize(size);
  builder.tensor("t", std::move(shape), type, content);
  return builder;
}

// ---------------------------------------------------------------- container

TEST(GgufMetadata, EveryValueTypeIsReadAsWritten) {
  Builder builder;
  builder.value("u8", GgufValueType::u8, Bytes().number(std::uint8_t{200}))
      .value("i8", GgufValueType::i8, Bytes().number(std::int8_t{-3}))
      .value("u16", GgufValueType::u16, Bytes().number(std::uint16_t{60000}))
      .value("i16", GgufValueType::i16, Bytes().number(std::int16_t{12}))
      .u32("u32", 4000000000u)
      .value("i32", GgufValueType::i32, Bytes().number(std::int32_t{7}))
      .value("u64", GgufValueType::u64, Bytes().number(std::numeric_limits<std::uint64_t>::max()))
      .value("i64", GgufValueType::i64, Bytes().number(std::int64_t{-1}))
      .f32("f32", 1.5f)
      .value("f64", GgufValueType::f64, Bytes().number(0.1))
      .value("boolean", GgufValueType::boolean, Bytes().number(std::uint8_t{1}))
      .string("string", "héllo")
      .strings("strings", {"a", "", "c"})
      .integers("integers", {1, -2, 3});
  const auto bytes = builder.bytes();
  const GgufFile file = GgufFile::parse(bytes, "test.gguf");
  EXPECT_EQ(file.integer("u8"), 200u);
  EXPECT_EQ(file.integer("u16"), 60000u);
  EXPECT_EQ(file.integer("i16"), 12u);
  EXPECT_EQ(file.integer("u32"), 4000000000u);
  EXPECT_EQ(file.integer("i32"), 7u);
  EXPECT_EQ(file.integer("u64"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(file.number("f32"), 1.5f);
  EXPECT_EQ(file.number("f64"), 0.1f);
  EXPECT_EQ(file.string("string"), "héllo");
  EXPECT_THAT(file.strings("strings"), ElementsAre("a", "", "c"));
  EXPECT_THAT(file.integers("integers"), ElementsAre(1, -2, 3));
  EXPECT_EQ(describe(file.metadata().at("i8")), "i8 -3");
  EXPECT_EQ(describe(file.metadata().at("boolean")), "boolean true");
  EXPECT_EQ(describe(file.metadata().at("strings")), "array of 3 string");
  EXPECT_EQ(describe(file.metadata().at("string")), "string \"héllo\"");
  EXPECT_EQ(file.find_integer("absent"), std::nullopt);
  EXPECT_THAT(error_of(ErrorKind::mismatch, [&] { file.integer("i64"); }), HasSubstr("test.gguf: i64"));
  EXPECT_THAT(error_of(ErrorKind::mismatch, [&] { file.integer("string"); }), HasSubstr("an integer"));
  EXPECT_THAT(error_of(ErrorKind::mismatch, [&] { file.strings("integers"); }), HasSubstr("strings"));
  EXPECT_THAT(error_of(ErrorKind::missing, [&] { file.string("absent"); }), HasSubstr("absent"));
}

TEST(GgufMetadata, TextsAreShownCutAndPrintable) {
  Builder builder;
  builder.string("long", "x" + std::string(59, 'y') + "é and more").string("broken", "a\xff\n");
  const auto bytes = builder.bytes();
  const GgufFile file = GgufFile::parse(bytes, "f");
  EXPECT_EQ(describe(file.metadata().at("long")), "string \"x" + std::string(47, 'y') + "…\"");
  EXPECT_EQ(describe(file.metadata().at("broken")), "string \"a\\xff\\x0a\"");
}

TEST(GgufMetadata, NumbersThatAreNotFiniteAreRefused) {
  for (const double value : {std::numeric_limits<double>::infinity(), std::nan(""), 1e300}) {
    Builder builder;
    builder.value("x", GgufValueType::f64, Bytes().number(value));
    const auto bytes = builder.bytes();
    const GgufFile file = GgufFile::parse(bytes, "test.gguf");
    error_of(ErrorKind::non_finite, [&] { file.number("x"); });
  }
}

TEST(GgufContainer, VersionsTwoAndThreeAreReadOthersNamed) {
  for (const std::uint32_t version : {2u, 3u}) {
    Builder builder = one_tensor();
    builder.version = version;
    const auto bytes = builder.bytes();
    EXPECT_EQ(GgufFile::parse(bytes, "f").version(), version);
  }
  for (const std::uint32_t version : {0u, 1u, 4u, 70000u}) {
    Builder builder = one_tensor();
    builder.version = version;
    EXPECT_THAT(parse_error(builder, ErrorKind::unsupported), HasSubstr(std::to_string(version)));
  }
  Builder swapped = one_tensor();
  swapped.version = 0x03000000u;
  EXPECT_THAT(parse_error(swapped, ErrorKind::unsupported), HasSubstr("big-endian"));
  Builder other = one_tensor();
  other.magic = "GGML";
  EXPECT_THAT(parse_error(other), HasSubstr("magic"));
}

TEST(GgufContainer, AFileCutAnywhereIsRefused) {
  Builder builder = one_tensor();
  builder.string("a.string", "text").strings("b.strings", {"x", "y"}).u32("c", 1);
  const auto bytes = builder.bytes();
  GgufFile::parse(bytes, "whole");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    error_of(ErrorKind::malformed, [&] { GgufFile::parse(std::span(bytes).first(length), "cut"); });
  }
}

TEST(GgufContainer, AbsurdCountsAndLengthsAreRefusedBeforeAnythingIsMadeForThem) {
  constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t count : {std::uint64_t{1000000}, huge / 13, huge}) {
    Builder pairs = one_tensor();
    pairs.pair_count = count;
    EXPECT_THAT(parse_error(pairs), HasSubstr("metadata count"));
    Builder tensors = one_tensor();
    tensors.tensor_count = count;
    EXPECT_THAT(parse_error(tensors), HasSubstr("tensor count"));
    for (const GgufValueType type :
         {GgufValueType::u8, GgufValueType::f64, GgufValueType::string, GgufValueType::array}) {
      Builder array;
      array.value("k", GgufValueType::array, Bytes().number(type).number(count));
      EXPECT_THAT(parse_error(array), HasSubstr("an array of"));
    }
    Builder text;
    text.value("k", GgufValueType::string, Bytes().number(count));
    EXPECT_THAT(parse_error(text), HasSubstr("past the end"));
  }
}

TEST(GgufContainer, UnknownValueTypesAndBooleansAreRefused) {
  Builder builder;
  builder.value("k", static_cast<GgufValueType>(13), Bytes().number(std::uint64_t{0}));
  EXPECT_THAT(parse_error(builder), HasSubstr("value type 13"));
  Builder element;
  element.value("k", GgufValueType::array,
                Bytes().number(std::uint32_t{99}).number(std::uint64_t{1}).number(std::uint64_t{0}));
  EXPECT_THAT(parse_error(element), HasSubstr("value type 99"));
  Builder boolean;
  boolean.value("k", GgufValueType::boolean, Bytes().number(std::uint8_t{2}));
  EXPECT_THAT(parse_error(boolean), HasSubstr("a boolean of 2"));
}

TEST(GgufContainer, NestedArraysAreReadToABound) {
  const auto nested = [](int depth) {
    Bytes content;
    for (int i = 1; i < depth; ++i) content.number(GgufValueType::array).number(std::uint64_t{1});
    return content.number(GgufValueType::u8).number(std::uint64_t{1}).number(std::uint8_t{5});
  };
  Builder fits;
  fits.value("k", GgufValueType::array, nested(4)).u32("after", 9);
  const auto bytes = fits.bytes();
  EXPECT_EQ(GgufFile::parse(bytes, "f").integer("after"), 9u);
  Builder deep;
  deep.value("k", GgufValueType::array, nested(100));
  EXPECT_THAT(parse_error(deep), HasSubstr("nested deeper"));
}

TEST(GgufContainer, DuplicateAndEmptyNamesAreRefused) {
  Builder keys = one_tensor();
  keys.u32("k", 1).u32("k", 2);
  EXPECT_THAT(parse_error(keys), HasSubstr("the same key twice"));
  Builder tensors = one_tensor();
  tensors.f32_tensor("t", {1}, std::array{1.0f});
  EXPECT_THAT(parse_error(tensors), HasSubstr("the same name twice"));
  Builder empty_key = one_tensor();
  empty_key.u32("", 1);
  EXPECT_THAT(parse_error(empty_key), HasSubstr("empty key"));
  Builder empty_name;
  empty_name.f32_tensor("", {1}, std::array{1.0f});
  EXPECT_THAT(parse_error(empty_name), HasSubstr("empty name"));
  Builder long_name;
  long_name.f32_tensor(std::string(65, 'n'), {1}, std::array{1.0f});
  EXPECT_THAT(parse_error(long_name), HasSubstr("at most 64"));
}

TEST(GgufContainer, TheAlignmentKeyIsFollowedAndChecked) {
  Builder builder = one_tensor();
  builder.alignment = 128;
  builder.u32("general.alignment", 128).f32_tensor("u", {1}, std::array{2.0f});
  const auto bytes = builder.bytes();
  const GgufFile file = GgufFile::parse(bytes, "f");
  const auto& first = file.tensors().at("t").bytes;
  const auto& second = file.tensors().at("u").bytes;
  EXPECT_EQ((first.data() - bytes.data()) % 128, 0);
  EXPECT_EQ(second.data() - first.data(), 128);
  for (const std::uint32_t wrong : {0u, 3u, 48u}) {
    Builder bad = one_tensor();
    bad.u32("general.alignment", wrong);
    EXPECT_THAT(parse_error(bad), HasSubstr("a power of two"));
  }
  Builder text = one_tensor();
  text.string("general.alignment", "32");
  EXPECT_THAT(parse_error(text), HasSubstr("general.alignment"));
  Builder beyond = one_tensor();
  beyond.u32("general.alignment", 0x80000000u);
  parse_error(beyond);
}

TEST(GgufContainer, TensorsLieInTheFileAlignedAndApart) {
  Builder outside = one_tensor();
  outside.tensors[0].offset = 64;
  EXPECT_THAT(parse_error(outside), HasSubstr("tensor t"));
  Builder far = one_tensor();
  far.tensors[0].offset = std::numeric_limits<std::uint64_t>::max() - 31;
  EXPECT_THAT(parse_error(far), HasSubstr("tensor t"));
  Builder crooked = one_tensor();
  crooked.tensors[0].offset = 4;
  EXPECT_THAT(parse_error(crooked), HasSubstr("a multiple of 32"));
  Builder overlapping = one_tensor({16}, kF32, 64);
  overlapping.tensor("u", {8}, kF32, floats(std::array<float, 8>{}));
  overlapping.tensors[1].offset = 32;
  EXPECT_THAT(parse_error(overlapping), HasSubstr("bytes shared with tensor t"));
}

TEST(GgufContainer, AbsurdShapesAreRefused) {
  constexpr std::uint64_t huge = std::uint64_t{1} << 33;
  EXPECT_THAT(parse_error(one_tensor({huge, huge, huge})), HasSubstr("absurd shape"));
  EXPECT_THAT(parse_error(one_tensor({huge, huge >> 2})), HasSubstr("absurd shape"));
  EXPECT_THAT(parse_error(one_tensor({huge})), HasSubstr("bytes of data"));
  EXPECT_THAT(parse_error(one_tensor({0, 4})), HasSubstr("empty shape"));
  EXPECT_THAT(parse_error(one_tensor({1, 1, 1, 1, 1})), HasSubstr("5 dimensions"));
  EXPECT_THAT(parse_error(one_tensor({1, 33}, kQ8_0, 64)), HasSubstr("a multiple of 32"));
}

TEST(GgufContainer, WithdrawnAndUnknownTensorTypesAreNamed) {
  EXPECT_THAT(parse_error(one_tensor({32}, 4), ErrorKind::unsupported), HasSubstr("Q4_2"));
  EXPECT_THAT(parse_error(one_tensor({32}, 31), ErrorKind::unsupported), HasSubstr("Q4_0_4_4"));
  const std::string unknown = parse_error(one_tensor({32}, 1000), ErrorKind::unsupported);
  EXPECT_THAT(unknown, HasSubstr("tensor type 1000"));
  EXPECT_THAT(unknown, HasSubstr("tensor t"));
}

// ---------------------------------------------------------------- a model

/// A Qwen3 of one layer, and a Qwen3.5 of one recurrent and one full layer, as small as they come.
class ModelFile {
 public:
  static constexpr std::uint64_t kHidden = 32, kKeyHeads = 2, kValueHeads = 6, kKeyDim = 4, kValueDim = 8,
                                 kConv = 4;
  static constexpr std::uint64_t kChannels = 2 * kKeyHeads * kKeyDim + kValueHeads * kValueDim;

  explicit ModelFile(std::string arch) : arch_(std::move(arch)) {
    builder.string("general.architecture", arch_);
    u32("block_count", arch_ == "qwen35" ? 2 : 1);
    u32("context_length", 512);
    u32("embedding_length", kHidden);
    u32("feed_forward_length", 64);
    u32("attention.head_count", 2);
    u32("attention.head_count_kv", 1);
    u32("attention.key_length", 16);
    u32("attention.value_length", 16);
    builder.f32(key("rope.freq_base"), 10000.0f).f32(key("attention.layer_norm_rms_epsilon"), 1e-6f);
    if (arch_ == "qwen35") add_linear_metadata();
    add_tensor("token_embd.weight", {40, kHidden});
    add_tensor("output_norm.weight", {kHidden});
    arch_ == "qwen35" ? add_qwen35_layers() : add_qwen3_layer();
  }

  std::string key(std::string_view name) const { return arch_ + "." + std::string(name); }
  void u32(std::string_view name, std::uint64_t number) {
    builder.u32(key(name), static_cast<std::uint32_t>(number));
  }
  void set_u32(std::string_view name, std::uint64_t number) {
    builder.erase(key(name));
    u32(name, number);
  }
  void add_tensor(const std::string& name, std::vector<std::uint64_t> shape) {
    std::uint64_t size = 1;
    for (const std::uint64_t dimension : shape) size *= dimension;
    std::vector<float>& values = written[name];
    for (std::uint64_t i = 0; i < size; ++i) values.push_back(stored_value(name));
    builder.f32_tensor(name, std::move(shape), values);
  }

  const GgufFile& open() {
    bytes_ = builder.bytes();
    file_ = GgufFile::parse(bytes_, "model.gguf");
    return *file_;
  }

  Builder builder;
  std::map<std::string, std::vector<float>> written;

 private:
  /// A value as the converter could have stored it: 1 added to Qwen3.5's norms, A_log as a negated
  /// exponential.
  float stored_value(std::string_view name) {
    const float value = std::uniform_real_distribution<float>(-2.0f, 2.0f)(random_);
    if (name.ends_with("ssm_a")) return static_cast<float>(-std::exp(static_cast<double>(value)));
    return name.ends_with("norm.weight") ? 1.0f + value : value;
  }
  void add_linear_metadata() {
    u32("rope.dimension_count", 4);
    u32("ssm.conv_kernel", kConv);
    u32("ssm.state_size", kKeyDim);
    u32("ssm.group_count", kKeyHeads);
    u32("ssm.time_step_rank", kValueHeads);
    u32("ssm.inner_size", kValueHeads * kValueDim);
    u32("full_attention_interval", 2);
  }
  void add_mlp(const std::string& layer) {
    add_tensor(layer + "ffn_gate.weight", {64, kHidden});
    add_tensor(layer + "ffn_up.weight", {64, kHidden});
    add_tensor(layer + "ffn_down.weight", {kHidden, 64});
  }
  void add_attention(const std::string& layer, std::uint64_t gates) {
    add_tensor(layer + "attn_q.weight", {gates * 32, kHidden});
    add_tensor(layer + "attn_k.weight", {16, kHidden});
    add_tensor(layer + "attn_v.weight", {16, kHidden});
    add_tensor(layer + "attn_output.weight", {kHidden, 32});
    add_tensor(layer + "attn_q_norm.weight", {16});
    add_tensor(layer + "attn_k_norm.weight", {16});
  }
  void add_qwen3_layer() {
    add_tensor("blk.0.attn_norm.weight", {kHidden});
    add_tensor("blk.0.ffn_norm.weight", {kHidden});
    add_attention("blk.0.", 1);
    add_mlp("blk.0.");
  }
  void add_qwen35_layers() {
    for (const std::string layer : {"blk.0.", "blk.1."}) {
      add_tensor(layer + "attn_norm.weight", {kHidden});
      add_tensor(layer + "post_attention_norm.weight", {kHidden});
      add_mlp(layer);
    }
    add_tensor("blk.0.attn_qkv.weight", {kChannels, kHidden});
    add_tensor("blk.0.attn_gate.weight", {kValueHeads * kValueDim, kHidden});
    add_tensor("blk.0.ssm_beta.weight", {kValueHeads, kHidden});
    add_tensor("blk.0.ssm_alpha.weight", {kValueHeads, kHidden});
    add_tensor("blk.0.ssm_conv1d.weight", {kChannels, kConv});
    add_tensor("blk.0.ssm_dt.bias", {kValueHeads});
    add_tensor("blk.0.ssm_a", {kValueHeads});
    add_tensor("blk.0.ssm_norm.weight", {kValueDim});
    add_tensor("blk.0.ssm_out.weight", {kHidden, kValueHeads * kValueDim});
    add_attention("blk.1.", 2);
  }

  std::string arch_;
  std::mt19937 random_{7};
  std::vector<std::byte> bytes_;
  std::optional<GgufFile> file_;
};

std::vector<float> read_all(const TensorSource& source, const std::string& name) {
  const TensorInfo& info = require(source, name);
  return read_tensor(source, name, info.shape);
}

/// Where llama.cpp has value head `head` of the checkpoint: heads of one key head are `kKeyHeads` apart.
std::uint64_t tiled_head(std::uint64_t head) {
  constexpr std::uint64_t per_key_head = ModelFile::kValueHeads / ModelFile::kKeyHeads;
  return head % per_key_head * ModelFile::kKeyHeads + head / per_key_head;
}

TEST(GgufModelConfig, IsReadForQwen35) {
  ModelFile model("qwen35");
  const ModelConfig config = gguf_model_config(model.open());
  EXPECT_EQ(config.family, Family::qwen3_5);
  EXPECT_THAT(config.layers, ElementsAre(LayerType::linear_attention, LayerType::full_attention));
  EXPECT_EQ(config.hidden_size, 32u);
  EXPECT_EQ(config.intermediate_size, 64u);
  EXPECT_EQ(config.vocabulary_size, 40u);
  EXPECT_EQ(config.heads, 2u);
  EXPECT_EQ(config.kv_heads, 1u);
  EXPECT_EQ(config.head_dim, 16u);
  EXPECT_EQ(config.rotary_dim, 4u);
  EXPECT_EQ(config.rope_theta, 10000.0f);
  EXPECT_EQ(config.rms_norm_eps, 1e-6f);
  EXPECT_EQ(config.max_positions, 512u);
  EXPECT_EQ(config.linear_key_heads, 2u);
  EXPECT_EQ(config.linear_value_heads, 6u);
  EXPECT_EQ(config.linear_key_dim, 4u);
  EXPECT_EQ(config.linear_value_dim, 8u);
  EXPECT_EQ(config.linear_conv_width, 4u);
}

TEST(GgufModelConfig, IsReadForQwen3WithWholeHeadsRotated) {
  ModelFile model("qwen3");
  const ModelConfig config = gguf_model_config(model.open());
  EXPECT_EQ(config.family, Family::qwen3);
  EXPECT_THAT(config.layers, ElementsAre(LayerType::full_attention));
  EXPECT_EQ(config.rotary_dim, 16u);
  EXPECT_EQ(config.linear_key_heads, 0u);
}

TEST(GgufModelConfig, TakesLayerTypesFromAListOfRecurrentLayers) {
  ModelFile model("qwen35");
  model.builder.integers("qwen35.attention.recurrent_layers", {0, 1});
  EXPECT_THAT(gguf_model_config(model.open()).layers,
              ElementsAre(LayerType::full_attention, LayerType::linear_attention));
}

TEST(GgufModelConfig, LeavesOutMultiTokenPredictionLayers) {
  ModelFile model("qwen35");
  model.set_u32("block_count", 3);
  model.u32("nextn_predict_layers", 1);
  model.add_tensor("blk.2.nextn.eh_proj.weight", {32, 64});
  model.add_tensor("output.weight", {40, 32});
  const GgufFile& file = model.open();
  EXPECT_EQ(gguf_model_config(file).layers.size(), 2u);
  for (const std::string& name : gguf_tensors(file)->names()) {
    EXPECT_FALSE(name.starts_with("layers.2.") || name == "output.weight") << name;
  }
}

TEST(GgufModelConfig, ContradictionsAreNamedByKey) {
  const std::vector<std::pair<std::string, std::uint64_t>> wrong = {
      {"embedding_length", 0},     {"embedding_length", 1u << 30}, {"block_count", 0},
      {"block_count", 1u << 20},   {"attention.head_count_kv", 3}, {"attention.value_length", 8},
      {"rope.dimension_count", 3}, {"rope.dimension_count", 100},  {"ssm.time_step_rank", 3},
      {"ssm.inner_size", 47},      {"nextn_predict_layers", 2},
  };
  for (const auto& [name, value] : wrong) {
    ModelFile model("qwen35");
    model.set_u32(name, value);
    const GgufFile& file = model.open();
    error_of(ErrorKind::mismatch, [&] { gguf_model_config(file); });
  }
  for (const char* name :
       {"block_count", "embedding_length", "attention.head_count", "rope.freq_base", "ssm.state_size"}) {
    ModelFile model("qwen35");
    model.builder.erase(model.key(name));
    const GgufFile& file = model.open();
    EXPECT_THAT(error_of(ErrorKind::missing, [&] { gguf_model_config(file); }), HasSubstr(name));
  }
}

TEST(GgufModelConfig, WhatCannotBeRunIsRefusedByName) {
  ModelFile scaled("qwen3");
  scaled.builder.string("qwen3.rope.scaling.type", "yarn");
  const GgufFile& scaled_file = scaled.open();
  EXPECT_THAT(error_of(ErrorKind::unsupported, [&] { gguf_model_config(scaled_file); }), HasSubstr("yarn"));
  ModelFile split("qwen3");
  split.builder.u32("split.count", 2);
  const GgufFile& split_file = split.open();
  EXPECT_THAT(error_of(ErrorKind::unsupported, [&] { gguf_model_config(split_file); }), HasSubstr("split"));
  ModelFile other("qwen3");
  other.builder.erase("general.architecture");
  other.builder.string("general.architecture", "llama");
  const GgufFile& other_file = other.open();
  EXPECT_THAT(error_of(ErrorKind::unsupported, [&] { gguf_model_config(other_file); }), HasSubstr("'llama'"));
}

// ---------------------------------------------------------------- tensors

TEST(GgufTensors, Qwen3KeepsEveryValueUnderTheCheckpointsNames) {
  ModelFile model("qwen3");
  const auto source = gguf_tensors(model.open());
  const std::map<std::string, std::string> names = {
      {"token_embd.weight", "embed_tokens.weight"},
      {"output_norm.weight", "norm.weight"},
      {"blk.0.attn_norm.weight", "layers.0.input_layernorm.weight"},
      {"blk.0.ffn_norm.weight", "layers.0.post_attention_layernorm.weight"},
      {"blk.0.attn_q.weight", "layers.0.self_attn.q_proj.weight"},
      {"blk.0.attn_output.weight", "layers.0.self_attn.o_proj.weight"},
      {"blk.0.attn_k_norm.weight", "layers.0.self_attn.k_norm.weight"},
      {"blk.0.ffn_down.weight", "layers.0.mlp.down_proj.weight"}};
  for (const auto& [stored, canonical] : names) {
    EXPECT_EQ(read_all(*source, canonical), model.written[stored]) << canonical;
    EXPECT_FALSE(source->stored_bytes(canonical).empty());
  }
  EXPECT_EQ(source->names().size(), model.written.size());
}

TEST(GgufTensors, NormsOfQwen35GiveBackTheDistanceFromOne) {
  ModelFile model("qwen35");
  const auto source = gguf_tensors(model.open());
  for (const auto& [stored, canonical] : std::map<std::string, std::string>{
           {"output_norm.weight", "norm.weight"},
           {"blk.0.attn_norm.weight", "layers.0.input_layernorm.weight"},
           {"blk.0.post_attention_norm.weight", "layers.0.post_attention_layernorm.weight"},
           {"blk.1.attn_q_norm.weight", "layers.1.self_attn.q_norm.weight"}}) {
    std::vector<float> values = read_all(*source, canonical);
    for (float& value : values) value = 1.0f + value;
    EXPECT_EQ(values, model.written[stored]) << canonical;
    EXPECT_TRUE(source->stored_bytes(canonical).empty());
  }
  EXPECT_EQ(read_all(*source, "layers.0.linear_attn.norm.weight"), model.written["blk.0.ssm_norm.weight"]);
}

TEST(GgufTensors, DecayGivesBackALogarithmThatDecaysTheSame) {
  ModelFile model("qwen35");
  const auto source = gguf_tensors(model.open());
  const std::vector<float> logs = read_all(*source, "layers.0.linear_attn.A_log");
  for (std::uint64_t head = 0; head < logs.size(); ++head) {
    const double decay = -std::exp(static_cast<double>(logs[head]));
    EXPECT_EQ(static_cast<float>(decay), model.written["blk.0.ssm_a"][tiled_head(head)]);
  }
}

/// `rows` rows of `width` values, from `first` on in value heads of `head` rows, put in the checkpoint's
/// order.
std::vector<float> grouped_rows(const std::vector<float>& stored, std::uint64_t first, std::uint64_t head,
                                std::uint64_t width) {
  std::vector<float> out(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(first * width));
  for (std::uint64_t h = 0; h < ModelFile::kValueHeads; ++h) {
    const auto begin = stored.begin() + static_cast<std::ptrdiff_t>((first + tiled_head(h) * head) * width);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(head * width));
  }
  return out;
}

TEST(GgufTensors, ValueHeadsComeBackGroupedByKeyHead) {
  ModelFile model("qwen35");
  const auto source = gguf_tensors(model.open());
  constexpr std::uint64_t keys = 2 * ModelFile::kKeyHeads * ModelFile::kKeyDim;
  constexpr std::uint64_t dim = ModelFile::kValueDim, hidden = ModelFile::kHidden;
  const std::string layer = "layers.0.linear_attn.";
  auto& written = model.written;
  EXPECT_EQ(read_all(*source, layer + "in_proj_qkv.weight"),
            grouped_rows(written["blk.0.attn_qkv.weight"], keys, dim, hidden));
  EXPECT_EQ(read_all(*source, layer + "in_proj_z.weight"),
            grouped_rows(written["blk.0.attn_gate.weight"], 0, dim, hidden));
  EXPECT_EQ(read_all(*source, layer + "in_proj_b.weight"),
            grouped_rows(written["blk.0.ssm_beta.weight"], 0, 1, hidden));
  EXPECT_EQ(read_all(*source, layer + "in_proj_a.weight"),
            grouped_rows(written["blk.0.ssm_alpha.weight"], 0, 1, hidden));
  EXPECT_EQ(read_all(*source, layer + "dt_bias"), grouped_rows(written["blk.0.ssm_dt.bias"], 0, 1, 1));
  EXPECT_EQ(read_all(*source, layer + "conv1d.weight"),
            grouped_rows(written["blk.0.ssm_conv1d.weight"], keys, dim, ModelFile::kConv));
  EXPECT_THAT(require(*source, layer + "conv1d.weight").shape,
              ElementsAre(ModelFile::kChannels, 1, ModelFile::kConv));
  std::vector<float> out;
  const std::vector<float>& stored = written["blk.0.ssm_out.weight"];
  constexpr std::uint64_t width = ModelFile::kValueHeads * dim;
  for (std::uint64_t row = 0; row < hidden; ++row) {
    const auto begin = stored.begin() + static_cast<std::ptrdiff_t>(row * width);
    const std::vector<float> ordered = grouped_rows(std::vector<float>(begin, begin + width), 0, dim, 1);
    out.insert(out.end(), ordered.begin(), ordered.end());
  }
  EXPECT_EQ(read_all(*source, layer + "out_proj.weight"), out);
  EXPECT_TRUE(source->stored_bytes(layer + "out_proj.weight").empty());
}

TEST(GgufTensors, AnyRowsAreTheSameAsThoseOfTheWhole) {
  ModelFile model("qwen35");
  const auto source = gguf_tensors(model.open());
  for (const std::string& name : source->names()) {
    const std::vector<float> whole = read_all(*source, name);
    const std::uint64_t rows = require(*source, name).shape[0], width = whole.size() / rows;
    for (std::uint64_t first = 0; first < rows; first += 3) {
      for (const std::uint64_t count : {std::uint64_t{1}, std::min(rows - first, std::uint64_t{11})}) {
        std::vector<float> part(count * width);
        source->read_rows(name, first, count, part);
        EXPECT_TRUE(
            std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first * width)))
            << name << " " << first << " " << count;
      }
    }
    std::vector<float> outside(width);
    error_of(ErrorKind::invalid_argument, [&] { source->read_rows(name, rows, 1, outside); });
  }
}

TEST(GgufTensors, AreInOrderAlreadyWhereKeyAndValueHeadsAreAsMany) {
  ModelFile model("qwen35");
  model.set_u32("ssm.group_count", 6);
  model.set_u32("ssm.state_size", 4);
  std::erase_if(model.builder.tensors, [](const auto& tensor) {
    return tensor.name == "blk.0.attn_qkv.weight" || tensor.name == "blk.0.ssm_conv1d.weight";
  });
  model.written["blk.0.attn_qkv.weight"].clear();
  model.add_tensor("blk.0.attn_qkv.weight", {2 * 6 * 4 + 48, 32});
  const auto source = gguf_tensors(model.open());
  EXPECT_EQ(read_all(*source, "layers.0.linear_attn.in_proj_qkv.weight"),
            model.written["blk.0.attn_qkv.weight"]);
  EXPECT_FALSE(source->stored_bytes("layers.0.linear_attn.in_proj_qkv.weight").empty());
}

TEST(GgufTensors, EveryReadableTypeGivesItsValues) {
  std::vector<float> values(16 * 32);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int>(i % 255) - 127) / 64.0f;
  Bytes f16, bf16, q8_0;
  for (const float value : values) f16.number(float_to_f16(value));
  for (const float value : values) bf16.number(float_to_bf16(value));
  std::vector<float> as_q8_0;
  for (std::size_t begin = 0; begin < values.size(); begin += 32) {
    q8_0.number(float_to_f16(0.5f));
    for (int i = 0; i < 32; ++i) {
      const auto quant = static_cast<std::int8_t>(static_cast<int>(begin) % 7 * 5 - 16 * (i % 9));
      q8_0.number(quant);
      as_q8_0.push_back(0.5f * static_cast<float>(quant));
    }
  }
  const auto read_as = [&](std::uint32_t type, const Bytes& content) {
    ModelFile model("qwen3");
    for (Builder::Tensor& tensor : model.builder.tensors) {
      if (tensor.name == "blk.0.attn_k.weight") tensor.type = type, tensor.content = content;
    }
    return read_all(*gguf_tensors(model.open()), "layers.0.self_attn.k_proj.weight");
  };
  EXPECT_EQ(read_as(kF32, floats(values)), values);
  EXPECT_EQ(read_as(kF16, f16), values);
  EXPECT_EQ(read_as(kBF16, bf16), values);
  EXPECT_EQ(read_as(kQ8_0, q8_0), as_q8_0);
}

TEST(GgufTensors, TypesThatCannotBeReadYetAreNamedWithTheirTensor) {
  for (const auto& [type, name] : {std::pair{kQ4_K, "Q4_K"}, std::pair{kIQ4_XS, "IQ4_XS"},
                                   std::pair{2u, "Q4_0"}, std::pair{39u, "MXFP4"}, std::pair{28u, "F64"}}) {
    ModelFile model("qwen3");
    for (Builder::Tensor& tensor : model.builder.tensors) {
      if (tensor.name != "blk.0.ffn_up.weight") continue;
      tensor.type = type;
      tensor.shape = {8, 256};
      tensor.content.data.assign(8 * 256 * 8, {});
    }
    const GgufFile& file = model.open();
    const std::string message = error_of(ErrorKind::unsupported, [&] { gguf_tensors(file); });
    EXPECT_THAT(message, HasSubstr(name));
    EXPECT_THAT(message, HasSubstr("yet"));
    EXPECT_THAT(message, HasSubstr("blk.0.ffn_up.weight"));
    EXPECT_EQ(file.tensors().at("blk.0.ffn_up.weight").type->name, name);
  }
}

TEST(GgufTensors, TensorsOfUnknownMeaningAreRefused) {
  for (const char* name : {"blk.0.attn_q.bias", "rope_freqs.weight", "blk.0.ffn_gate_exps.weight",
                           "blk.x.attn_q.weight", "blk.1.attn_q.weight", "blk.0.ssm_a"}) {
    ModelFile model("qwen3");
    model.add_tensor(name, {6});
    const GgufFile& file = model.open();
    EXPECT_THAT(error_of(ErrorKind::unsupported, [&] { gguf_tensors(file); }), HasSubstr(name));
  }
}

TEST(GgufTensors, TwoForOneNameAreRefused) {
  ModelFile model("qwen3");
  model.add_tensor("blk.00.attn_k.weight", {16, ModelFile::kHidden});
  const GgufFile& file = model.open();
  EXPECT_THAT(error_of(ErrorKind::malformed, [&] { gguf_tensors(file); }),
              HasSubstr("layers.0.self_attn.k_proj.weight"));
}

TEST(GgufTensors, ShapesThatContradictTheHeadsAreRefused) {
  for (const auto& [name, dimension] :
       {std::pair("blk.0.attn_qkv.weight", 0), std::pair("blk.0.ssm_conv1d.weight", 0),
        std::pair("blk.0.ssm_a", 0), std::pair("blk.0.attn_gate.weight", 0),
        std::pair("blk.0.ssm_out.weight", 1)}) {
    ModelFile model("qwen35");
    for (Builder::Tensor& tensor : model.builder.tensors) {
      if (tensor.name == name) tensor.shape[static_cast<std::size_t>(dimension)] -= 1;
    }
    const GgufFile& file = model.open();
    EXPECT_THAT(error_of(ErrorKind::mismatch, [&] { gguf_tensors(file); }), HasSubstr(name));
  }
}

TEST(GgufTensors, ValuesThatAreNotFiniteAreNamedByTensorAndElement) {
  ModelFile model("qwen3");
  for (Builder::Tensor& tensor : model.builder.tensors) {
    if (tensor.name == "blk.0.attn_k.weight") {
      std::vector<float> values(16 * 32, 1.0f);
      values[37] = std::numeric_limits<float>::quiet_NaN();
      tensor.content = floats(values);
    }
  }
  const auto source = gguf_tensors(model.open());
  const std::string message =
      error_of(ErrorKind::non_finite, [&] { read_all(*source, "layers.0.self_attn.k_proj.weight"); });
  EXPECT_THAT(message, HasSubstr("37"));
  EXPECT_THAT(message, HasSubstr("model.gguf"));
}

TEST(GgufTensors, ADecayThatIsNotNegativeIsRefused) {
  ModelFile model("qwen35");
  for (Builder::Tensor& tensor : model.builder.tensors) {
    if (tensor.name == "blk.0.ssm_a")
      tensor.content = floats(std::array{-1.0f, -1.0f, 0.0f, -1.0f, 2.0f, -1.0f});
  }
  const auto source = gguf_tensors(model.open());
  EXPECT_THAT(error_of(ErrorKind::mismatch, [&] { read_all(*source, "layers.0.linear_attn.A_log"); }),
              HasSubstr("blk.0.ssm_a"));
}

TEST(GgufTensors, OutliveTheFileObjectTheyCameFrom) {
  ModelFile model("qwen3");
  auto file = std::make_unique<GgufFile>(model.open());
  const auto source = gguf_tensors(*file);
  file.reset();
  EXPECT_EQ(read_all(*source, "norm.weight"), model.written["output_norm.weight"]);
  source->release("norm.weight");
  source->release("no such tensor");
  EXPECT_EQ(read_all(*source, "norm.weight"), model.written["output_norm.weight"]);
}

// ---------------------------------------------------------------- tokenizer

Builder tokenizer_file() {
  Builder builder;
  builder.string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", "qwen35")
      .strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<|im_start|>", "[PAD4]"})
      .integers("tokenizer.ggml.token_type", {1, 1, 1, 3, 5})
      .strings("tokenizer.ggml.merges", {"a b", "Ġ t"});
  return builder;
}

std::string tokenizer_error(const Builder& builder, ErrorKind kind) {
  const auto bytes = builder.bytes();
  const GgufFile file = GgufFile::parse(bytes, "test.gguf");
  return error_of(kind, [&] { gguf_tokenizer(file); });
}

TEST(GgufTokenizer, TokensTypesMergesAndPatternAreRead) {
  const auto bytes = tokenizer_file().bytes();
  const GgufTokenizer tokenizer = gguf_tokenizer(GgufFile::parse(bytes, "f"));
  EXPECT_THAT(tokenizer.tokens, ElementsAre("a", "b", "ab", "<|im_start|>", "[PAD4]"));
  EXPECT_EQ(tokenizer.types[3], GgufTokenizer::TokenType::control);
  EXPECT_EQ(tokenizer.types[4], GgufTokenizer::TokenType::unused);
  EXPECT_THAT(tokenizer.merges, ElementsAre(std::pair("a", "b"), std::pair("Ġ", "t")));
  EXPECT_THAT(tokenizer.split_pattern, HasSubstr("\\p{M}"));
}

TEST(GgufTokenizer, OfAnotherKindIsRefusedByName) {
  for (const auto& [key, value] :
       {std::pair{"tokenizer.ggml.model", "llama"}, std::pair{"tokenizer.ggml.pre", "gpt-2"}}) {
    Builder builder = tokenizer_file();
    builder.erase(key);
    builder.string(key, value);
    EXPECT_THAT(tokenizer_error(builder, ErrorKind::unsupported), HasSubstr(value));
  }
}

TEST(GgufTokenizer, PartsThatDisagreeAreRefused) {
  Builder types = tokenizer_file();
  types.erase("tokenizer.ggml.token_type");
  types.integers("tokenizer.ggml.token_type", {1, 1});
  tokenizer_error(types, ErrorKind::mismatch);
  Builder unknown = tokenizer_file();
  unknown.erase("tokenizer.ggml.token_type");
  unknown.integers("tokenizer.ggml.token_type", {1, 1, 1, 3, 9});
  tokenizer_error(unknown, ErrorKind::malformed);
  for (const char* merge : {"ab", "a ", " b", ""}) {
    Builder merges = tokenizer_file();
    merges.erase("tokenizer.ggml.merges");
    merges.strings("tokenizer.ggml.merges", {merge});
    tokenizer_error(merges, ErrorKind::malformed);
  }
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.token_type"}) {
    Builder missing = tokenizer_file();
    missing.erase(key);
    EXPECT_THAT(tokenizer_error(missing, ErrorKind::missing), HasSubstr(key));
  }
}

TEST(IsGguf, LooksAtRegularFilesAlone) {
  const assay::TemporaryDirectory folder;
  EXPECT_TRUE(is_gguf(folder.write("a.gguf", "GGUF\3")));
  EXPECT_FALSE(is_gguf(folder.write("short", "GGU")));
  EXPECT_FALSE(is_gguf(folder.write("empty", "")));
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(error_of(ErrorKind::io, [&] { is_gguf(pipe); }), HasSubstr("pipe"));
  EXPECT_THAT(error_of(ErrorKind::missing, [&] { is_gguf(folder / "none"); }), HasSubstr("none"));
}

}  // namespace
}  // namespace assay::formats
