#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/tests/expect_error.hpp"
#include "lab/gate/execute.hpp"
#include "lab/gate/music_subject.hpp"
#include "lab/gate/run_gate.hpp"

namespace assay::lab {
namespace {

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
