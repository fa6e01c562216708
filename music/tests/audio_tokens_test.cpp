#include "music/audio_tokens.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "music/tests/ace_fixture.hpp"
#include "music/tests/memory_tensors.hpp"

namespace assay::music {
namespace {

class AudioTokens : public testing::Test {
 protected:
  std::vector<std::int32_t> recorded_codes() const {
    const std::span<const std::byte> bytes = fixture::answers().stored_bytes("e.codes");
    std::vector<std::int32_t> codes(bytes.size() / sizeof(std::int32_t));
    std::memcpy(codes.data(), bytes.data(), bytes.size());
    return codes;
  }

  /// Both are loaded once for all tests.
  struct Parts {
    device::ThreadPool threads{2};
    ops::Selection forms = ops::select_forms(ops::Precision::fp32);
    AudioTokenizer tokenizer{
        parse_audio_tokenizer_config(fixture::config_text("audio_tokenizer"), "config.json"),
        *fixture::weights("audio_tokenizer"), forms, threads};
    AudioDetokenizer detokenizer{
        parse_audio_detokenizer_config(fixture::config_text("audio_token_detokenizer"), "config.json"),
        *fixture::weights("audio_token_detokenizer"), forms, threads};
  };
  static Parts& parts() {
    static Parts parts;
    return parts;
  }

  AudioTokenizer& tokenizer_ = parts().tokenizer;
  AudioDetokenizer& detokenizer_ = parts().detokenizer;
};

TEST_F(AudioTokens, CodesEqualTheAuthors) {
  const std::vector<float> latents = fixture::answer("e.src_latents");
  EXPECT_EQ(tokenizer_.encode(latents, fixture::silence(5)), recorded_codes());
}

TEST_F(AudioTokens, AWindowThatIsNotWholeIsFilledWithSilence) {
  const std::vector<float> latents = fixture::answer("e.src_latents");
  const std::vector<float> silence = fixture::silence(4);
  for (std::size_t frames = 46; frames < 50; ++frames) {
    const std::span<const float> cut = std::span(latents).first(frames * 64);
    std::vector<float> filled(cut.begin(), cut.end());
    filled.insert(filled.end(), silence.begin(),
                  silence.begin() + static_cast<std::ptrdiff_t>((50 - frames) * 64));
    EXPECT_EQ(tokenizer_.encode(cut, silence), tokenizer_.encode(filled, silence)) << frames;
  }
  EXPECT_THROW(tokenizer_.encode(std::span(latents).first(46 * 64), std::span(silence).first(3 * 64)), Error);
}

TEST_F(AudioTokens, AWindowsCodeIsItsOwn) {
  const std::vector<float> latents = fixture::answer("e.src_latents");
  const std::vector<std::int32_t> together = tokenizer_.encode(latents, fixture::silence(5));
  for (std::size_t i = 0; i < together.size(); ++i) {
    const auto window = std::span(latents).subspan(i * 5 * 64, 5 * 64);
    EXPECT_EQ(tokenizer_.encode(window, fixture::silence(5)), std::vector{together[i]}) << i;
  }
}

TEST(Quantizer, EveryCodeIsTheNearestToWhatStandsForIt) {
  // Projections that do nothing, and values taken back through the soft bound that comes before rounding.
  const AudioTokenConfig config{
      .stack = {}, .latent_width = 64, .pool_window = 5, .code_width = 3, .levels = {8, 5, 3}};
  const std::vector<float> identity = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const std::vector<float> zeros(3);
  MemoryTensors tensors;
  tensors.add("q.project_in.weight", {3, 3}, identity);
  tensors.add("q.project_in.bias", {3}, zeros);
  tensors.add("q.project_out.weight", {3, 3}, identity);
  tensors.add("q.project_out.bias", {3}, zeros);
  const Quantizer quantizer(config, tensors, "q.");
  ASSERT_EQ(quantizer.codebook_size(), 120);
  std::vector<std::int32_t> codes(120);
  std::iota(codes.begin(), codes.end(), 0);
  std::vector<float> rows = quantizer.embed(codes);
  EXPECT_EQ(std::vector(rows.begin(), rows.begin() + 3), (std::vector<float>{-1, -1, -1}));
  EXPECT_EQ(std::vector(rows.end() - 3, rows.end()), (std::vector<float>{1, 1, 1}));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const float bound = 1.0f + 1.0f / static_cast<float>(config.levels[i % 3] - 1);
    rows[i] = bound * std::atanh(rows[i] / bound);
  }
  EXPECT_EQ(quantizer.quantize(rows), codes);
  // Beyond the ends there is no further code.
  EXPECT_EQ(quantizer.quantize(std::vector<float>{-99, 99, 99}), std::vector<std::int32_t>{112});
}

TEST_F(AudioTokens, RefusesCodesThatThereAreNot) {
  EXPECT_EQ(tokenizer_.quantizer().codebook_size(), 64000);
  EXPECT_THROW(tokenizer_.quantizer().embed(std::vector<std::int32_t>{0, 64000}), Error);
  EXPECT_THROW(tokenizer_.quantizer().embed(std::vector<std::int32_t>{-1}), Error);
}

TEST_F(AudioTokens, ManyCodesDecodeAsEachAlone) {
  // More than are run at once.
  std::vector<std::int32_t> codes(300);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::int32_t>(i * 211 % 64000);
  const std::vector<float> rows = tokenizer_.quantizer().embed(codes);
  const std::vector<float> together = detokenizer_.decode(rows);
  ASSERT_EQ(together.size(), 300u * 5 * 64);
  for (const std::size_t i : {0u, 1u, 255u, 256u, 299u}) {
    const std::vector<float> alone = detokenizer_.decode(std::span(rows).subspan(i * 256, 256));
    EXPECT_TRUE(
        std::equal(alone.begin(), alone.end(), together.begin() + static_cast<std::ptrdiff_t>(i * 320)))
        << i;
  }
}

TEST_F(AudioTokens, RefusesWhatDoesNotFit) {
  EXPECT_THROW(tokenizer_.encode({}, fixture::silence(5)), Error);
  EXPECT_THROW(detokenizer_.decode(std::vector<float>(255)), Error);
  EXPECT_THROW(detokenizer_.decode({}), Error);
}

TEST_F(AudioTokens, StopOnRequest) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(tokenizer_.encode(fixture::silence(5), fixture::silence(5), stop.get_token()), Error);
  EXPECT_THROW(detokenizer_.decode(std::vector<float>(256), stop.get_token()), Error);
}

}  // namespace
}  // namespace assay::music
