#include "music/checkpoint.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"
#include "formats/tensor_source.hpp"

namespace assay::music {
namespace {

const std::filesystem::path kTiny = std::filesystem::path(ASSAY_TEST_DATA) / "ace-tiny";

TEST(PartNames, MapTheOriginalNames) {
  EXPECT_EQ(part_name(Part::transformer, "decoder.layers.0.self_attn.q_proj.weight"),
            "layers.0.self_attn.to_q.weight");
  EXPECT_EQ(part_name(Part::transformer, "decoder.layers.3.cross_attn.o_proj.weight"),
            "layers.3.cross_attn.to_out.0.weight");
  EXPECT_EQ(part_name(Part::transformer, "decoder.proj_in.1.bias"), "proj_in_conv.bias");
  EXPECT_EQ(part_name(Part::transformer, "decoder.proj_out.1.weight"), "proj_out_conv.weight");
  EXPECT_EQ(part_name(Part::condition_encoder, "encoder.lyric_encoder.layers.1.self_attn.k_norm.weight"),
            "lyric_encoder.layers.1.self_attn.norm_k.weight");
  EXPECT_EQ(part_name(Part::condition_encoder, "null_condition_emb"), "null_condition_emb");
  EXPECT_EQ(part_name(Part::audio_tokenizer, "tokenizer.quantizer.project_in.weight"),
            "quantizer.project_in.weight");
  EXPECT_EQ(part_name(Part::audio_detokenizer, "detokenizer.special_tokens"), "special_tokens");
  EXPECT_EQ(part_name(Part::audio_tokenizer, "detokenizer.special_tokens"), std::nullopt);
  EXPECT_EQ(part_name(Part::transformer, "encoder.layers.0.weight"), std::nullopt);
  EXPECT_EQ(part_name(Part::vae, "decoder.conv1.bias"), std::nullopt);
}

TEST(Checkpoint, OpensTheDiffusersLayout) {
  ASSERT_TRUE(Checkpoint::looks_like(kTiny));
  const Checkpoint checkpoint = Checkpoint::open(kTiny);
  EXPECT_EQ(checkpoint.layout(), Checkpoint::Layout::diffusers);
  EXPECT_EQ(checkpoint.text_encoder().hidden_size, 128u);
  EXPECT_EQ(checkpoint.audio_tokenizer().levels.size(), 6u);
  EXPECT_EQ(checkpoint.audio_detokenizer().pool_window, 5u);
  EXPECT_EQ(checkpoint.silence_latent().size(), 900u * 64);
  const auto null_condition = checkpoint.null_condition();
  ASSERT_TRUE(null_condition.has_value());
  EXPECT_EQ(null_condition->size(), 256u);
  for (const Part part : {Part::condition_encoder, Part::transformer, Part::audio_tokenizer,
                          Part::audio_detokenizer, Part::vae, Part::text_encoder}) {
    EXPECT_FALSE(checkpoint.tensors(part)->names().empty());
  }
  EXPECT_NE(checkpoint.tensors(Part::text_encoder)->find("embed_tokens.weight"), nullptr);
  EXPECT_EQ(checkpoint.files().size(), 13u);
  EXPECT_EQ(checkpoint.identity().size(), 64u);
  EXPECT_TRUE(checkpoint.tokenizer().appended().empty());
}

TEST(Checkpoint, RefusesWhatIsNone) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(Checkpoint::looks_like(directory.path()));
  expect_error(ErrorKind::missing, "no ACE-Step checkpoint", [&] { Checkpoint::open(directory.path()); });
  expect_error(ErrorKind::missing, "no directory", [&] { Checkpoint::open(directory.path() / "none"); });
  std::ofstream(directory.path() / "model_index.json") << "{}";
  expect_error(ErrorKind::missing, "transformer", [&] { Checkpoint::open(directory.path()); });
}

TEST(Checkpoint, PartsOfTwoCheckpointsAreRefused) {
  const TemporaryDirectory directory;
  const auto copy = directory.path() / "mixed";
  std::filesystem::create_directory(copy);
  for (const auto& entry : std::filesystem::directory_iterator(kTiny)) {
    std::filesystem::create_symlink(std::filesystem::absolute(entry.path()), copy / entry.path().filename());
  }
  EXPECT_NO_THROW(Checkpoint::open(copy));
  std::filesystem::remove(copy / "audio_tokenizer");
  const Checkpoint without = Checkpoint::open(copy);
  expect_error(ErrorKind::missing, "audio_tokenizer", [&] { without.audio_tokenizer(); });
  std::filesystem::remove(copy / "text_encoder");
  std::filesystem::create_symlink(
      std::filesystem::absolute(std::filesystem::path(ASSAY_TEST_DATA) / "kev-tiny-dense" / "base"),
      copy / "text_encoder");
  expect_error(ErrorKind::mismatch, "text encoder", [&] { Checkpoint::open(copy); });
}

}  // namespace
}  // namespace assay::music
