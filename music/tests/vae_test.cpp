#include "music/vae.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "music/tests/ace_fixture.hpp"

namespace assay::music {
namespace {

using testing::HasSubstr;

/// Random weights of a VAE small enough to decode often: strides 2 and 4, so 8 samples a frame.
class SmallVae final : public formats::TensorSource {
 public:
  SmallVae() {
    config.audio_channels = 2;
    config.latent_width = 3;
    config.decoder_channels = 4;
    config.encoder_channels = 6;
    config.multiples = {1, 2};
    config.strides = {2, 4};
    config.sample_rate = 48000;
    add_conv("decoder.conv1", 8, 3, 7, 8);
    add_decoder_block("decoder.block.0", 8, 4, 4);
    add_decoder_block("decoder.block.1", 4, 4, 2);
    add_snake("decoder.snake1", 4);
    add_conv("decoder.conv2", 2, 4, 7, 0);
    add_conv("encoder.conv1", 6, 2, 7, 6);
    add_encoder_block("encoder.block.0", 6, 6, 2);
    add_encoder_block("encoder.block.1", 6, 12, 4);
    add_snake("encoder.snake1", 12);
    add_conv("encoder.conv2", 6, 12, 3, 6);
  }

  const formats::TensorInfo* find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second.first;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    return names;
  }
  void read_rows(std::string_view name, std::uint64_t first, std::uint64_t count,
                 std::span<float> out) const override {
    const auto& [info, values] = tensors_.find(name)->second;
    const std::size_t width = values.size() / info.shape.at(0);
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first * width), count * width, out.begin());
  }
  std::span<const std::byte> stored_bytes(std::string_view /*name*/) const override { return {}; }
  void release(std::string_view /*name*/) const override {}

  std::vector<float>& values(const std::string& name) { return tensors_.at(name).second; }
  void rename(const std::string& from, const std::string& to) {
    auto tensor = tensors_.extract(from);
    tensor.key() = to;
    tensors_.insert(std::move(tensor));
  }

  VaeConfig config;

 private:
  void add(const std::string& name, std::vector<std::uint64_t> shape, float low, float high) {
    formats::TensorInfo info{.name = name, .shape = std::move(shape), .origin = "small"};
    std::vector<float> values(formats::element_count(info));
    std::uniform_real_distribution<float> value(low, high);
    std::ranges::generate(values, [&] { return value(random_); });
    tensors_.emplace(name, std::pair(std::move(info), std::move(values)));
  }
  void add_conv(const std::string& name, std::uint64_t outer, std::uint64_t middle, std::uint64_t kernel,
                std::uint64_t bias) {
    add(name + ".weight_g", {outer, 1, 1}, 0.5f, 1);
    add(name + ".weight_v", {outer, middle, kernel}, -1, 1);
    if (bias != 0) add(name + ".bias", {bias}, -0.3f, 0.3f);
  }
  void add_snake(const std::string& name, std::uint64_t channels) {
    add(name + ".alpha", {1, channels, 1}, -0.5f, 0.5f);
    add(name + ".beta", {1, channels, 1}, -0.5f, 0.5f);
  }
  void add_units(const std::string& name, std::uint64_t channels) {
    for (const char* unit : {".res_unit1", ".res_unit2", ".res_unit3"}) {
      add_snake(name + unit + ".snake1", channels);
      add_conv(name + unit + ".conv1", channels, channels, 7, channels);
      add_snake(name + unit + ".snake2", channels);
      add_conv(name + unit + ".conv2", channels, channels, 1, channels);
    }
  }
  void add_decoder_block(const std::string& name, std::uint64_t in, std::uint64_t out, std::uint64_t stride) {
    add_snake(name + ".snake1", in);
    add_conv(name + ".conv_t1", in, out, 2 * stride, out);
    add_units(name, out);
  }
  void add_encoder_block(const std::string& name, std::uint64_t in, std::uint64_t out, std::uint64_t stride) {
    add_units(name, in);
    add_snake(name + ".snake1", in);
    add_conv(name + ".conv1", out, in, 2 * stride, out);
  }

  std::mt19937 random_{5};
  std::map<std::string, std::pair<formats::TensorInfo, std::vector<float>>, std::less<>> tensors_;
};

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> value;
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return value(random); });
  return values;
}

