#include "formats/canonical_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/safetensors.hpp"
#include "formats/tests/support.hpp"

namespace assay::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CanonicalName, IsTheSameForEveryPrefix) {
  const std::string name = "layers.0.self_attn.q_proj.weight";
  for (const char* prefix :
       {"", "model.", "model.language_model.", "language_model.model.", "language_model."}) {
    EXPECT_EQ(canonical_name(prefix + name), name) << prefix;
  }
}

TEST(CanonicalName, IsNoneForVisionAndMultiTokenPrediction) {
  for (const char* name : {"model.visual.blocks.0.attn.qkv.weight", "visual.patch_embed.proj.weight",
                           "mtp.fc.weight", "model.mtp.norm.weight"}) {
    EXPECT_EQ(canonical_name(name), std::nullopt) << name;
  }
}

std::shared_ptr<const TensorSource> source_of(const std::vector<std::string>& names, std::string& file) {
  std::vector<test::Tensor> tensors;
  for (const std::string& name : names)
    tensors.push_back({name, "F32", {1}, test::raw<float>({static_cast<float>(tensors.size())})});
  file = test::safetensors(tensors);
  return parse_safetensors(test::bytes_of(file), "test.safetensors");
}

TEST(CanonicalNames, RenamesAndHides) {
  std::string file;
  const auto source = canonical_names(
      source_of({"model.language_model.norm.weight", "model.visual.x", "mtp.x", "lm_head.weight"}, file));
  EXPECT_THAT(source->names(), ElementsAre("norm.weight"));
  EXPECT_EQ(source->find("norm.weight")->name, "norm.weight");
  EXPECT_EQ(source->find("model.visual.x"), nullptr);
  std::vector<float> out(1);
  source->read_rows("norm.weight", 0, 1, out);
  EXPECT_EQ(out[0], 0.0f);
  EXPECT_EQ(source->stored_bytes("norm.weight").size(), 4u);
  EXPECT_TRUE(source->stored_bytes("mtp.x").empty());
  EXPECT_EQ(test::error_of([&] { source->read_rows("mtp.x", 0, 1, out); }).kind(), ErrorKind::missing);
}

TEST(CanonicalNames, TwoTensorsForOneNameAreRefused) {
  std::string file;
  const auto source = source_of({"model.norm.weight", "model.language_model.norm.weight"}, file);
  const Error error = test::error_of([&] { canonical_names(source); });
  EXPECT_EQ(error.kind(), ErrorKind::malformed);
  EXPECT_THAT(error.what(), HasSubstr("one tensor for 'norm.weight'"));
}

}  // namespace
}  // namespace assay::formats
