#include "ops/causal_conv1d/window.hpp"

#include <string>

#include "base/error.hpp"

namespace assay::ops {

void check_causal_conv1d(const CausalConv1dArgs& args) {
  if (args.width >= 2 && args.width <= kMaxConvWidth) return;
  throw Error(ErrorKind::invalid_argument, {.where = "causal_conv1d",
                                            .found = "a kernel of " + std::to_string(args.width),
                                            .expected = "2 to " + std::to_string(kMaxConvWidth)});
}

}  // namespace assay::ops
