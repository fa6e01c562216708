#include "music/dit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "music/audio_tokens.hpp"
#include "music/sampler.hpp"
#include "music/tests/ace_fixture.hpp"

namespace assay::music {
namespace {

constexpr std::size_t kLatent = 64;

/// What one case gives the DiT.
struct DitCase {
  std::vector<float> context;
  std::vector<float> noise;
  std::vector<float> condition;
  std::vector<float> times;
};

/// Source latents and their mask side by side.
std::vector<float> join_context(const std::vector<float>& source, const std::vector<float>& mask) {
  std::vector<float> rows;
  for (std::size_t frame = 0; frame < mask.size(); ++frame) {
    const auto begin = source.begin() + static_cast<std::ptrdiff_t>(frame * kLatent);
    rows.insert(rows.end(), begin, begin + kLatent);
    rows.insert(rows.end(), kLatent, mask[frame]);
  }
  return rows;
}

class DitTest : public testing::Test {
 protected:
  /// Source latents as the pipeline prepares them for each task.
  std::vector<float> source_latents(const std::string& id, std::size_t frames, std::vector<float>& mask) {
    if (id == "d" || id == "f") {
      const auto tokenizer_weights = fixture::weights("audio_tokenizer");
      AudioTokenizer tokenizer(
          parse_audio_tokenizer_config(fixture::config_text("audio_tokenizer"), "config.json"),
          *tokenizer_weights, forms_, threads_);
      const std::vector<std::int32_t> codes =
          id == "d" ? std::vector<std::int32_t>{0, 63999, 12345, 777, 40000, 31, 63999}
                    // Both have the same source.
                    : tokenizer.encode(fixture::answer("e.src_latents"), fixture::silence(5));
      const auto weights = fixture::weights("audio_token_detokenizer");
      AudioDetokenizer detokenizer(
          parse_audio_detokenizer_config(fixture::config_text("audio_token_detokenizer"), "config.json"),
          *weights, forms_, threads_);
      return detokenizer.decode(tokenizer.quantizer().embed(codes));
    }
    std::vector<float> latents = fixture::silence(frames);
    if (id == "e") {
      // From 0.5 s to 1.2 s is painted anew.
      const std::vector<float> source = fixture::answer("e.src_latents");
      for (std::size_t frame = 0; frame < frames; ++frame) {
        if (frame >= 12 && frame < 30) continue;
        mask[frame] = 0;
        std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(frame * kLatent), kLatent,
                    latents.begin() + static_cast<std::ptrdiff_t>(frame * kLatent));
      }
    }
    return latents;
  }

  DitCase make_case(const std::string& id) {
    const nlohmann::json& record = fixture::record(id);
    DitCase result;
    result.noise = fixture::answer(id + ".noise");
    std::vector<float> mask(result.noise.size() / kLatent, 1.0f);
    const std::vector<float> source = source_latents(id, mask.size(), mask);
    result.context = join_context(source, mask);
    result.condition = fixture::answer(id + ".condition");
    result.times = schedule(record["steps"].get<std::size_t>(), record.value("shift", 3.0f));
    return result;
  }

  /// Loaded once for all tests.
  static Dit& shared_dit() {
    static device::ThreadPool threads(2);
    static Dit dit(parse_dit_config(fixture::config_text("transformer"), "config.json"),
                   *fixture::weights("transformer"), ops::select_forms(ops::Precision::fp32), threads);
    return dit;
  }

  static std::vector<float> run_alone(Dit& dit, const DitCase& input, const std::vector<float>& noisy,
                                      float t) {
    const PreparedCondition condition = dit.prepare(input.condition);
    std::vector<float> velocity(noisy.size());
    dit.velocity(t, t, std::vector<DitSong>{{input.context, noisy, &condition, velocity}});
    return velocity;
  }

  /// Errors of the first and of the last velocity. x at the last step follows from what is recorded: the last
  /// step gives x − t·v.
  void expect_velocities(Dit& dit, const std::string& id, double bound) {
    const DitCase input = make_case(id);
    const std::vector<float> first = run_alone(dit, input, input.noise, input.times.front());
    EXPECT_LE(fixture::nrmse(fixture::answer(id + ".velocity_first"), first), bound) << id;
    const std::vector<float> recorded = fixture::answer(id + ".velocity_last");
    std::vector<float> x = fixture::answer(id + ".latents");
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += input.times.back() * recorded[i];
    const std::vector<float> last = run_alone(dit, input, x, input.times.back());
    EXPECT_LE(fixture::nrmse(recorded, last), bound) << id;
  }

