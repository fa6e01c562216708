#include "formats/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "formats/tests/support.hpp"

namespace assay::formats {
namespace {

using test::bytes_of;
using test::entry;
using test::error_of;
using test::safetensors_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kFixtures = ASSAY_TEST_DATA;

/// Two tensors: a [2, 3] in F32 at 0 to 24, b [2] in BF16 at 24 to 28.
std::string small_file() {
  return test::safetensors(
      {{"a", "F32", {2, 3}, test::raw<float>({0, 1, 2, 3, 4, 5})}, {"b", "BF16", {2}, test::bf16({6, 7})}});
}

Error refused_file(std::string_view file) {
  return error_of([&] { parse_safetensors(bytes_of(file), "test.safetensors"); });
}

Error refused_file(const std::string& header, std::size_t data_bytes) {
  return refused_file(safetensors_of(header, std::string(data_bytes, '\0')));
}

std::vector<float> rows(const TensorSource& source, std::string_view name, std::uint64_t first,
                        std::uint64_t count, std::size_t width) {
  std::vector<float> out(count * width);
  source.read_rows(name, first, count, out);
  return out;
}

TEST(Safetensors, GivesNamesShapesAndRows) {
  const std::string file = small_file();
  const auto source = parse_safetensors(bytes_of(file), "test.safetensors");
  EXPECT_THAT(source->names(), ElementsAre("a", "b"));
  EXPECT_THAT(source->find("a")->shape, ElementsAre(2, 3));
  EXPECT_EQ(source->find("b")->type, DType::bf16);
  EXPECT_EQ(source->find("c"), nullptr);
  EXPECT_THAT(rows(*source, "a", 1, 1, 3), ElementsAre(3, 4, 5));
  EXPECT_THAT(rows(*source, "b", 0, 2, 1), ElementsAre(6, 7));
  EXPECT_EQ(source->stored_bytes("a").size(), 24u);
  EXPECT_TRUE(source->stored_bytes("c").empty());
}

TEST(Safetensors, RefusesRowsOutsideTheTensorAndRoomOfAnotherSize) {
  const std::string file = small_file();
  const auto source = parse_safetensors(bytes_of(file), "test.safetensors");
  std::vector<float> out(3);
  EXPECT_EQ(error_of([&] { source->read_rows("a", 2, 1, out); }).kind(), ErrorKind::invalid_argument);
  EXPECT_EQ(error_of([&] { source->read_rows("a", ~0ull, 2, out); }).kind(), ErrorKind::invalid_argument);
  EXPECT_EQ(error_of([&] { source->read_rows("a", 0, 2, out); }).kind(), ErrorKind::invalid_argument);
}

TEST(Safetensors, NamesWhatIsNearAMissingTensor) {
  const std::string file = test::safetensors({{"layers.0.q_proj.weight", "F32", {1}, test::raw<float>({1})},
                                              {"norm.weight", "F32", {1}, test::raw<float>({1})}});
  const auto source = parse_safetensors(bytes_of(file), "test.safetensors");
  const Error error = error_of([&] { require(*source, "layers.0.k_proj.weight"); });
  EXPECT_EQ(error.kind(), ErrorKind::missing);
  EXPECT_THAT(error.what(), HasSubstr("nearest of the 2 there: layers.0.q_proj.weight"));
}

TEST(Safetensors, AShapeThatDiffersNamesBoth) {
  const std::string file = small_file();
  const auto source = parse_safetensors(bytes_of(file), "test.safetensors");
  const Error error = error_of([&] { require(*source, "a", std::array<std::uint64_t, 2>{3, 2}); });
  EXPECT_EQ(error.kind(), ErrorKind::mismatch);
  EXPECT_THAT(error.what(), HasSubstr("test.safetensors: tensor 'a': shape [2, 3]; expected [3, 2]"));
}

TEST(Safetensors, AFileCutAtAnyByteIsRefused) {
  const std::string file = small_file();
  for (std::size_t size = 0; size < file.size(); ++size) {
    SCOPED_TRACE(size);
    EXPECT_EQ(refused_file(file.substr(0, size)).kind(), ErrorKind::malformed);
  }
}

TEST(Safetensors, AnyByteOfTheHeaderChangedIsReadOrRefusedCleanly) {
  const std::string file = small_file();
  const std::size_t header_end = file.size() - 28;
  for (std::size_t at = 0; at < header_end; ++at) {
    for (const char with : {'\0', '"', '}', '9', '-', '\xff', '['}) {
      std::string changed = file;
      changed[at] = with;
      try {
        const auto source = parse_safetensors(bytes_of(changed), "test.safetensors");
        for (const std::string& name : source->names()) {
          const TensorInfo* info = source->find(name);
          std::vector<float> out(element_count(*info));
          source->read_rows(name, 0, info->shape.empty() ? 1 : info->shape[0], out);
        }
      } catch (const Error& error) {
        EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
      }
    }
  }
}

TEST(Safetensors, RefusesAHeaderLengthThatIsAbsurdOrDoesNotFit) {
  for (const std::uint64_t length :
       {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{100'000'001}, std::uint64_t{200}}) {
    std::string file = small_file().substr(0, 100);
    std::memcpy(file.data(), &length, sizeof length);
    EXPECT_EQ(refused_file(file).kind(), ErrorKind::malformed) << length;
  }
}

TEST(Safetensors, RefusesOverlapsHolesAndUncoveredBytes) {
  const std::string a = entry("a", "F32", "[2]", "[0,8]");
  EXPECT_THAT(refused_file("{" + a + "," + entry("b", "F32", "[2]", "[4,12]") + "}", 12).what(),
              HasSubstr("overlap"));
  EXPECT_THAT(refused_file("{" + a + "," + entry("b", "F32", "[2]", "[0,8]") + "}", 8).what(),
              HasSubstr("overlap"));
  EXPECT_THAT(refused_file("{" + a + "," + entry("b", "F32", "[1]", "[12,16]") + "}", 16).what(),
              HasSubstr("without a hole"));
  EXPECT_THAT(refused_file("{" + entry("a", "F32", "[1]", "[4,8]") + "}", 8).what(),
              HasSubstr("without a hole"));
  EXPECT_THAT(refused_file("{" + a + "}", 9).what(), HasSubstr("9 data bytes"));
}

TEST(Safetensors, RefusesRangesThatLeaveTheFileOrContradictTheShape) {
  for (const char* offsets : {"[0,9]", "[8,0]", "[0,4]", "[0,18446744073709551615]",
                              "[18446744073709551608,18446744073709551615]"}) {
    const Error error = refused_file("{" + entry("weights", "F32", "[2]", offsets) + "}", 8);
    EXPECT_EQ(error.kind(), ErrorKind::malformed) << offsets;
    EXPECT_THAT(error.what(), HasSubstr("test.safetensors: tensor 'weights'"));
  }
}

TEST(Safetensors, RefusesShapesWhoseSizeOverflows) {
  for (const char* shape : {"[4294967296,4294967296]", "[9223372036854775808,2]", "[4611686018427387905,4]",
                            "[18446744073709551615]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"}) {
    EXPECT_EQ(refused_file("{" + entry("a", "F32", shape, "[0,4]") + "}", 4).kind(), ErrorKind::malformed)
        << shape;
  }
}

TEST(Safetensors, KnowsScalarsAndEmptyTensors) {
  const std::string file =
      safetensors_of("{" + entry("s", "F32", "[]", "[0,4]") + "," + entry("e", "F32", "[0,5]", "[4,4]") + "}",
                     test::raw<float>({2.5f}));
  const auto source = parse_safetensors(bytes_of(file), "test.safetensors");
  EXPECT_THAT(rows(*source, "s", 0, 1, 1), ElementsAre(2.5f));
  EXPECT_TRUE(rows(*source, "e", 0, 0, 5).empty());
}

TEST(Safetensors, RefusesElementTypesByName) {
  const Error unknown = refused_file("{" + entry("a", "F33", "[1]", "[0,4]") + "}", 4);
  EXPECT_EQ(unknown.kind(), ErrorKind::malformed);
  EXPECT_THAT(unknown.what(), HasSubstr("tensor 'a': element type 'F33'"));
  const Error later = refused_file("{" + entry("a", "F8_E4M3", "[4]", "[0,4]") + "}", 4);
  EXPECT_EQ(later.kind(), ErrorKind::unsupported);
  EXPECT_THAT(later.what(), HasSubstr("F8_E4M3"));
}

TEST(Safetensors, RefusesHeadersOfAnotherForm) {
  const std::string good = entry("a", "F32", "[1]", "[0,4]");
  const std::vector<std::string> headers = {
      "[]",
      "{",
      "null",
      "{" + good + "," + good + "}",
      "{" + good + "}}",
      R"({"a":3})",
      R"({"a":[1]})",
      R"({"a":{}})",
      R"({"a":{"dtype":"F32"}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})",
      R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,2,4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":null}})",
      R"({"__metadata__":3})",
      R"({"__metadata__":{"a":3}})",
      R"({"__metadata__":{},"__metadata__":{}})",
      R"({"__metadata__":{"a":{}}})",
      "{\"\xff\":3}"};
  for (const std::string& header : headers) {
    EXPECT_EQ(refused_file(header, 4).kind(), ErrorKind::malformed) << header;
  }
}

TEST(Safetensors, DeepNestingIsRefusedWithoutDeepRecursion) {
  EXPECT_EQ(refused_file(R"({"a":)" + std::string(1 << 20, '['), 0).kind(), ErrorKind::malformed);
  EXPECT_EQ(refused_file(R"({"a":{"shape":)" + std::string(1 << 20, '['), 0).kind(), ErrorKind::malformed);
}

TEST(Safetensors, EveryFiniteHalfConvertsExactly) {
  std::vector<std::uint16_t> bits;
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    if ((half & 0x7c00u) != 0x7c00u) bits.push_back(static_cast<std::uint16_t>(half));
  }
  const std::string file = test::safetensors({{"h", "F16", {bits.size()}, test::raw(bits)}});
  const auto source = parse_safetensors(bytes_of(file), "test.safetensors");
  const std::vector<float> values = rows(*source, "h", 0, bits.size(), 1);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(f16_to_float(bits[i])))
        << bits[i];
  }
}

