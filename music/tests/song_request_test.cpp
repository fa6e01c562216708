#include "music/song_request.hpp"

#include <cmath>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "base/tests/expect_error.hpp"

namespace assay::music {
namespace {

DitConfig turbo() {
  DitConfig config;
  config.turbo = true;
  return config;
}

audio::Sound two_seconds() {
  return {std::vector<float>(2 * 96000)};
}

SongRequest simple() {
  SongRequest request;
  request.prompt = "calm piano";
  return request;
}

SongRequest repaint() {
  SongRequest request = simple();
  request.task = Task::repaint;
  request.source = two_seconds();
  return request;
}

TEST(SongRequest, DefaultsFollowTheCheckpoint) {
  const SongPlan plan = plan_request(simple(), turbo());
  EXPECT_EQ(plan.timesteps, schedule(8, 3.0f));
  EXPECT_EQ(plan.guidance, 1.0f);
  EXPECT_EQ(plan.seconds, 60.0);
  const SongPlan base = plan_request(simple(), DitConfig{});
  EXPECT_EQ(base.timesteps, schedule(50, 1.0f));
  EXPECT_EQ(base.guidance, 7.0f);
}

TEST(SongRequest, CodesMakeACoverAndSetTheLength) {
  SongRequest request = simple();
  request.codes = {1, 2, 3};
  const SongPlan plan = plan_request(request, turbo());
  EXPECT_EQ(plan.task, Task::cover);
  EXPECT_EQ(plan.seconds, std::nullopt);
}

TEST(SongRequest, EveryBadValueIsNamed) {
  struct Case {
    const char* field;
    std::function<void(SongRequest&)> spoil;
  };
  const Case cases[] = {
      {"prompt", [](auto& r) { r.prompt = " \n"; }},
      {"language", [](auto& r) { r.language = ""; }},
      {"language", [](auto& r) { r.language = "en\n# Lyric"; }},
      {"language", [](auto& r) { r.language = "EN"; }},
      {"key", [](auto& r) { r.key_scale = std::string(100, 'C'); }},
      {"key", [](auto& r) { r.key_scale = "H minor"; }},
      {"key", [](auto& r) { r.key_scale = "C"; }},
      {"time signature", [](auto& r) { r.time_signature = "4/4"; }},
      {"bpm", [](auto& r) { r.bpm = 0; }},
      {"bpm", [](auto& r) { r.bpm = 5000; }},
      {"duration", [](auto& r) { r.duration = 0; }},
      {"duration", [](auto& r) { r.duration = -3; }},
      {"duration", [](auto& r) { r.duration = 600.5; }},
      {"duration", [](auto& r) { r.duration = NAN; }},
      {"duration",
       [](auto& r) {
         r.duration = 5;
         r.codes = {1};
       }},
      {"seeds", [](auto& r) { r.seeds.clear(); }},
      {"noise", [](auto& r) { r.noise.resize(2); }},
      {"steps", [](auto& r) { r.steps = 0; }},
      {"shift", [](auto& r) { r.shift = -1.0f; }},
      {"shift", [](auto& r) { r.shift = 1e-30f; }},
      {"shift", [](auto& r) { r.shift = 1e30f; }},
      {"guidance from, to", [](auto& r) { r.guidance_from = 0.5f; }},
      {"repaint injection, fade", [](auto& r) { r.repaint_injection = 0.3f; }},
      {"repaint injection, fade", [](auto& r) { r.repaint_fade = 3; }},
      {"repaint injection, fade", [](auto& r) { r.repaint_fade.reset(); }},
      {"timesteps",
       [](auto& r) {
         r.timesteps = {0.5f};
         r.steps = 4;
       }},
      {"timesteps",
       [](auto& r) {
         r.timesteps = {0.5f, 0.7f};
       }},
      {"dcw",
       [](auto& r) {
         r.dcw = Dcw{2.0f, 0.0f};
       }},
      {"guidance", [](auto& r) { r.guidance = 4.0f; }},
      {"guidance from",
       [](auto& r) {
         r.guidance_from = 0.9f;
         r.guidance_to = 0.1f;
       }},
      {"codes",
       [](auto& r) {
         r.task = Task::cover;
         r.source = two_seconds();
         r.codes = {1};
       }},
      {"source", [](auto& r) { r.source = two_seconds(); }},
      {"task", [](auto& r) { r.task = Task::repaint; }},
      {"task", [](auto& r) { r.task = Task::cover; }},
      {"from, to", [](auto& r) { r.repaint_from = 1; }},
      {"from",
       [](auto& r) {
         r = repaint();
         r.repaint_from = 2;
       }},
      {"from",
       [](auto& r) {
         r = repaint();
         r.repaint_from = -1;
       }},
      {"to",
       [](auto& r) {
         r = repaint();
         r.repaint_from = 1;
         r.repaint_to = 0.5;
       }},
      {"to",
       [](auto& r) {
         r = repaint();
         r.repaint_to = 2.5;
       }},
      {"repaint injection",
       [](auto& r) {
         r = repaint();
         r.repaint_injection = 1.5f;
       }},
      {"cover strength", [](auto& r) { r.cover_strength = 0.5f; }},
      {"cover strength",
       [](auto& r) {
         r.task = Task::cover;
         r.codes = {1};
         r.cover_strength = -0.5f;
       }},
      {"cover noise",
       [](auto& r) {
         r.task = Task::cover;
         r.codes = {1};
         r.cover_noise = 0.5f;
       }},
  };
  for (const Case& c : cases) {
    SongRequest request = simple();
    c.spoil(request);
    expect_error(ErrorKind::invalid_argument, c.field, [&] { plan_request(request, turbo()); });
  }
}

TEST(SongRequest, CodesAreTokensOrNumbers) {
  const std::vector<std::int32_t> expected = {0, 63999, 7};
  EXPECT_EQ(parse_codes("<|audio_code_0|><|audio_code_63999|><|audio_code_7|>", "codes"), expected);
  EXPECT_EQ(parse_codes(" 0, 63999\n7 ", "codes"), expected);
  EXPECT_EQ(parse_codes("0<|audio_code_63999|> 7", "codes"), expected);
  for (const char* bad :
       {"", " ", "x", "1 -2", "<|audio_code_|>", "<|audio_code_5", "99999999999", "1.5", "3x"}) {
    expect_error(ErrorKind::invalid_argument, "--codes", [&] { parse_codes(bad, "--codes"); });
  }
}

}  // namespace
}  // namespace assay::music