/// [2, n] to [n, 2].
std::vector<float> in_pairs(std::span<const float> planar) {
  const std::size_t half = planar.size() / 2;
  std::vector<float> pairs(planar.size());
  for (std::size_t i = 0; i < half; ++i) {
    pairs[2 * i] = planar[i];
    pairs[2 * i + 1] = planar[half + i];
  }
  return pairs;
}

std::vector<float> decoded(const VaeDecoder& decoder, std::span<const float> latents,
                           const VaeOptions& options = {}) {
  std::vector<float> samples;
  decoder.decode(
      latents,
      [&](std::size_t first, std::span<const float> part) {
        EXPECT_EQ(2 * first, samples.size());
        samples.insert(samples.end(), part.begin(), part.end());
      },
      options);
  return samples;
}

float largest(std::span<const float> values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::fabs(value));
  return most;
}

/// The recorded waveform is the decode over its peak, if that passes 1, then scaled to −1 dBFS.
double waveform_nrmse(const VaeDecoder& decoder, const std::string& id) {
  std::vector<float> samples = decoded(decoder, fixture::answer(id + ".latents"));
  const std::vector<float> expected = in_pairs(fixture::answer(id + ".wav"));
  EXPECT_NEAR(largest(samples), fixture::record(id)["raw_peak"].get<float>(), 0.1);
  const float scale = largest(expected) / largest(samples);
  for (float& sample : samples) sample *= scale;
  return fixture::nrmse(expected, samples);
}

VaeConfig fixture_config() {
  return parse_vae_config(fixture::config_text("vae"), "config.json");
}

bool equal_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, [](float left, float right) {
    return std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right);
  });
}

template <class Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ErrorKind::internal, {}};
}

class Vae : public testing::Test {
 protected:
  VaeDecoder decoder(const formats::TensorSource& source, const VaeConfig& config,
                     ops::Precision precision = ops::Precision::fp32) {
    return {config, source, ops::select_forms(precision), threads_};
  }
  VaeDecoder small_decoder() { return decoder(small_, small_.config); }
  VaeEncoder small_encoder() {
    return {small_.config, small_, ops::select_forms(ops::Precision::fp32), threads_};
  }

  device::ThreadPool threads_{2};
  SmallVae small_;
};

// The bar for fp32 is 1e-4. The oracle sums in another order, and random weights amplify what is rounded.
TEST_F(Vae, DecodesTheFixturesLatentsToItsWaveforms) {
  const VaeDecoder vae = decoder(*fixture::weights("vae"), fixture_config());
  for (const char* id : {"b", "d"}) EXPECT_LT(waveform_nrmse(vae, id), 1e-5) << id;
}

TEST_F(Vae, DecodesInBf16WithinItsThreshold) {
  EXPECT_LT(waveform_nrmse(decoder(*fixture::weights("vae"), fixture_config(), ops::Precision::bf16), "b"),
            0.05);
}

TEST_F(Vae, EncodesTheFixturesSourceToItsLatents) {
  const auto weights = fixture::weights("vae");
  const VaeEncoder encoder(fixture_config(), *weights, ops::select_forms(ops::Precision::fp32), threads_);
  const std::vector<float> latents = encoder.encode(in_pairs(fixture::answer("e.src_audio")));
  EXPECT_LT(fixture::nrmse(fixture::answer("e.src_latents"), latents), 3e-5);
}

TEST_F(Vae, EveryFormDecodesTheSame) {
  const std::vector<float> latents = random_values(20 * 3, 1);
  const std::vector<float> expected = decoded(small_decoder(), latents);
  for (const ops::Conv1dForm& form : ops::conv1d_forms()) {
    if (!device::cpu_supports(form.info.needs)) continue;
    const std::string name(form.info.name);
    const ops::Selection selection =
        ops::select_forms(form.info.precision, {{"conv1d", name}, {"conv_transpose1d", name}});
    const VaeDecoder vae(small_.config, small_, selection, threads_);
    const bool bf16 = form.info.precision == ops::Precision::bf16;
    EXPECT_LT(fixture::nrmse(expected, decoded(vae, latents)), bf16 ? 0.05 : 1e-5) << name;
  }
}

