#pragma once

#include <cstddef>

#include "ops/conv1d/taps.hpp"
#include "ops/conv_transpose1d/conv_transpose1d.hpp"

/// A transposed convolution as a convolution for each remainder of the output row by the stride, its phase,
/// by the kernel of any instruction set.
namespace assay::ops::polyphase {

std::size_t packed_bytes(const taps::Kernel& kernel, const ConvShape& shape, std::size_t stride);

/// As ConvTranspose1dForm::pack, without the form.
ConvTranspose1dWeight pack(const taps::Kernel& kernel, const ConvShape& shape, std::size_t stride,
                           const ConvRows& rows);

/// `kernel` is the one that packed the weight.
void run(const taps::Kernel& kernel, const Context& context, const ConvTranspose1dArgs& args);

}  // namespace assay::ops::polyphase
