#include "music/condition_encoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "formats/hf_config.hpp"
#include "music/tests/ace_fixture.hpp"
#include "music/text_encoder.hpp"

namespace assay::music {
namespace {

constexpr std::size_t kTextWidth = 128;

class ConditionEncoderTest : public testing::Test {
 protected:
  std::vector<float> encode(const std::string& id, std::span<const float> text, ops::Precision precision,
                            device::ThreadPool& threads) {
    const auto ids = fixture::record(id)["lyric_ids"].get<std::vector<std::int32_t>>();
    const std::vector<float> lyrics = embedding_rows(*text_weights_, ids, kTextWidth);
    ConditionEncoder encoder(config_, *weights_, ops::select_forms(precision), threads);
    return encoder.encode({.text = text, .lyrics = lyrics, .timbre = fixture::silence(750)});
  }

  /// As the text encoder gives them; its rotary frequencies are those of the authors' run (checkpoint.cpp).
  std::vector<std::vector<float>> text_states() {
    formats::ModelConfig config =
        formats::parse_hf_config(fixture::config_text("text_encoder"), "config.json");
    config.bf16_rope_frequencies = true;
    TextEncoder encoder(config, text_weights_, ops::select_forms(ops::Precision::fp32), threads_);
    std::vector<std::vector<float>> states;
    for (const std::string id : fixture::kCases) {
      states.push_back(
          encoder.hidden_states(fixture::record(id)["text_ids"].get<std::vector<std::int32_t>>()));
    }
    return states;
  }

  device::ThreadPool threads_{2};
  std::shared_ptr<const formats::TensorSource> text_weights_ =
      formats::open_safetensors(fixture::part("text_encoder"));
  ConditionConfig config_ = parse_condition_config(fixture::config_text("condition_encoder"), "config.json");
  std::shared_ptr<const formats::TensorSource> weights_ = fixture::weights("condition_encoder");
};

TEST_F(ConditionEncoderTest, EqualsTheAuthorsInEveryCase) {
  const std::vector<std::vector<float>> texts = text_states();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string id = fixture::kCases[i];
    EXPECT_LE(fixture::nrmse(fixture::answer(id + ".condition"),
                             encode(id, texts[i], ops::Precision::fp32, threads_)),
              3e-6)
        << id;
  }
}

TEST_F(ConditionEncoderTest, StaysCloseInBf16) {
  const std::vector<float> condition =
      encode("a", fixture::answer("a.text_hidden"), ops::Precision::bf16, threads_);
  const double error = fixture::nrmse(fixture::answer("a.condition"), condition);
  EXPECT_LE(error, 0.02);
  EXPECT_GE(error, 1e-5);
}

TEST_F(ConditionEncoderTest, ThreadsChangeNoBit) {
  device::ThreadPool one(1);
  const std::vector<float> text = fixture::answer("a.text_hidden");
  EXPECT_EQ(encode("c", text, ops::Precision::fp32, one), encode("c", text, ops::Precision::fp32, threads_));
}

TEST_F(ConditionEncoderTest, HasARowThatStandsForNoCondition) {
  const ConditionEncoder encoder(config_, *weights_, ops::select_forms(ops::Precision::fp32), threads_);
  const std::vector<float> stored = fixture::values(*weights_, "null_condition_emb");
  EXPECT_TRUE(std::ranges::equal(encoder.null_condition(), stored));
}

TEST_F(ConditionEncoderTest, RefusesRowsThatDoNotFitAndNumbersThatAreNone) {
  ConditionEncoder encoder(config_, *weights_, ops::select_forms(ops::Precision::fp32), threads_);
  const std::vector<float> row(kTextWidth, 0.1f);
  const std::vector<float> timbre(64, 0.1f);
  EXPECT_NO_THROW(encoder.encode({.text = row, .lyrics = row, .timbre = timbre}));
  EXPECT_THROW(encoder.encode({.text = row, .lyrics = {}, .timbre = timbre}), Error);
  EXPECT_THROW(encoder.encode({.text = std::span(row).first(100), .lyrics = row, .timbre = timbre}), Error);
  std::vector<float> broken = row;
  broken[7] = std::numeric_limits<float>::quiet_NaN();
  try {
    encoder.encode({.text = broken, .lyrics = row, .timbre = timbre});
    FAIL() << "a NaN went through";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::non_finite);
    EXPECT_EQ(error.parts().where, "condition encoder");
  }
}

TEST_F(ConditionEncoderTest, StopsOnRequest) {
  std::stop_source stop;
  ConditionEncoder encoder(config_, *weights_, ops::select_forms(ops::Precision::fp32), threads_,
                           stop.get_token());
  stop.request_stop();
  const std::vector<float> row(kTextWidth, 0.1f);
  const std::vector<float> timbre(64, 0.1f);
  try {
    encoder.encode({.text = row, .lyrics = row, .timbre = timbre}, stop.get_token());
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  }
  EXPECT_THROW(ConditionEncoder(config_, *weights_, ops::select_forms(ops::Precision::fp32), threads_,
                                stop.get_token()),
               Error);
}

}  // namespace
}  // namespace assay::music