TEST_F(Vae, WindowsGiveTheBitsOfOneWholeDecodeAroundEveryBorder) {
  const VaeDecoder vae = small_decoder();
  for (const std::size_t window : {1u, 4u, 7u}) {
    for (const std::size_t frames :
         {window, 2 * window - 1, 2 * window, 2 * window + 1, 3 * window - 1, 3 * window, 3 * window + 1}) {
      const std::vector<float> latents = random_values(frames * 3, static_cast<unsigned>(frames));
      const std::vector<float> whole = decoded(vae, latents);
      ASSERT_EQ(whole.size(), frames * 8 * 2);
      EXPECT_TRUE(equal_bits(decoded(vae, latents, {.window = window, .overlap = {}}), whole))
          << frames << " in windows of " << window;
      EXPECT_TRUE(equal_bits(decoded(vae, latents, {.window = window, .overlap = 64}), whole));
    }
  }
}

/// One frame less than what the convolutions reach, and there is a seam: the reach is no larger than it must
/// be.
TEST_F(Vae, ANarrowerOverlapLeavesASeam) {
  const VaeDecoder vae = small_decoder();
  const std::vector<float> latents = random_values(40 * 3, 2);
  const std::vector<float> whole = decoded(vae, latents);
  EXPECT_FALSE(equal_bits(decoded(vae, latents, {.window = 10, .overlap = vae.reach() - 1}), whole));
  const VaeEncoder encoder = small_encoder();
  const std::vector<float> samples = random_values(80 * 16, 3);
  EXPECT_FALSE(equal_bits(encoder.encode(samples, {.window = 20, .overlap = encoder.reach() - 1}),
                          encoder.encode(samples)));
}

TEST_F(Vae, TheReleasedStridesReachNineFrames) {
  EXPECT_EQ(decoder(*fixture::weights("vae"), fixture_config()).reach(), 9u);
}

TEST_F(Vae, WindowsGiveTheBitsOfOneWholeEncode) {
  const VaeEncoder vae = small_encoder();
  for (const std::size_t samples : {8u, 9u, 39u, 40u, 41u, 100u, 127u}) {
    const std::vector<float> pairs = random_values(samples * 2, static_cast<unsigned>(samples));
    const std::vector<float> whole = vae.encode(pairs);
    ASSERT_EQ(whole.size(), samples / 8 * 3);
    for (const std::size_t window : {1u, 5u}) {
      EXPECT_TRUE(equal_bits(vae.encode(pairs, {.window = window, .overlap = {}}), whole))
          << samples << " in windows of " << window;
    }
  }
}

TEST_F(Vae, TheBitsDoNotDependOnThreads) {
  const std::vector<float> latents = random_values(30 * 3, 4);
  const std::vector<float> two = decoded(small_decoder(), latents);
  device::ThreadPool one(1);
  const VaeDecoder vae(small_.config, small_, ops::select_forms(ops::Precision::fp32), one);
  EXPECT_TRUE(equal_bits(decoded(vae, latents), two));
}

TEST_F(Vae, EveryNameOfAFoldedWeightIsRead) {
  const std::vector<float> latents = random_values(5 * 3, 5);
  const std::vector<float> expected = decoded(small_decoder(), latents);
  small_.rename("decoder.conv1.weight_g", "decoder.conv1.parametrizations.weight.original0");
  small_.rename("decoder.conv1.weight_v", "decoder.conv1.parametrizations.weight.original1");
  EXPECT_TRUE(equal_bits(decoded(small_decoder(), latents), expected));
  small_.rename("decoder.conv2.weight_v", "decoder.conv2.weight");
  EXPECT_FALSE(equal_bits(decoded(small_decoder(), latents), expected));
}

