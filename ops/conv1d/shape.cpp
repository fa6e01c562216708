#include <string>

#include "base/error.hpp"
#include "ops/conv1d/conv1d.hpp"
#include "ops/conv_transpose1d/conv_transpose1d.hpp"

namespace assay::ops {
namespace {

void check_positive(const char* op, const char* what, std::size_t value) {
  if (value != 0) return;
  throw Error(ErrorKind::invalid_argument,
              {.where = op, .found = std::string("a ") + what + " of 0", .expected = "at least 1"});
}

}  // namespace

std::size_t conv1d_length(const Conv1dArgs& args) {
  check_positive("conv1d", "kernel", args.w->shape.kernel);
  check_positive("conv1d", "stride", args.stride);
  check_positive("conv1d", "dilation", args.dilation);
  const std::size_t reach = (args.w->shape.kernel - 1) * args.dilation + 1;
  const std::size_t padded = args.length + 2 * args.padding;
  return padded < reach ? 0 : (padded - reach) / args.stride + 1;
}

std::size_t conv_transpose1d_length(const ConvTranspose1dArgs& args) {
  check_positive("conv_transpose1d", "kernel", args.w->shape.kernel);
  check_positive("conv_transpose1d", "stride", args.w->stride);
  if (args.length == 0) return 0;
  const std::size_t whole = (args.length - 1) * args.w->stride + args.w->shape.kernel;
  return whole < 2 * args.padding ? 0 : whole - 2 * args.padding;
}

}  // namespace assay::ops
