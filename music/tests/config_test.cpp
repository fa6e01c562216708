#include "music/config.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/tests/expect_error.hpp"

namespace assay::music {
namespace {

std::string config_of(const std::string& part) {
  return read_text_file(std::filesystem::path(ASSAY_TEST_DATA) / "ace-tiny" / part / "config.json");
}

nlohmann::json json_of(const std::string& part) {
  return nlohmann::json::parse(config_of(part));
}

/// What an original checkpoint of the released XL shape says (convert_ace_step_to_diffusers.py).
nlohmann::json original_xl() {
  nlohmann::json config = {{"hidden_size", 2560},
                           {"intermediate_size", 9728},
                           {"num_hidden_layers", 32},
                           {"num_attention_heads", 32},
                           {"num_key_value_heads", 8},
                           {"head_dim", 128},
                           {"in_channels", 192},
                           {"audio_acoustic_hidden_dim", 64},
                           {"patch_size", 2},
                           {"rope_theta", 1000000},
                           {"attention_bias", false},
                           {"rms_norm_eps", 1e-6},
                           {"sliding_window", 128},
                           {"text_hidden_dim", 1024},
                           {"timbre_hidden_dim", 64},
                           {"num_lyric_encoder_hidden_layers", 8},
                           {"num_timbre_encoder_hidden_layers", 4},
                           {"encoder_hidden_size", 2048},
                           {"encoder_intermediate_size", 6144},
                           {"encoder_num_attention_heads", 16},
                           {"encoder_num_key_value_heads", 8},
                           {"fsq_dim", 2048},
                           {"is_turbo", true}};
  for (int i = 0; i < 32; ++i) {
    config["layer_types"].push_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
  }
  return config;
}

TEST(MusicConfig, ReadsTheFixturesParts) {
  const DitConfig dit = parse_dit_config(config_of("transformer"), "dit");
  EXPECT_EQ(dit.stack.block.hidden_size, 256u);
  EXPECT_EQ(dit.stack.sliding, (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(dit.condition_size, 256u);
  EXPECT_TRUE(dit.turbo);
  const ConditionConfig condition = parse_condition_config(config_of("condition_encoder"), "condition");
  EXPECT_EQ(condition.lyric_sliding.size(), 2u);
  EXPECT_EQ(condition.text_width, 128u);
  const AudioTokenConfig tokenizer = parse_audio_tokenizer_config(config_of("audio_tokenizer"), "tokenizer");
  EXPECT_EQ(tokenizer.levels, (std::vector<std::size_t>{8, 8, 8, 5, 5, 5}));
  EXPECT_EQ(tokenizer.code_width, 256u);
  const auto detokenizer =
      parse_audio_detokenizer_config(config_of("audio_token_detokenizer"), "detokenizer");
  EXPECT_EQ(detokenizer.pool_window, 5u);
  const VaeConfig vae = parse_vae_config(config_of("vae"), "vae");
  EXPECT_EQ(vae.samples_per_frame(), 1920u);
  EXPECT_EQ(vae.sample_rate, 48000u);
  EXPECT_NO_THROW(check_configs_agree({dit, condition, tokenizer, detokenizer}, vae, 128, "ace-tiny"));
  EXPECT_THROW(check_configs_agree({dit, condition, tokenizer, detokenizer}, vae, 1024, "ace-tiny"), Error);
}

TEST(MusicConfig, OriginalConfigurationGivesTheEncodersTheirOwnSizes) {
  const PartConfigs xl = parse_original_config(original_xl().dump(), "config.json");
  EXPECT_EQ(xl.dit.stack.block.hidden_size, 2560u);
  EXPECT_EQ(xl.dit.stack.sliding.size(), 32u);
  EXPECT_EQ(xl.dit.condition_size, 2048u);
  EXPECT_EQ(xl.condition.block.hidden_size, 2048u);
  EXPECT_EQ(xl.condition.block.heads, 16u);
  EXPECT_EQ(xl.condition.lyric_sliding.size(), 8u);
  EXPECT_EQ(xl.tokenizer->stack.block.intermediate_size, 6144u);
  EXPECT_EQ(xl.tokenizer->levels.size(), 6u);
  EXPECT_EQ(xl.detokenizer->stack.sliding.size(), 2u);
  nlohmann::json plain = original_xl();
  for (const char* key : {"encoder_hidden_size", "encoder_intermediate_size", "encoder_num_attention_heads",
                          "encoder_num_key_value_heads", "fsq_dim"}) {
    plain.erase(key);
  }
  const PartConfigs turbo = parse_original_config(plain.dump(), "config.json");
  EXPECT_EQ(turbo.condition.block.hidden_size, 2560u);
  EXPECT_EQ(turbo.dit.condition_size, 2560u);
}

TEST(MusicConfig, RefusesByFileAndField) {
  const auto refused = [](const char* key, const nlohmann::json& value, ErrorKind kind) {
    nlohmann::json config = json_of("transformer");
    if (value.is_discarded())
      config.erase(key);
    else
      config[key] = value;
    try {
      parse_dit_config(config.dump(), "x/config.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find("x/config.json: "), std::string::npos) << error.what();
      return;
    }
    ADD_FAILURE() << key << " = " << value;
  };
  const nlohmann::json absent(nlohmann::json::value_t::discarded);
  refused("hidden_size", absent, ErrorKind::missing);
  refused("hidden_size", 0, ErrorKind::malformed);
  refused("hidden_size", 1 << 30, ErrorKind::malformed);
  refused("hidden_size", "wide", ErrorKind::malformed);
  refused("num_key_value_heads", 3, ErrorKind::malformed);
  refused("head_dim", 127, ErrorKind::malformed);
  refused("attention_bias", true, ErrorKind::unsupported);
  refused("in_channels", 128, ErrorKind::unsupported);
  refused("rope_theta", -1.0, ErrorKind::malformed);
  refused("layer_types", {"full_attention"}, ErrorKind::malformed);
  refused("layer_types", {"full_attention", "full_attention", "chunked", "full_attention"},
          ErrorKind::unsupported);
  nlohmann::json vae = json_of("vae");
  vae["downsampling_ratios"] = {2, 4};
  EXPECT_THROW(parse_vae_config(vae.dump(), "vae"), Error);
  vae["downsampling_ratios"] = {2, 4, 0, 6, 10};
  EXPECT_THROW(parse_vae_config(vae.dump(), "vae"), Error);
}

TEST(MusicConfig, RefusesSizesWhoseProductsAreNotOfThisWorld) {
  const auto refused = [](const std::string& part, const char* key, const nlohmann::json& value,
                          const auto& parse) {
    nlohmann::json config = json_of(part);
    config[key] = value;
    expect_error(ErrorKind::malformed, key, [&] { parse(config.dump(), "config.json"); });
  };
  // Each is of this world by itself: 2^40 samples a frame, 2^26 channels, 2^60 codes.
  refused("vae", "downsampling_ratios", {256, 256, 256, 256, 256}, parse_vae_config);
  nlohmann::json wide = json_of("vae");
  wide["decoder_channels"] = 65536;
  wide["channel_multiples"] = {1, 2, 4, 8, 1024};
  expect_error(ErrorKind::malformed, "channel_multiples", [&] { parse_vae_config(wide.dump(), "vae"); });
  refused("audio_tokenizer", "fsq_input_levels", {1024, 1024, 1024, 1024, 1024, 1024},
          parse_audio_tokenizer_config);
}

}  // namespace
}  // namespace assay::music
