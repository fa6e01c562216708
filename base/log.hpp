#pragma once

#include <spdlog/spdlog.h>

namespace assay {

/// The program's logger: standard error, level from `ASSAY_LOG` (trace … off), default warn.
/// Standard output is kept for answers.
spdlog::logger& log();

}  // namespace assay