TEST_F(Vae, ProgressRisesToOneAndAStopIsHeardBetweenOps) {
  const VaeDecoder vae = small_decoder();
  const std::vector<float> latents = random_values(12 * 3, 6);
  std::vector<double> shares;
  decoded(vae, latents,
          {.window = 4, .overlap = {}, .progress = [&](double share) { shares.push_back(share); }});
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  EXPECT_NEAR(shares.back(), 1, 1e-12);
  EXPECT_GT(shares.size(), 3 * 10u);

  std::stop_source source;
  std::size_t ops = 0;
  std::size_t windows = 0;
  const VaeOptions options{.window = 4, .overlap = {}, .stop = source.get_token(), .progress = [&](double) {
                             if (++ops == 20) source.request_stop();
                           }};
  const Error error = error_of([&] {
    vae.decode(
        latents, [&](auto, auto) { ++windows; }, options);
  });
  EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  EXPECT_EQ(ops, 20u);
  EXPECT_EQ(windows, 1u);
}

TEST_F(Vae, WhatIsNotFiniteIsNamed) {
  const VaeDecoder vae = small_decoder();
  std::vector<float> latents = random_values(12 * 3, 7);
  latents[4 * 3 + 1] = std::numeric_limits<float>::quiet_NaN();
  Error error = error_of([&] { decoded(vae, latents); });
  EXPECT_EQ(error.kind(), ErrorKind::non_finite);
  EXPECT_THAT(error.what(), HasSubstr("latent frame 4, channel 1"));
  latents[4 * 3 + 1] = 0;
  std::ranges::fill(small_.values("decoder.conv2.weight_g"), std::numeric_limits<float>::max());
  error = error_of([&] { decoded(small_decoder(), latents); });
  EXPECT_EQ(error.kind(), ErrorKind::non_finite);
  EXPECT_THAT(error.what(), HasSubstr("in sample "));

  small_.values("decoder.snake1.alpha")[2] = 200;
  error = error_of([&] { small_decoder(); });
  EXPECT_EQ(error.kind(), ErrorKind::non_finite);
  EXPECT_THAT(error.what(), HasSubstr("decoder.snake1.alpha"));
}

TEST_F(Vae, DamagedCheckpointsAreRefusedByName) {
  std::ranges::fill(small_.values("decoder.block.1.conv_t1.weight_v"), 0.0f);
  Error error = error_of([&] { small_decoder(); });
  EXPECT_EQ(error.kind(), ErrorKind::non_finite);
  EXPECT_THAT(error.what(), HasSubstr("decoder.block.1.conv_t1.weight_v"));
  small_.rename("decoder.conv2.weight_g", "elsewhere");
  small_.values("decoder.block.1.conv_t1.weight_v") = random_values(4 * 4 * 4, 8);
  error = error_of([&] { small_decoder(); });
  EXPECT_EQ(error.kind(), ErrorKind::missing);
  EXPECT_THAT(error.what(), HasSubstr("decoder.conv2.weight_g"));
  small_.config.strides = {2, 3};
  EXPECT_EQ(error_of([&] { small_encoder(); }).kind(), ErrorKind::unsupported);
  small_.config.strides = {2};
  EXPECT_EQ(error_of([&] { small_encoder(); }).kind(), ErrorKind::mismatch);
}

TEST_F(Vae, WhatIsNoWholeFrameIsRefused) {
  const VaeDecoder vae = small_decoder();
  EXPECT_EQ(error_of([&] { decoded(vae, random_values(4, 9)); }).kind(), ErrorKind::invalid_argument);
  EXPECT_EQ(error_of([&] { decoded(vae, random_values(3, 9), {.window = 0, .overlap = {}}); }).kind(),
            ErrorKind::invalid_argument);
  EXPECT_TRUE(decoded(vae, {}).empty());
  const VaeEncoder encoder = small_encoder();
  EXPECT_EQ(error_of([&] { encoder.encode(random_values(14, 9)); }).kind(), ErrorKind::invalid_argument);
  EXPECT_EQ(error_of([&] { encoder.encode(random_values(17, 9)); }).kind(), ErrorKind::invalid_argument);
}

}  // namespace
}  // namespace assay::music
