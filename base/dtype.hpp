#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace assay {

/// Element types that the formats carry. Quantised block types live with the format that defines them.
enum class DType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean, q8_0 };

std::string_view to_string(DType type);

/// Bytes an element takes. Not for q8_0 (34 bytes hold 32 elements): see `storage_bytes`.
std::size_t element_bytes(DType type);

/// Bytes that `count` elements take on disk; throws Error(malformed) where `count` does not fit the
/// type's block or the product overflows.
std::size_t storage_bytes(DType type, std::uint64_t count);

/// bf16 to fp32, exact.
inline float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

/// fp32 to bf16, round to nearest, ties to even; NaN stays NaN (quieted).
inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// fp16 to fp32, exact, subnormals included; a NaN keeps its payload.
inline float f16_to_float(std::uint16_t bits) {
  // With fp16's fields moved into place the exponent is 112 too small, for subnormals too, so one exact
  // multiplication mends both; only infinity and NaN need their exponent filled up. No branches: loops over
  // this are vectorised.
  const float scaled = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
  const std::uint32_t special = (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | ((bits & 0x8000u) << 16));
}

/// fp32 to fp16, round to nearest, ties to even.
std::uint16_t float_to_f16(float value);

/// Converts `out.size()` elements of a floating type (f32, f16, bf16, f64, q8_0) at `data` to fp32.
/// For q8_0 `out` starts at a block boundary and its size is a multiple of 32, else Error(malformed).
/// `data` need not be aligned. Throws Error(unsupported) on an integer type.
void convert_to_float(DType type, const std::byte* data, std::span<float> out);

}  // namespace assay
