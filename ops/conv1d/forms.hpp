#pragma once

#include "ops/conv1d/conv1d.hpp"

namespace assay::ops {

// The functions of the reference forms; those of the others are made of kernels (taps.hpp).
std::size_t conv1d_reference_packed_bytes(const ConvShape& shape);
Conv1dWeight conv1d_reference_pack(const ConvShape& shape, const ConvRows& rows);
Conv1dWeight conv1d_reference_bf16_pack(const ConvShape& shape, const ConvRows& rows);
void conv1d_reference_run(const Context& context, const Conv1dArgs& args);
void conv1d_reference_bf16_run(const Context& context, const Conv1dArgs& args);

}  // namespace assay::ops
