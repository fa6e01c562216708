#pragma once

#include <nlohmann/json.hpp>

#include "base/file.hpp"

namespace assay::decision {

/// What CPython printed, recorded by oracle/python_cases.py.
inline nlohmann::json python_cases() {
  return nlohmann::json::parse(read_text_file(ASSAY_TEST_DATA "/python-cases.json"));
}

}  // namespace assay::decision
