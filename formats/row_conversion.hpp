#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/dtype.hpp"
#include "formats/tensor_source.hpp"

namespace assay::formats {

/// Where the elements of whole rows lie in a row-major tensor.
struct RowRange {
  std::uint64_t first_element = 0;
  std::uint64_t elements = 0;
};

/// Checks a read_rows call against the tensor: Error(invalid_argument) for rows outside it, or an `out` of
/// another size than the rows.
RowRange check_rows(const TensorInfo& info, std::uint64_t first, std::uint64_t count, std::size_t out_size);

/// Elements of a floating type at `data` (unaligned) to fp32, every one checked to be finite.
/// `first_element` is the index in the tensor of the first, for messages. Throws Error(non_finite) naming
/// file, tensor and element; Error(unsupported) on an integer type.
void convert_finite(const TensorInfo& info, std::uint64_t first_element, const std::byte* data,
                    std::span<float> out);

/// Throws Error(non_finite) as above where a value is a NaN or an infinity.
void check_finite(const TensorInfo& info, std::uint64_t first_element, std::span<const float> values);

}  // namespace assay::formats
