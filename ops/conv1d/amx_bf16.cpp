// Compiled for AMX, on x86-64 alone: nothing here may be an inline function that other files share.
#include "ops/conv1d/amx_tiles.hpp"
#include "ops/matmul/amx_hardware.hpp"

namespace assay::ops::taps {

const Kernel& amx_bf16_kernel() {
  return kAmxKernel<panels::HardwareTiles>;
}

}  // namespace assay::ops::taps
