#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "decision/model.hpp"

namespace assay::decision {

inline std::vector<std::string> checkpoints() {
  return {"kev-tiny-hybrid", "kev-tiny-dense"};
}

inline std::filesystem::path run_directory(const std::string& checkpoint) {
  return std::filesystem::path(ASSAY_TEST_DATA) / checkpoint / "run";
}

/// The records of a checkpoint's fixture, members in order.
inline nlohmann::ordered_json fixture_records(const std::string& checkpoint) {
  const auto path = std::filesystem::path(ASSAY_TEST_DATA) / (checkpoint + ".fixture.json");
  return nlohmann::ordered_json::parse(read_text_file(path))["records"];
}

inline Request record_request(const nlohmann::ordered_json& record) {
  return parse_request(record["request"].dump());
}

inline std::unique_ptr<DecisionModel> load_model(const std::string& checkpoint,
                                                 const ModelOptions& options = {}) {
  return DecisionModel::load(run_directory(checkpoint), std::nullopt, options);
}

}  // namespace assay::decision
