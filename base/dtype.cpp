#include "base/dtype.hpp"

#include <cstring>
#include <limits>
#include <string>

#include "base/error.hpp"

namespace assay {
namespace {

// ggml's block_q8_0: one fp16 scale, then 32 signed bytes (ggml, src/ggml-common.h).
constexpr std::size_t kQ8BlockElements = 32;
constexpr std::size_t kQ8BlockBytes = 34;

template <class T>
T load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

void convert_q8_0(const std::byte* data, std::span<float> out) {
  storage_bytes(DType::q8_0, out.size());
  for (std::size_t first = 0; first < out.size(); first += kQ8BlockElements, data += kQ8BlockBytes) {
    const float scale = f16_to_float(load<std::uint16_t>(data));
    for (std::size_t i = 0; i < kQ8BlockElements; ++i) {
      out[first + i] = scale * static_cast<float>(load<std::int8_t>(data + 2 + i));
    }
  }
}

}  // namespace

std::string_view to_string(DType type) {
  switch (type) {
    case DType::f64:
      return "F64";
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::i64:
      return "I64";
    case DType::i32:
      return "I32";
    case DType::i16:
      return "I16";
    case DType::i8:
      return "I8";
    case DType::u8:
      return "U8";
    case DType::boolean:
      return "BOOL";
    case DType::q8_0:
      return "Q8_0";
  }
  return "?";
}

std::size_t element_bytes(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
      return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return 1;
    case DType::q8_0:
      break;
  }
  throw Error(ErrorKind::internal, {.where = "element_bytes", .found = "a block type has no element size"});
}

std::size_t storage_bytes(DType type, std::uint64_t count) {
  const bool blocked = type == DType::q8_0;
  if (blocked && count % kQ8BlockElements != 0) {
    throw Error(ErrorKind::malformed, {.where = std::string(to_string(type)),
                                       .found = std::to_string(count) + " elements",
                                       .expected = "a multiple of 32"});
  }
  const std::uint64_t units = blocked ? count / kQ8BlockElements : count;
  const std::uint64_t unit_bytes = blocked ? kQ8BlockBytes : element_bytes(type);
  if (units > std::numeric_limits<std::size_t>::max() / unit_bytes) {
    throw Error(ErrorKind::malformed, {.where = std::string(to_string(type)),
                                       .found = std::to_string(count) + " elements",
                                       .expected = "a size that fits the address space"});
  }
  return static_cast<std::size_t>(units * unit_bytes);
}

std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Adding 0.5 puts the value's fp16-subnormal grid on the last bits of the sum, rounded to even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

void convert_to_float(DType type, const std::byte* data, std::span<float> out) {
  const std::size_t n = out.size();
  switch (type) {
    case DType::f32:
      if (n != 0) std::memcpy(out.data(), data, n * sizeof(float));
      return;
    case DType::bf16:
      for (std::size_t i = 0; i < n; ++i) out[i] = bf16_to_float(load<std::uint16_t>(data + 2 * i));
      return;
    case DType::f16:
      for (std::size_t i = 0; i < n; ++i) out[i] = f16_to_float(load<std::uint16_t>(data + 2 * i));
      return;
    case DType::f64:
      for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(load<double>(data + 8 * i));
      return;
    case DType::q8_0:
      convert_q8_0(data, out);
      return;
    default:
      break;
  }
  throw Error(
      ErrorKind::unsupported,
      {.where = std::string(to_string(type)), .found = "an integer type", .expected = "a floating type"});
}

}  // namespace assay
