#pragma once

#include <cstddef>
#include <cstdint>

/// fp32 to bf16 as assay::float_to_bf16 does it (nearest, ties to even, NaN quieted), by vectors.
namespace assay::ops::panels {

/// pairs[i] holds values[2i] in its low half and values[2i + 1] in its high half, 0 past `count`.
void round_to_bf16(const float* values, std::size_t count, std::uint32_t* pairs);

/// rounded[i]: values[i] to bf16 and back.
void round_through_bf16(const float* values, std::size_t count, float* rounded);

}  // namespace assay::ops::panels
