#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"
#include "formats/safetensors.hpp"
#include "formats/tests/support.hpp"
#include "lab/gate/execute.hpp"
#include "lab/gate/music_subject.hpp"
#include "lab/gate/run_gate.hpp"
#include "lab/gate/sweep.hpp"

namespace assay::lab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::filesystem::path music_data(const std::string& name) {
  return std::filesystem::path(ASSAY_TEST_DATA) / name;
}

/// One song, so that the test is quick: the whole fixture is run end to end.
MusicFixture one_song(std::size_t index) {
  MusicFixture fixture = read_music_fixture(music_data("ace-tiny.fixture.json"));
  fixture.cases = {fixture.cases[index]};
  return fixture;
}

/// The recorded songs whose ids are these, as a fixture of their own.
std::filesystem::path some_songs(const TemporaryDirectory& folder, const std::string& ids) {
  const auto whole = music_data("ace-tiny.fixture.safetensors");
  auto document = nlohmann::ordered_json::parse(read_text_file(music_data("ace-tiny.fixture.json")));
  auto& cases = document["cases"];
  const auto is_left_out = [&](const auto& song) {
    return ids.find(song["id"].template get<std::string>()) == std::string::npos;
  };
  cases.erase(std::remove_if(cases.begin(), cases.end(), is_left_out), cases.end());
  std::vector<formats::test::Tensor> tensors;
  const auto source = formats::open_safetensors(whole);
  for (const std::string& name : source->names()) {
    if (ids.find(name.front()) == std::string::npos) continue;
    const formats::TensorInfo& info = *source->find(name);
    const auto bytes = source->stored_bytes(name);
    tensors.push_back({name, info.type == DType::i32 ? "I32" : "F32", info.shape,
                       std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
  }
  folder.write("songs.safetensors", formats::test::safetensors(tensors));
  return folder.write("songs.json", document.dump());
}

SweepPlan music_sweep(const std::filesystem::path& songs, ops::Precision precision) {
  SweepPlan plan;
  plan.gates = {read_gate_file(music_data("../../lab/gates/music-fp32.json")),
                read_gate_file(music_data("../../lab/gates/music-bf16.json"))};
  plan.pairs = {{music_data("ace-tiny"), songs}};
  plan.precisions = {precision};
  return plan;
}

TEST(MusicSweep, HasARowForEveryFormWithItsRedArms) {
  const TemporaryDirectory folder;
  SweepPlan plan = music_sweep(some_songs(folder, "b"), ops::Precision::fp32);
  for (GateFile& gate : plan.gates) gate.red_arms = {{"wrong_seed", 0}, {"shifted_window", 0.1}};
  plan.vary = {"snake", "gated_delta_rule"};
  const SweepReport report = sweep(plan, nullptr);
  ASSERT_EQ(report.rows.size(), ops::snake_forms().size() + 1);
  EXPECT_TRUE(report.pass()) << receipt_result(report).dump(1);
  EXPECT_THAT(report.rows[0].not_run, HasSubstr("runs gated_delta_rule"));
  EXPECT_EQ(report.rows[1].form, "snake=reference");
  EXPECT_EQ(report.rows[1].comparator, "audio");
  ASSERT_EQ(report.rows[1].report->red_arms.size(), 2u);
  for (const ArmReport& arm : report.rows[1].report->red_arms) EXPECT_EQ(arm.outcome, ArmOutcome::red);
  const auto subject = receipt_subject(report);
  ASSERT_EQ(subject["fixtures"].size(), 1u);
  EXPECT_EQ(subject["fixtures"][0]["fixture"], "songs.json");
  EXPECT_THAT(to_html(report), HasSubstr("snake=vector"));
}

TEST(MusicSweep, FixturesGoToTheGatesOfTheirKind) {
  const TemporaryDirectory folder;
  SweepPlan plan = music_sweep(some_songs(folder, "c"), ops::Precision::bf16);
  for (GateFile& gate : plan.gates) gate.red_arms.clear();  // one song has no others to swap words with
  plan.gates.push_back(read_gate_file(music_data("../../lab/gates/taps-fp32.json")));
  plan.pairs.push_back(
      {music_data("kev-tiny-dense/run"), music_data("kev-tiny-dense.fixture.taps.safetensors")});
  plan.precisions.push_back(ops::Precision::fp32);
  const SweepReport report = sweep(plan, nullptr);
  std::vector<std::string> rows;
  for (const SweepRow& row : report.rows) rows.push_back(row.gate + " " + row.fixture);
  EXPECT_THAT(rows, ElementsAre("music-fp32 songs.json", "music-bf16 songs.json",
                                "taps-fp32 kev-tiny-dense.fixture.taps.safetensors"));
  EXPECT_TRUE(report.pass()) << receipt_result(report).dump(1);
}

TEST(MusicSweep, WhatCannotRunIsFoundBeforeTheFirstRow) {
  const TemporaryDirectory folder;
  SweepPlan plan = music_sweep(music_data("ace-tiny.fixture.json"), ops::Precision::fp32);
  const auto no_row = [](SweepRow&, std::size_t, std::size_t) { FAIL() << "a row ran"; };
  plan.base = music_data("kev-tiny-dense/base");
  expect_error(ErrorKind::invalid_argument, "a base for a music model", [&] { sweep(plan, no_row); });
  plan.base.reset();
  plan.pairs = {{folder.path(), music_data("ace-tiny.fixture.json")}};
  EXPECT_THROW(sweep(plan, no_row), Error);
  plan.pairs = {{music_data("ace-tiny"), folder / "none.json"}};
  expect_error(ErrorKind::missing, "none.json", [&] { sweep(plan, no_row); });
}

TEST(MusicGate, ASongIsTheOraclesStageByStage) {
  const MusicFixture fixture = one_song(1);
  MusicSubject subject(music::Checkpoint::open(music_data("ace-tiny")), fixture,
                       ops::select_forms(ops::Precision::fp32, {}), ops::Precision::fp32, 0);
  const GateReport report = run_gate(default_music_gate(ops::Precision::fp32, false), subject);
  EXPECT_TRUE(report.pass()) << to_text(report);
  const auto& arrays = report.verdict.measures["arrays_by_name"];
  EXPECT_EQ(arrays.size(), fixture.cases[0].stages.size());
  EXPECT_TRUE(arrays["b.wav"].contains("nrmse_per_second"));
  EXPECT_THAT(to_text(report), HasSubstr("b.velocity_first"));
}

TEST(MusicGate, AFixtureOfAnotherModelIsRefused) {
  MusicFixture fixture = one_song(0);
  fixture.cases[0].text_ids[3] += 1;
  expect_error(ErrorKind::mismatch, "others from number 3 on", [&] {
    MusicSubject(music::Checkpoint::open(music_data("ace-tiny")), fixture,
                 ops::select_forms(ops::Precision::fp32, {}), ops::Precision::fp32, 0);
  });
}

TEST(MusicGate, WordsCannotBeSwappedWhereThereIsOneSong) {
  const MusicFixture fixture = one_song(0);
  MusicSubject subject(music::Checkpoint::open(music_data("ace-tiny")), fixture,
                       ops::select_forms(ops::Precision::fp32, {}), ops::Precision::fp32, 0);
  expect_error(ErrorKind::invalid_argument, "the same words",
               [&] { subject.run_changed(0, input_arm::kSwappedConditions); });
  expect_error(ErrorKind::unsupported, "swapped_states",
               [&] { subject.run_changed(0, input_arm::kSwappedStates); });
}

}  // namespace
}  // namespace assay::lab
