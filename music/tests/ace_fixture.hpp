#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "formats/safetensors.hpp"
#include "formats/tensor_source.hpp"
#include "music/config.hpp"

/// The tiny checkpoint in diffusers' layout and the answers that the authors' code gave on it
/// (oracle/README.md).
namespace assay::music::fixture {

inline constexpr const char* kCases[] = {"a", "b", "c", "d", "e", "f"};

inline std::filesystem::path part(const std::string& name) {
  return std::filesystem::path(ASSAY_TEST_DATA) / "ace-tiny" / name;
}

inline std::string config_text(const std::string& name) {
  return read_text_file(part(name) / "config.json");
}

inline std::shared_ptr<const formats::TensorSource> weights(const std::string& name) {
  return formats::open_safetensors(part(name) / "diffusion_pytorch_model.safetensors");
}

/// All values of one tensor, row-major.
inline std::vector<float> values(const formats::TensorSource& source, const std::string& name) {
  return formats::read_tensor(source, name, formats::require(source, name).shape);
}

inline const formats::TensorSource& answers() {
  static const auto source =
      formats::open_safetensors(std::filesystem::path(ASSAY_TEST_DATA) / "ace-tiny.fixture.safetensors");
  return *source;
}

inline std::vector<float> answer(const std::string& name) {
  return values(answers(), name);
}

inline const nlohmann::json& record(const std::string& id) {
  static const nlohmann::json document =
      nlohmann::json::parse(read_text_file(std::filesystem::path(ASSAY_TEST_DATA) / "ace-tiny.fixture.json"));
  for (const nlohmann::json& entry : document["cases"]) {
    if (entry["id"] == id) return entry;
  }
  throw std::runtime_error("no case " + id);
}

inline std::vector<float> silence(std::size_t frames) {
  std::vector<float> latents = values(*weights("condition_encoder"), "silence_latent");
  latents.resize(frames * 64);
  return latents;
}

/// √(Σ (actual − expected)² / Σ expected²).
inline double nrmse(std::span<const float> expected, std::span<const float> actual) {
  if (expected.size() != actual.size()) return HUGE_VAL;
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
    error += difference * difference;
    power += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return std::sqrt(error / power);
}

}  // namespace assay::music::fixture
