#pragma once

#include <string>

namespace assay::lab {

/// Which program this is.
struct BuildInfo {
  std::string version;
  std::string commit;     ///< of the sources; empty where they were built outside a repository
  bool modified = false;  ///< the tree differed from that commit
  std::string build;      ///< compiler, its version and the build type
};

BuildInfo build_info();

}  // namespace assay::lab
