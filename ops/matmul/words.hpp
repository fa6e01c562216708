#pragma once

#include <cstddef>
#include <cstdint>

/// What the layouts are made of, by vectors: 32-bit words, each an fp32 or a pair of bf16 from consecutive
/// values. Rounding to bf16 is assay::float_to_bf16's: nearest, ties to even, NaN quieted.
namespace assay::ops::panels {

/// words[i] holds values[2i] in its low half and values[2i + 1] in its high half, 0 past `count`.
void round_to_bf16(const float* values, std::size_t count, std::uint32_t* words);

/// words[i]: values[i] to bf16 and back to fp32.
void round_through_bf16(const float* values, std::size_t count, std::uint32_t* words);

/// out[i · width + row] = rows[row · stride + i] for 4 rows and i < count.
void interleave_four(const std::uint32_t* rows, std::size_t stride, std::size_t count, std::size_t width,
                     std::uint32_t* out);

}  // namespace assay::ops::panels