TEST(Safetensors, EveryFloatingTypeConverts) {
  const std::string file = test::safetensors({{"d", "F64", {2}, test::raw<double>({1.5, -3e-5})},
                                              {"h", "F16", {2}, test::f16({1.5f, 0x1p-24f})},
                                              {"b", "BF16", {2}, test::bf16({1.5f, -2})},
                                              {"i", "I64", {1}, test::raw<std::int64_t>({1})}});
  const auto source = parse_safetensors(bytes_of(file), "test.safetensors");
  EXPECT_THAT(rows(*source, "d", 0, 2, 1), ElementsAre(1.5f, -3e-5f));
  EXPECT_THAT(rows(*source, "h", 0, 2, 1), ElementsAre(1.5f, 0x1p-24f));
  EXPECT_THAT(rows(*source, "b", 0, 2, 1), ElementsAre(1.5f, -2.0f));
  EXPECT_EQ(error_of([&] { rows(*source, "i", 0, 1, 1); }).kind(), ErrorKind::unsupported);
}

TEST(Safetensors, NonFiniteWeightsAreNamedByElementInEveryType) {
  constexpr std::size_t kCount = 5000;
  for (const std::size_t bad : {std::size_t{0}, std::size_t{2047}, std::size_t{2048}, kCount - 1}) {
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()}) {
      std::vector<float> values(kCount, 0.5f);
      values[bad] = value;
      const std::vector<double> doubles(values.begin(), values.end());
      const std::string file = test::safetensors({{"f", "F32", {kCount}, test::raw(values)},
                                                  {"b", "BF16", {kCount}, test::bf16(values)},
                                                  {"h", "F16", {kCount}, test::f16(values)},
                                                  {"d", "F64", {kCount}, test::raw(doubles)}});
      const auto source = parse_safetensors(bytes_of(file), "test.safetensors");
      for (const std::string& name : source->names()) {
        const Error error = error_of([&] { rows(*source, name, 0, kCount, 1); });
        EXPECT_EQ(error.kind(), ErrorKind::non_finite);
        EXPECT_THAT(error.what(), HasSubstr("test.safetensors: tensor '" + name + "'"));
        EXPECT_THAT(error.what(), HasSubstr("at element " + std::to_string(bad) + ";"));
      }
    }
  }
}

