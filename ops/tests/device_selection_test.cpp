#include "ops/device_selection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include <nlohmann/json.hpp>

#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"
#include "device/cpu_id.hpp"

namespace assay::ops {
namespace {

using Json = nlohmann::json;

class DeviceSelectionFile : public testing::Test {
 protected:
  DeviceSelectionFile() {
    document_ = {{"schema", "assay.selection/1"},
                 {"device", device::cpu_id()},
                 {"made", "2026-01-31T12:00:00Z"},
                 {"choices",
                  {{{"op", "rms_norm"},
                    {"precision", "fp32"},
                    {"form", "reference"},
                    {"why", "faster here"},
                    {"receipts", {"abc"}}}}},
                 {"refused",
                  {{{"op", "rms_norm"},
                    {"precision", "fp32"},
                    {"form", "vector"},
                    {"why", "its gate failed"},
                    {"receipts", Json::array()}}}}};
  }
  ~DeviceSelectionFile() override { ::unsetenv("ASSAY_SELECTION"); }

  std::filesystem::path write() { return folder_.write("selection.json", document_.dump()); }
  void refuse(ErrorKind kind, const std::string& says) {
    expect_error(kind, says, [&] { read_device_selection(write()); });
  }

  TemporaryDirectory folder_;
  Json document_;
};

TEST_F(DeviceSelectionFile, CompletesWhatTheUserLeavesOpen) {
  const DeviceSelection selection = read_device_selection(write());
  EXPECT_EQ(selection.complete({}, Precision::fp32), (FormOverrides{{"rms_norm", "reference"}}));
  EXPECT_EQ(selection.complete({{"rms_norm", "vector"}}, Precision::fp32),
            (FormOverrides{{"rms_norm", "vector"}}));
  EXPECT_EQ(selection.complete({}, Precision::bf16), FormOverrides{});
  ASSERT_NE(selection.choice("rms_norm", "reference", Precision::fp32), nullptr);
  EXPECT_EQ(selection.choice("rms_norm", "reference", Precision::fp32)->why, "faster here");
  EXPECT_EQ(selection.refusal("rms_norm", "vector", Precision::fp32)->why, "its gate failed");
  EXPECT_EQ(selection.refusal("rms_norm", "vector", Precision::bf16), nullptr);
}

TEST_F(DeviceSelectionFile, AnotherDevicesIsRefused) {
  document_["device"] = "cpu-of-somebody-else";
  refuse(ErrorKind::mismatch, "cpu-of-somebody-else");
}

TEST_F(DeviceSelectionFile, FormsThatCannotRunAreRefused) {
  document_["choices"][0]["form"] = "imagined";
  refuse(ErrorKind::mismatch, "imagined");
  document_["choices"][0]["op"] = "alchemy";
  refuse(ErrorKind::mismatch, "alchemy");
}

TEST_F(DeviceSelectionFile, EveryFieldIsKnownAndThere) {
  const Json good = document_;
  for (const auto& [name, value] : good.items()) {
    document_ = good;
    document_.erase(name);
    refuse(ErrorKind::malformed, name);
  }
  for (const auto& [name, value] : good["choices"][0].items()) {
    document_ = good;
    document_["choices"][0].erase(name);
    refuse(ErrorKind::malformed, "choices[0]");
    document_ = good;
    document_["choices"][0][name] = 7;
    refuse(ErrorKind::malformed, "choices[0]");
  }
  document_ = good;
  document_["waiver"] = true;
  refuse(ErrorKind::malformed, "waiver");
  document_ = good;
  document_["choices"].push_back(good["choices"][0]);
  refuse(ErrorKind::malformed, "two choices");
  document_ = good;
  document_["choices"][0]["precision"] = "fp8";
  refuse(ErrorKind::malformed, "fp8");
  expect_error(ErrorKind::malformed, "no JSON object",
               [&] { read_device_selection(folder_.write("broken.json", "{\"schema\":")); });
}

TEST_F(DeviceSelectionFile, TheEnvironmentNamesAFileOrNone) {
  ::setenv("ASSAY_SELECTION", write().c_str(), 1);
  EXPECT_EQ(with_device_selection({}, Precision::fp32), (FormOverrides{{"rms_norm", "reference"}}));
  ::setenv("ASSAY_SELECTION", "off", 1);
  EXPECT_FALSE(find_device_selection());
  EXPECT_EQ(with_device_selection({}, Precision::fp32), FormOverrides{});
  ::setenv("ASSAY_SELECTION", "/nowhere/selection.json", 1);
  expect_error(ErrorKind::missing, "/nowhere/selection.json",
               [] { with_device_selection({}, Precision::fp32); });
}

TEST_F(DeviceSelectionFile, TheUsersFolderIsLookedAtUnderTheDevicesName) {
  ::unsetenv("ASSAY_SELECTION");
  ::setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1);
  EXPECT_FALSE(find_device_selection());
  const auto file = folder_.write("assay/selection/" + device::cpu_id() + ".json", document_.dump());
  EXPECT_EQ(find_device_selection(), file);
  ::unsetenv("XDG_CONFIG_HOME");
}

}  // namespace
}  // namespace assay::ops
