#include "base/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace assay {
namespace {

constexpr std::string_view kLevels = "trace, debug, info, warn, error, critical or off";

struct Level {
  spdlog::level::level_enum level = spdlog::level::warn;
  std::string unknown = {};  ///< what ASSAY_LOG says where it names no level
};

Level level_from_environment() {
  const char* text = std::getenv("ASSAY_LOG");
  if (text == nullptr || *text == '\0') return {};
  const auto level = spdlog::level::from_str(text);
  // from_str reads an unknown word as off; a misspelt level must not silence the warnings.
  if (level == spdlog::level::off && std::string_view(text) != "off") return {.unknown = text};
  return {level};
}

/// The message; like an error's, it may quote what a file or a request holds.
class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableMessage>();
  }
};

std::shared_ptr<spdlog::logger> make_logger() {
  auto logger = std::make_shared<spdlog::logger>("assay", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern("assay: %l: %*");
  logger->set_formatter(std::move(formatter));
  const Level level = level_from_environment();
  logger->set_level(level.level);
  if (!level.unknown.empty()) {
    logger->warn("ASSAY_LOG: {}; expected {}", in_quotes(level.unknown), kLevels);
  }
  return logger;
}

}  // namespace

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = make_logger();
  return *logger;
}

}  // namespace assay
