#include "music/condition_encoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backbone/backbone.hpp"
#include "base/error.hpp"
#include "formats/hf_config.hpp"
#include "music/tests/ace_fixture.hpp"

namespace assay::music {
namespace {

constexpr std::size_t kTextWidth = 128;

/// The text encoder that the pipeline has before this part.
class FixtureText {
 public:
  explicit FixtureText(device::ThreadPool& threads)
      : source_(formats::open_safetensors(fixture::part("text_encoder"))),
        encoder_(formats::parse_hf_config(fixture::config_text("text_encoder"), "config.json"), source_,
                 ops::select_forms(ops::Precision::fp32), threads) {}

  std::vector<float> hidden(const std::vector<std::int32_t>& ids) {
    backbone::Segment segment{.tokens = ids};
    for (std::size_t i = 0; i < ids.size(); ++i) segment.readouts.push_back(i);
    return encoder_.run(std::vector{segment}).hidden[0];
  }

  std::vector<float> embedding(const std::vector<std::int32_t>& ids) const {
    std::vector<float> rows(ids.size() * kTextWidth);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      source_->read_rows("embed_tokens.weight", static_cast<std::uint64_t>(ids[i]), 1,
                         std::span(rows).subspan(i * kTextWidth, kTextWidth));
    }
    return rows;
  }

 private:
  std::shared_ptr<const formats::TensorSource> source_;
  backbone::Backbone encoder_;
};

class ConditionEncoderTest : public testing::Test {
 protected:
  std::vector<float> encode(const std::string& id, std::span<const float> text, ops::Precision precision,
                            device::ThreadPool& threads) {
    const std::vector<float> lyrics =
        text_.embedding(fixture::record(id)["lyric_ids"].get<std::vector<std::int32_t>>());
    ConditionEncoder encoder(config_, *weights_, ops::select_forms(precision), threads);
    return encoder.encode({.text = text, .lyrics = lyrics, .timbre = fixture::silence(750)});
  }

  device::ThreadPool threads_{2};
  FixtureText text_{threads_};
  ConditionConfig config_ = parse_condition_config(fixture::config_text("condition_encoder"), "config.json");
  std::shared_ptr<const formats::TensorSource> weights_ = fixture::weights("condition_encoder");
};

TEST_F(ConditionEncoderTest, EqualsTheAuthorsOnTheirTextStates) {
  const std::vector<float> condition =
      encode("a", fixture::answer("a.text_hidden"), ops::Precision::fp32, threads_);
  EXPECT_LE(fixture::nrmse(fixture::answer("a.condition"), condition), 3e-6);
}

TEST_F(ConditionEncoderTest, LyricsAndTimbreEqualTheAuthorsInEveryCase) {
  for (const std::string id : fixture::kCases) {
    const nlohmann::json& record = fixture::record(id);
    const std::vector<float> text = text_.hidden(record["text_ids"].get<std::vector<std::int32_t>>());
    const std::vector<float> condition = encode(id, text, ops::Precision::fp32, threads_);
    const std::vector<float> expected = fixture::answer(id + ".condition");
    const std::size_t own = (record["lyric_ids"].size() + 1) * 256;
    EXPECT_LE(fixture::nrmse(std::span(expected).first(own), std::span(condition).first(own)), 3e-6) << id;
    // The authors' text encoder turned by frequencies rounded to bf16, as its whole model had once been.
    EXPECT_LE(fixture::nrmse(expected, condition), 3e-3) << id;
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

}  // namespace
}  // namespace assay::music
