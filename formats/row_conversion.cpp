#include "formats/row_conversion.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "base/error.hpp"

namespace assay::formats {
namespace {

// One block is converted and then, while it is in the first-level cache, checked.
constexpr std::size_t kBlock = 2048;

std::uint16_t load16(const std::byte* data) {
  std::uint16_t value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

void convert_bf16(const std::byte* data, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = bf16_to_float(load16(data + 2 * i));
}

/// fp16 without branches, so that the loop becomes vector code. A normal number is moved to fp32's exponent
/// range by a power of two; a subnormal one becomes the fraction of a number in [0.5, 1), less 0.5: both
/// exact. Infinity and NaN come out as such.
float f16_without_branches(std::uint16_t half) {
  const std::uint32_t wide = std::uint32_t{half} << 16;
  const std::uint32_t magnitude = wide << 1;
  const float normal = std::bit_cast<float>((magnitude >> 4) + (0xe0u << 23)) * 0x1.0p-112f;
  const float subnormal = std::bit_cast<float>((magnitude >> 17) | (126u << 23)) - 0.5f;
  const std::uint32_t chosen = std::bit_cast<std::uint32_t>(magnitude < (1u << 27) ? subnormal : normal);
  return std::bit_cast<float>((wide & 0x80000000u) | chosen);
}

void convert_f16(const std::byte* data, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = f16_without_branches(load16(data + 2 * i));
}

bool all_finite(const float* values, std::size_t n) {
  constexpr std::uint32_t kExponent = 0x7f800000u;
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < n; ++i) {
    bad |= (std::bit_cast<std::uint32_t>(values[i]) & kExponent) == kExponent ? 1u : 0u;
  }
  return bad == 0;
}

[[noreturn]] void fail_non_finite(const TensorInfo& info, std::uint64_t element, float value) {
  throw Error(ErrorKind::non_finite, {.where = info.origin + ": tensor '" + info.name + "'",
                                      .found = std::string(std::isnan(value) ? "NaN" : "infinity") +
                                               " at element " + std::to_string(element),
                                      .expected = "finite weights",
                                      .advice = "the file is damaged, or its training diverged"});
}

}  // namespace

RowRange check_rows(const TensorInfo& info, std::uint64_t first, std::uint64_t count, std::size_t out_size) {
  const std::uint64_t rows = info.shape.empty() ? 1 : info.shape[0];
  const std::uint64_t total = element_count(info);
  const std::uint64_t width = rows == 0 ? 0 : total / rows;
  if (first > rows || count > rows - first) {
    throw Error(ErrorKind::invalid_argument,
                {.where = info.origin + ": tensor '" + info.name + "'",
                 .found = "rows " + std::to_string(first) + " to " + std::to_string(first + count),
                 .expected = "rows within " + std::to_string(rows)});
  }
  if (out_size != count * width) {
    throw Error(ErrorKind::invalid_argument, {.where = info.origin + ": tensor '" + info.name + "'",
                                              .found = "room for " + std::to_string(out_size) + " values",
                                              .expected = std::to_string(count * width)});
  }
  return {first * width, count * width};
}

void convert_finite(const TensorInfo& info, std::uint64_t first_element, const std::byte* data,
                    std::span<float> out) {
  for (std::size_t done = 0; done < out.size(); done += kBlock) {
    const std::span<float> block = out.subspan(done, std::min(kBlock, out.size() - done));
    const std::byte* from = data + storage_bytes(info.type, done);
    switch (info.type) {
      case DType::bf16:
        convert_bf16(from, block.data(), block.size());
        break;
      case DType::f16:
        convert_f16(from, block.data(), block.size());
        break;
      default:
        convert_to_float(info.type, from, block);
    }
    check_finite(info, first_element + done, block);
  }
}

void check_finite(const TensorInfo& info, std::uint64_t first_element, std::span<const float> values) {
  if (all_finite(values.data(), values.size())) return;
  const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  fail_non_finite(info, first_element + static_cast<std::uint64_t>(bad - values.begin()), *bad);
}

}  // namespace assay::formats