  device::ThreadPool threads_{2};
  ops::Selection forms_ = ops::select_forms(ops::Precision::fp32);
  DitConfig config_ = parse_dit_config(fixture::config_text("transformer"), "config.json");
  std::shared_ptr<const formats::TensorSource> weights_ = fixture::weights("transformer");
};

TEST_F(DitTest, VelocitiesEqualTheAuthorsInEveryCase) {
  Dit& dit = shared_dit();
  for (const std::string id : fixture::kCases) expect_velocities(dit, id, 1e-5);
}

TEST_F(DitTest, VelocitiesStayCloseInBf16) {
  Dit dit(config_, *weights_, ops::select_forms(ops::Precision::bf16), threads_);
  for (const std::string id : {"a", "b"}) expect_velocities(dit, id, 0.02);
}

TEST_F(DitTest, AllStepsEndAtTheAuthorsLatents) {
  Dit& dit = shared_dit();
  const DitCase input = make_case("b");
  const PreparedCondition condition = dit.prepare(input.condition);
  std::vector<float> x = input.noise;
  std::vector<float> velocity(x.size());
  for (std::size_t step = 0; step < input.times.size(); ++step) {
    const float t = input.times[step];
    dit.velocity(t, t, std::vector<DitSong>{{input.context, x, &condition, velocity}});
    const float next = step + 1 < input.times.size() ? input.times[step + 1] : 0.0f;
    euler_step(x, velocity, kLatent, t, next, std::nullopt);
  }
  EXPECT_LE(fixture::nrmse(fixture::answer("b.latents"), x), 1e-5);
}

TEST_F(DitTest, SongsOfOnePassAreTheSongsAlone) {
  Dit& dit = shared_dit();
  std::vector<DitCase> inputs;
  std::vector<PreparedCondition> conditions;
  std::vector<std::vector<float>> velocities;
  for (const std::string id : {"b", "a", "c"}) {
    inputs.push_back(make_case(id));
    conditions.push_back(dit.prepare(inputs.back().condition));
    velocities.emplace_back(inputs.back().noise.size());
  }
  std::vector<DitSong> songs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    songs.push_back({inputs[i].context, inputs[i].noise, &conditions[i], velocities[i]});
  }
  dit.velocity(0.75f, 0.75f, songs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(velocities[i], run_alone(dit, inputs[i], inputs[i].noise, 0.75f)) << i;
  }
}

TEST_F(DitTest, ThreadsChangeNoBit) {
  device::ThreadPool one(1);
  device::ThreadPool three(3);
  const DitCase input = make_case("c");
  for (const ops::Precision precision : {ops::Precision::fp32, ops::Precision::bf16}) {
    Dit alone(config_, *weights_, ops::select_forms(precision), one);
    Dit together(config_, *weights_, ops::select_forms(precision), three);
    EXPECT_EQ(run_alone(alone, input, input.noise, 0.9f), run_alone(together, input, input.noise, 0.9f));
  }
}

TEST_F(DitTest, ANewTimeChangesTheVelocityAndAnOldOneGivesTheSameBits) {
  Dit& dit = shared_dit();
  const DitCase input = make_case("b");
  const PreparedCondition condition = dit.prepare(input.condition);
  const auto at = [&](float t, float r) {
    std::vector<float> velocity(input.noise.size());
    dit.velocity(t, r, std::vector<DitSong>{{input.context, input.noise, &condition, velocity}});
    return velocity;
  };
  const std::vector<float> first = at(0.9f, 0.9f);
  EXPECT_NE(first, at(0.5f, 0.5f));
  EXPECT_NE(first, at(0.9f, 0.5f));
  EXPECT_EQ(first, at(0.9f, 0.9f));
}

TEST_F(DitTest, AShortSongAndEveryOddLengthRun) {
  Dit& dit = shared_dit();
  DitCase input = make_case("c");
  for (const std::size_t frames : {1u, 2u, 3u, 31u, 32u, 33u}) {
    DitCase cut = input;
    cut.context.resize(frames * 128);
    cut.noise.resize(frames * kLatent);
    const std::vector<float> velocity = run_alone(dit, cut, cut.noise, 1.0f);
    // The padding that the authors' pipeline adds is a frame of zeros whose velocity is cut off.
    DitCase padded = cut;
    padded.context.resize((frames + frames % 2) * 128);
    padded.noise.resize((frames + frames % 2) * kLatent);
    std::vector<float> expected = run_alone(dit, padded, padded.noise, 1.0f);
    expected.resize(frames * kLatent);
    EXPECT_EQ(velocity, expected) << frames;
  }
}

