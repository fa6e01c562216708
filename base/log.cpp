#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace assay {
namespace {

spdlog::level::level_enum level_from_environment() {
  const char* text = std::getenv("ASSAY_LOG");
  if (text == nullptr) return spdlog::level::warn;
  const auto level = spdlog::level::from_str(text);
  // from_str reads an unknown word as off; a misspelt level must not silence the warnings.
  return level == spdlog::level::off && std::string_view(text) != "off" ? spdlog::level::warn : level;
}

}  // namespace

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("assay", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("assay: %l: %v");
    made->set_level(level_from_environment());
    return made;
  }();
  return *logger;
}

}  // namespace assay
