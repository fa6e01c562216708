// Compiled for AMX, on x86-64 alone: nothing here may be an inline function that other files share.
#include "ops/matmul/amx_hardware.hpp"

namespace assay::ops::panels {

const Kernel& amx_bf16_kernel() {
  return kAmxKernel<HardwareTiles>;
}

}  // namespace assay::ops::panels