TEST_F(DitTest, RefusesPartsThatDoNotFit) {
  Dit& dit = shared_dit();
  const DitCase input = make_case("b");
  const PreparedCondition condition = dit.prepare(input.condition);
  std::vector<float> velocity(input.noise.size());
  const DitSong good{input.context, input.noise, &condition, velocity};
  const auto run = [&](DitSong song) { dit.velocity(1, 1, std::vector<DitSong>{song}); };
  EXPECT_NO_THROW(run(good));
  DitSong bad = good;
  bad.context = bad.context.subspan(1);
  EXPECT_THROW(run(bad), Error);
  bad = good;
  bad.velocity = bad.velocity.subspan(1);
  EXPECT_THROW(run(bad), Error);
  bad = good;
  bad.condition = nullptr;
  EXPECT_THROW(run(bad), Error);
  EXPECT_THROW(run({.condition = &condition}), Error);
  EXPECT_THROW(dit.prepare({}), Error);
  EXPECT_THROW(dit.prepare(std::span(input.condition).first(255)), Error);
  EXPECT_NO_THROW(dit.velocity(1, 1, {}));
}

TEST_F(DitTest, AVelocityThatIsNoNumberIsAnErrorThatSaysWhere) {
  Dit& dit = shared_dit();
  DitCase input = make_case("b");
  const DitCase mate = make_case("a");
  input.noise[5] = std::numeric_limits<float>::infinity();
  const PreparedCondition condition = dit.prepare(input.condition);
  std::vector<float> velocity(input.noise.size());
  std::vector<float> other(mate.noise.size());
  try {
    dit.velocity(0.5f, 0.5f,
                 std::vector<DitSong>{{mate.context, mate.noise, &condition, other},
                                      {input.context, input.noise, &condition, velocity}});
    FAIL() << "an infinity went through";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::non_finite);
    EXPECT_NE(error.parts().where.find("song 1"), std::string::npos) << error.what();
    EXPECT_NE(error.parts().where.find("0.5"), std::string::npos) << error.what();
  }
}

TEST_F(DitTest, StopsOnRequestWhileItLoadsPreparesAndRuns) {
  Dit& dit = shared_dit();
  const DitCase input = make_case("b");
  const PreparedCondition condition = dit.prepare(input.condition);
  std::vector<float> velocity(input.noise.size());
  std::stop_source stop;
  stop.request_stop();
  const std::stop_token token = stop.get_token();
  const auto expect_stop = [](const std::function<void()>& body) {
    try {
      body();
      ADD_FAILURE() << "it went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::cancelled);
      EXPECT_EQ(error.parts().where, "DiT");
    }
  };
  expect_stop([&] { const Dit unfinished(config_, *weights_, forms_, threads_, nullptr, token); });
  expect_stop([&] { dit.prepare(input.condition, token); });
  expect_stop([&] {
    dit.velocity(1, 1, std::vector<DitSong>{{input.context, input.noise, &condition, velocity}}, token);
  });
}

TEST_F(DitTest, ALongSongIsTheSameWhereverItsPiecesBegin) {
  // More rows than attend to everything at once, and than the feed-forward takes at once.
  Dit& dit = shared_dit();
  const std::size_t frames = 2070;
  DitCase input = make_case("b");
  std::vector<float> context;
  std::vector<float> noise;
  while (noise.size() < frames * kLatent) {
    context.insert(context.end(), input.context.begin(), input.context.end());
    noise.insert(noise.end(), input.noise.begin(), input.noise.end());
  }
  context.resize(frames * 2 * kLatent);
  noise.resize(frames * kLatent);
  const PreparedCondition condition = dit.prepare(input.condition);
  std::vector<float> alone(noise.size());
  dit.velocity(1, 1, std::vector<DitSong>{{context, noise, &condition, alone}});
  // Behind another song the same rows fall into other pieces.
  std::vector<float> behind(noise.size());
  std::vector<float> mate(input.noise.size());
  dit.velocity(1, 1,
               std::vector<DitSong>{{input.context, input.noise, &condition, mate},
                                    {context, noise, &condition, behind}});
  EXPECT_EQ(alone, behind);
}

}  // namespace
}  // namespace assay::music