TEST(Safetensors, AnElementIsCountedFromTheTensorsStart) {
  const std::string file = test::safetensors({{"a", "F32", {3, 2}, test::raw<float>({0, 1, 2, 3, NAN, 5})}});
  const auto source = parse_safetensors(bytes_of(file), "test.safetensors");
  EXPECT_THAT(error_of([&] { rows(*source, "a", 2, 1, 2); }).what(), HasSubstr("NaN at element 4"));
  EXPECT_THAT(rows(*source, "a", 1, 1, 2), ElementsAre(2, 3));
}

TEST(SafetensorsFiles, TheFixtureReadsTheSameAfterItsPagesAreReleased) {
  const auto source = open_safetensors(kFixtures / "kev-tiny-hybrid/base");
  const TensorInfo& info =
      require(*source, "model.embed_tokens.weight", std::array<std::uint64_t, 2>{1536, 256});
  const std::vector<float> before = read_tensor(*source, info.name, info.shape);
  source->release(info.name);
  EXPECT_EQ(read_tensor(*source, info.name, info.shape), before);
}

TEST(SafetensorsFiles, AMissingFileIsNamed) {
  const Error error = error_of([] { open_safetensors("/nowhere/model.safetensors"); });
  EXPECT_EQ(error.kind(), ErrorKind::missing);
  EXPECT_THAT(error.what(), HasSubstr("/nowhere/model.safetensors"));
}

