#include "lab/gate/gate_file.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/sha256.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::lab {
namespace {

/// A good gate, to be broken in one field.
nlohmann::json good() {
  return {{"schema", "assay.gate/1"},
          {"name", "g"},
          {"subject", {{"type", "op"}, {"op", "matmul"}, {"seed", 1}}},
          {"comparator", "numeric"},
          {"thresholds", {{"nrmse", 0.1}}},
          {"red_arms", {{{"arm", "scaled_output"}, {"factor", 2}}}}};
}

class GateFiles : public testing::Test {
 protected:
  GateFile read(const nlohmann::json& json) {
    return read_gate_file(folder_.write("gate.json", json.dump()));
  }
  void expect_bad(const std::string& part, const nlohmann::json& json) {
    SCOPED_TRACE(json.dump());
    expect_error(ErrorKind::malformed, part, [&] { read(json); });
  }
  TemporaryDirectory folder_;
};

TEST_F(GateFiles, AreKnownByTheHashOfTheirBytes) {
  const GateFile gate = read(good());
  EXPECT_EQ(gate.sha256, sha256_hex(folder_ / "gate.json"));
  EXPECT_EQ(gate.op, "matmul");
  EXPECT_EQ(gate.red_arms[0].amount, 2);
  EXPECT_FALSE(gate.precision.has_value());
}

TEST_F(GateFiles, NothingUnknownOrAbsentIsTaken) {
  for (const char* field : {"schema", "name", "subject", "comparator", "thresholds", "red_arms"}) {
    nlohmann::json json = good();
    json.erase(field);
    expect_bad(std::string("no field '") + field + "'", json);
  }
  nlohmann::json json = good();
  json["treshold"] = 1;
  expect_bad("unknown field 'treshold'", json);
  json = good();
  json["subject"]["model"] = "x";
  expect_bad("subject: an unknown field 'model'", json);
  json = good();
  json["red_arms"][0]["seconds"] = 1;
  expect_bad("red_arms[0]: an unknown field 'seconds'", json);
  json = good();
  json["schema"] = "assay.gate/2";
  expect_error(ErrorKind::unsupported, "schema", [&] { read(json); });
}

TEST_F(GateFiles, AGateThatCannotFailIsRefused) {
  nlohmann::json json = good();
  json["red_arms"] = nlohmann::json::array();
  expect_bad("red_arms", json);
  json["red_arms"] = {{{"arm", "scaled_output"}, {"factor", 1}}};
  expect_bad("a factor that changes something", json);
  json["red_arms"] = {{{"arm", "shifted_window"}, {"seconds", 0}}};
  expect_bad("more than 0", json);
  json["red_arms"] = {{{"arm", "permuted_output"}}, {{"arm", "permuted_output"}}};
  expect_bad("second time", json);
  json["red_arms"] = {{{"arm", "swapped_states"}}};
  expect_bad("arms that a subject of type op can carry out", json);
  json["red_arms"] = {{{"arm", "upside_down"}}};
  expect_bad("expected one of", json);
}

TEST_F(GateFiles, WhatDoesNotGoTogetherIsRefused) {
  nlohmann::json json = good();
  json["comparator"] = "audio";
  expect_bad("comparator", json);
  json["comparator"] = "decisions";
  json["thresholds"] = {{"near_tie_margin", 0}, {"max_abs_dp", 0}, {"mean_of_row_mean_abs_dp", 0}};
  expect_bad("comparator", json);
  json = good();
  json["fixtures"] = {{{"path", "a.json"}}};
  expect_bad("fixtures", json);
  json = good();
  json["subject"] = {{"type", "singer"}};
  expect_bad("subject.type", json);
  json["subject"] = {{"type", "taps"}, {"precision", "fp8"}};
  expect_bad("subject.precision", json);
}

TEST_F(GateFiles, FixturesAreBesideTheGateAndMayBePinned) {
  nlohmann::json json = good();
  json["subject"] = {{"type", "taps"}};
  json["fixtures"] = {{{"path", "a.safetensors"}, {"sha256", std::string(64, '0')}},
                      {{"path", "b.safetensors"}}};
  const GateFile gate = read(json);
  EXPECT_EQ(gate.fixtures[0].path, folder_ / "a.safetensors");
  expect_error(ErrorKind::mismatch, "a.safetensors",
               [&] { check_pin(gate.fixtures[0], std::string(64, '1')); });
  EXPECT_NO_THROW(check_pin(gate.fixtures[1], std::string(64, '1')));
  json["fixtures"][0]["sha256"] = "abc";
  expect_bad("fixtures[0].sha256", json);
  json["fixtures"] = nlohmann::json::array();
  expect_bad("fixtures", json);
}

TEST_F(GateFiles, EveryGateOfTheProjectIsRead) {
  std::size_t gates = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ASSAY_TEST_DATA "/../../lab/gates")) {
    SCOPED_TRACE(entry.path());
    EXPECT_EQ(read_gate_file(entry.path()).name, entry.path().stem());
    ++gates;
  }
  EXPECT_GE(gates, 12u);
}

TEST_F(GateFiles, AFileThatIsNotThereIsMissing) {
  expect_error(ErrorKind::missing, "none.json", [&] { read_gate_file(folder_ / "none.json"); });
}

}  // namespace
}  // namespace assay::lab
