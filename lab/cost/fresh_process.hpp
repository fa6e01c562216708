#pragma once

#include <string>
#include <vector>

namespace assay::lab {

/// Runs this very program again with these arguments and returns what it wrote to standard output; its
/// standard error is this process's. Throws Error(io) where it cannot be started, ends by a signal or with
/// another status than 0, or Error(limit_exceeded) past 64 MiB of output. The process has ended when this
/// returns.
std::string run_fresh_process(const std::vector<std::string>& arguments);

}  // namespace assay::lab
