// Layer by layer against the author's implementation (the taps of oracle/kev_oracle.py).

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "backbone/backbone.hpp"
#include "base/file.hpp"
#include "formats/canonical_names.hpp"
#include "formats/hf_config.hpp"
#include "formats/lora.hpp"
#include "formats/safetensors.hpp"

namespace assay::backbone {
namespace {

std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(ASSAY_TEST_DATA) / name;
}

double nrmse(std::span<const float> expected, std::span<const float> actual) {
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
    error += difference * difference;
    power += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return std::sqrt(error / power);
}

class Fixture : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string model = GetParam();
    const auto base = data(model) / "base";
    config_ = formats::parse_hf_config(read_text_file(base / "config.json"), (base / "config.json").string());
    weights_ =
        formats::merge_lora(formats::canonical_names(formats::open_safetensors(base)), data(model) / "run");
    taps_ = formats::open_safetensors(data(model + ".fixture.taps.safetensors"));
    const std::size_t rows = taps_->find("ids")->shape[0];
    const auto* stored = reinterpret_cast<const std::byte*>(taps_->stored_bytes("ids").data());
    for (std::size_t i = 0; i < rows; ++i) {
      std::int64_t id = 0;
      std::memcpy(&id, stored + i * sizeof id, sizeof id);
      ids_.push_back(static_cast<std::int32_t>(id));
    }
  }

  std::vector<float> tap(const std::string& name) const {
    return formats::read_tensor(*taps_, name, std::array<std::uint64_t, 2>{ids_.size(), config_.hidden_size});
  }

  formats::ModelConfig config_;
  std::shared_ptr<const formats::TensorSource> weights_;
  std::shared_ptr<const formats::TensorSource> taps_;
  std::vector<std::int32_t> ids_;
  device::ThreadPool threads_{2};
};

TEST_P(Fixture, EveryLayerEqualsTheAuthorsWithinFp32Rounding) {
  Backbone backbone(config_, weights_, ops::select_forms(ops::Precision::fp32), threads_);
  std::size_t compared = 0;
  RunOptions options;
  options.tap = [&](std::string_view name, std::size_t rows, std::size_t width, const float* values) {
    // The author's last hidden state is recorded after the final norm.
    if (name == "hidden_0" + std::to_string(config_.layers.size())) return;
    EXPECT_LE(nrmse(tap(std::string(name)), {values, rows * width}), 2e-6) << name;
    ++compared;
  };
  Segment row{.tokens = ids_};
  for (std::size_t i = 0; i < ids_.size(); ++i) row.readouts.push_back(i);
  const PassResult result = backbone.run(std::vector{row}, options);
  EXPECT_EQ(compared, config_.layers.size());
  EXPECT_LE(nrmse(tap("final_norm"), result.hidden[0]), 2e-6);
}

TEST_P(Fixture, AStateAndAQuestionEqualTheAuthorsWholeRow) {
  Backbone backbone(config_, weights_, ops::select_forms(ops::Precision::fp32), threads_);
  const std::vector<float> expected = tap("final_norm");
  for (const std::size_t state_length : {1u, 2u, 3u, 5u, 20u}) {
    const std::span<const std::int32_t> ids(ids_);
    Segment question{.tokens = ids.subspan(state_length), .parent = 0};
    for (std::size_t i = 0; i < question.tokens.size(); ++i) question.readouts.push_back(i);
    const PassResult result =
        backbone.run(std::vector<Segment>{{.tokens = ids.first(state_length)}, question});
    EXPECT_LE(nrmse(std::span(expected).subspan(state_length * config_.hidden_size), result.hidden[1]), 2e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Fixture, testing::Values("kev-tiny-hybrid", "kev-tiny-dense"),
                         [](const auto& info) { return std::string(info.param).substr(9); });

}  // namespace
}  // namespace assay::backbone
