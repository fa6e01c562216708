#include "lab/music_fixture.hpp"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::lab {
namespace {

using Shape = std::vector<std::size_t>;

std::filesystem::path recorded_songs() {
  return std::filesystem::path(ASSAY_TEST_DATA) / "ace-tiny.fixture.json";
}

nlohmann::json small_case() {
  return {{"id", "x"},          {"prompt", "p"},    {"lyrics", ""},       {"vocal_language", "en"},
          {"latent_frames", 2}, {"steps", 8},       {"text_ids", {1, 2}}, {"lyric_ids", {3}},
          {"text", "t"},        {"lyric_text", "l"}};
}

std::map<std::string, Shape> small_tensors() {
  return {{"x.noise", {2, 4}},         {"x.condition", {4, 8}}, {"x.velocity_first", {2, 4}},
          {"x.velocity_last", {2, 4}}, {"x.latents", {2, 4}},   {"x.wav", {2, 6}}};
}

/// A fixture of the form, with tensors of zeros.
class MusicFixtures : public testing::Test {
 protected:
  std::filesystem::path write(const nlohmann::json& song, const std::map<std::string, Shape>& tensors) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    std::size_t offset = 0;
    for (const auto& [name, shape] : tensors) {
      std::size_t bytes = sizeof(float);
      for (const std::size_t size : shape) bytes *= size;
      header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
      offset += bytes;
    }
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    std::string file(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    folder_.write("f.safetensors", file + text + std::string(offset, '\0'));
    return folder_.write("f.json", nlohmann::json{{"model", "m"}, {"cases", {song}}}.dump());
  }

  void expect_bad(ErrorKind kind, const std::string& part, const std::function<void(nlohmann::json&)>& change,
                  const std::map<std::string, Shape>& tensors = small_tensors()) {
    nlohmann::json song = small_case();
    change(song);
    SCOPED_TRACE(song.dump());
    const auto path = write(song, tensors);
    expect_error(kind, part, [&] { read_music_fixture(path); });
  }

  TemporaryDirectory folder_;
};

TEST_F(MusicFixtures, TheRecordedSongsAreRead) {
  const MusicFixture fixture = read_music_fixture(recorded_songs());
  ASSERT_EQ(fixture.cases.size(), 6u);
  EXPECT_EQ(fixture.model, "ace-tiny");
  EXPECT_EQ(fixture.sha256.size(), 64u);
  const MusicCase& first = fixture.cases[0];
  EXPECT_EQ(first.bpm, 96u);
  EXPECT_EQ(first.stages.front(), "text_hidden");
  EXPECT_EQ(first.stages.back(), "wav");
  EXPECT_EQ(fixture.shape(first, "wav"), (Shape{2, 96000}));
  EXPECT_EQ(fixture.cases[2].steps, 4u);
  EXPECT_EQ(fixture.cases[4].task, music::Task::repaint);
  EXPECT_EQ(fixture.cases[4].repaint_to, 1.2);
  const std::vector<float> codes = fixture.values(fixture.cases[4], "codes");
  EXPECT_EQ(codes.size(), 10u);
  for (const float code : codes) EXPECT_EQ(code, std::floor(code));
}

TEST_F(MusicFixtures, AnyCaseOfTheFormIsRead) {
  const MusicFixture fixture = read_music_fixture(write(small_case(), small_tensors()));
  EXPECT_EQ(fixture.cases[0].stages.size(), 5u);
  EXPECT_EQ(fixture.values(fixture.cases[0], "latents"), std::vector<float>(8));
}

TEST_F(MusicFixtures, ItsNameIsOfTheBytesOfBothFiles) {
  auto song = small_case();
  const std::string sha256 = read_music_fixture(write(song, small_tensors())).sha256;
  song["prompt"] = "q";
  EXPECT_NE(read_music_fixture(write(song, small_tensors())).sha256, sha256);
  auto tensors = small_tensors();
  tensors["x.text_hidden"] = {2, 4};
  EXPECT_NE(read_music_fixture(write(small_case(), tensors)).sha256, sha256);
}

TEST_F(MusicFixtures, WhatIsUnknownAbsentOrOutOfRangeIsRefusedByField) {
  using Json = nlohmann::json;
  const auto malformed = [&](const std::string& part, const std::function<void(Json&)>& change) {
    expect_bad(ErrorKind::malformed, part, change);
  };
  malformed("unknown field 'guidance'", [](Json& song) { song["guidance"] = 3; });
  malformed("no field 'prompt'", [](Json& song) { song.erase("prompt"); });
  malformed("latent_frames", [](Json& song) { song["latent_frames"] = 0; });
  malformed("audio_duration", [](Json& song) { song["audio_duration"] = 601; });
  malformed("text_ids", [](Json& song) { song["text_ids"] = Json::array(); });
  malformed("the 4 asked for", [](Json& song) { song["num_inference_steps"] = 4; });
  malformed("without a dot", [](Json& song) { song["id"] = "x.y"; });
  expect_bad(ErrorKind::invalid_argument, "task_type", [](Json& song) { song["task_type"] = "remix"; });
}

TEST_F(MusicFixtures, TensorsThatDoNotFitTheCaseAreRefusedByName) {
  const auto change_tensors = [&](ErrorKind kind, const std::string& part,
                                  const std::function<void(std::map<std::string, Shape>&)>& change) {
    auto tensors = small_tensors();
    change(tensors);
    expect_bad(
        kind, part, [](nlohmann::json&) {}, tensors);
  };
  change_tensors(ErrorKind::missing, "x.latents", [](auto& tensors) { tensors.erase("x.latents"); });
  change_tensors(ErrorKind::mismatch, "x.noise", [](auto& tensors) { tensors["x.noise"] = {3, 4}; });
  change_tensors(ErrorKind::mismatch, "x.velocity_last", [](auto& tensors) {
    tensors["x.velocity_last"] = {2, 5};
  });
  change_tensors(ErrorKind::mismatch, "one of timbre", [](auto& tensors) {
    tensors["x.condition"] = {3, 8};
  });
  change_tensors(ErrorKind::mismatch, "x.wav", [](auto& tensors) { tensors["x.wav"] = {2, 7}; });
  change_tensors(ErrorKind::malformed, "y.latents", [](auto& tensors) { tensors["y.latents"] = {2, 4}; });
  change_tensors(ErrorKind::malformed, "x.logits", [](auto& tensors) { tensors["x.logits"] = {1}; });
  expect_bad(ErrorKind::missing, "x.src_audio", [](nlohmann::json& song) { song["task_type"] = "cover"; });
}

}  // namespace
}  // namespace assay::lab
