#pragma once

#include "ops/conv_transpose1d/conv_transpose1d.hpp"

namespace assay::ops {

std::size_t conv_transpose1d_reference_packed_bytes(const ConvShape& shape, std::size_t stride);
ConvTranspose1dWeight conv_transpose1d_reference_pack(const ConvShape& shape, std::size_t stride,
                                                      const ConvRows& rows);
ConvTranspose1dWeight conv_transpose1d_reference_bf16_pack(const ConvShape& shape, std::size_t stride,
                                                           const ConvRows& rows);
void conv_transpose1d_reference_run(const Context& context, const ConvTranspose1dArgs& args);
void conv_transpose1d_reference_bf16_run(const Context& context, const ConvTranspose1dArgs& args);

}  // namespace assay::ops