TEST(SafetensorsFiles, ADirectoryWithoutWeightsIsMissingThem) {
  const test::TemporaryDirectory directory;
  EXPECT_EQ(error_of([&] { open_safetensors(directory.path()); }).kind(), ErrorKind::missing);
}

class ShardedTest : public ::testing::Test {
 protected:
  ShardedTest() {
    for (int i = 0; i < 3; ++i) {
      const auto value = static_cast<float>(i);
      directory_.write(shard(i),
                       test::safetensors({{"t" + std::to_string(i), "F32", {1}, test::raw<float>({value})}}));
    }
  }

  static std::string shard(int i) { return "model-0000" + std::to_string(i + 1) + "-of-00003.safetensors"; }
  void index(const std::string& weight_map) {
    directory_.write("model.safetensors.index.json",
                     R"({"metadata":{"total_size":12},"weight_map":)" + weight_map + "}");
  }
  static std::string full_map() {
    return R"({"t0":")" + shard(0) + R"(","t1":")" + shard(1) + R"(","t2":")" + shard(2) + R"("})";
  }
  Error refused_file() {
    return error_of([&] { open_safetensors(directory_.path()); });
  }

  test::TemporaryDirectory directory_;
};

TEST_F(ShardedTest, ReadsEachTensorFromItsShard) {
  index(full_map());
  const auto source = open_safetensors(directory_.path());
  EXPECT_THAT(source->names(), ElementsAre("t0", "t1", "t2"));
  for (int i = 0; i < 3; ++i) {
    const std::string name = "t" + std::to_string(i);
    EXPECT_THAT(rows(*source, name, 0, 1, 1), ElementsAre(static_cast<float>(i)));
    EXPECT_THAT(source->find(name)->origin, HasSubstr(shard(i)));
    source->release(name);
  }
}

TEST_F(ShardedTest, AMissingShardIsNamed) {
  index(full_map());
  std::filesystem::remove(directory_ / shard(1));
  const Error error = refused_file();
  EXPECT_EQ(error.kind(), ErrorKind::missing);
  EXPECT_THAT(error.what(), HasSubstr("the shard " + shard(1)));
}

TEST_F(ShardedTest, ATensorThatItsShardDoesNotHoldIsNamed) {
  index(R"({"t0":")" + shard(0) + R"(","t1":")" + shard(0) + R"("})");
  const Error error = refused_file();
  EXPECT_EQ(error.kind(), ErrorKind::missing);
  EXPECT_THAT(error.what(), HasSubstr("tensor 't1': not in " + shard(0)));
}

TEST_F(ShardedTest, AShardOutsideTheDirectoryIsRefused) {
  for (const char* name :
       {"../model.safetensors", "/etc/passwd", "sub/model.safetensors", "..", ".", "", "a\\\\b"}) {
    index(R"({"t0":")" + std::string(name) + R"("})");
    const Error error = refused_file();
    EXPECT_EQ(error.kind(), ErrorKind::malformed) << name;
    EXPECT_THAT(error.what(), HasSubstr("weight_map"));
  }
}

TEST_F(ShardedTest, ABrokenIndexIsNamed) {
  for (const char* text : {"", "{", "[]", "{}", R"({"weight_map":3})", R"({"weight_map":{"t0":3}})",
                           R"({"weight_map":{"t0":null}})", R"({"weight_map":{"t0":"a","t0":"b"}})"}) {
    directory_.write("model.safetensors.index.json", text);
    const Error error = refused_file();
    EXPECT_EQ(error.kind(), ErrorKind::malformed) << text;
    EXPECT_THAT(error.what(), HasSubstr("model.safetensors.index.json"));
  }
}

TEST_F(ShardedTest, ATruncatedShardIsNamed) {
  index(full_map());
  directory_.write(shard(2), "short");
  EXPECT_THAT(refused_file().what(), HasSubstr(shard(2)));
}

}  // namespace
}  // namespace assay::formats
