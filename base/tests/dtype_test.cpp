#include "base/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/tests/expect_error.hpp"

namespace assay {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The value of a small float format in double: 1 sign bit, `exponent_bits`, `mantissa_bits`.
double value_of(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const std::uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1u << exponent_bits) - 1));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(1.0 + std::ldexp(mantissa, -mantissa_bits), exponent - bias);
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST(Dtype, EveryF16ConvertsExactlyAndBack) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_float(half);
    ASSERT_TRUE(same(value, value_of(bits, 5, 10))) << bits;
    if (!std::isnan(value)) {
      ASSERT_EQ(float_to_f16(value), half) << bits;
    }
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(f16_to_float(float_to_f16(value)))) << bits;
    }
  }
}

TEST(Dtype, EveryBf16ConvertsExactlyAndBack) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto brain = static_cast<std::uint16_t>(bits);
    const float value = bf16_to_float(brain);
    ASSERT_TRUE(same(value, value_of(bits, 8, 7))) << bits;
    if (!std::isnan(value)) {
      ASSERT_EQ(float_to_bf16(value), brain) << bits;
    }
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bf16_to_float(float_to_bf16(value)))) << bits;
    }
  }
}

/// Nearest of the two neighbours that enclose |value|, ties to the even code; codes ascend with the value.
template <class Decode>
std::uint16_t nearest_code(float value, std::uint16_t infinity, const Decode& decode) {
  const double magnitude = std::fabs(static_cast<double>(value));
  std::uint32_t low = 0;
  std::uint32_t high = infinity;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (decode(middle) <= magnitude ? low : high) = middle;
  }
  // The step to infinity is as if one more power of two existed.
  const double above = high == infinity ? 2 * decode(low) - decode(low - 1) : decode(high);
  const double to_low = magnitude - decode(low);
  const double to_high = above - magnitude;
  const bool up = to_high < to_low || (to_high == to_low && (low & 1u) != 0);
  return static_cast<std::uint16_t>((up ? high : low) | (std::signbit(value) ? 0x8000u : 0u));
}

std::vector<float> rounding_samples(int exponent_low, int exponent_high) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> mantissa(1, 2);
  std::uniform_int_distribution<int> exponent(exponent_low, exponent_high);
  std::vector<float> samples;
  for (int i = 0; i < 20000; ++i) {
    const float value = std::ldexp(mantissa(random), exponent(random));
    samples.push_back(i % 2 == 0 ? value : -value);
  }
  return samples;
}

TEST(Dtype, F16RoundsToNearestTiesToEven) {
  const auto decode = [](std::uint32_t bits) { return value_of(bits, 5, 10); };
  std::vector<float> samples = rounding_samples(-27, 15);
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {  // every tie and its neighbours
    const auto tie = static_cast<float>((decode(bits) + decode(bits + 1)) / 2);
    samples.insert(samples.end(), {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, kInfinity)});
  }
  for (const float value : samples)
    ASSERT_EQ(float_to_f16(value), nearest_code(value, 0x7c00, decode)) << value;
}

TEST(Dtype, Bf16RoundsToNearestTiesToEven) {
  const auto decode = [](std::uint32_t bits) { return value_of(bits, 8, 7); };
  std::vector<float> samples = rounding_samples(-140, 126);
  for (std::uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const auto tie = static_cast<float>((decode(bits) + decode(bits + 1)) / 2);
    samples.insert(samples.end(), {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, kInfinity)});
  }
  for (const float value : samples)
    ASSERT_EQ(float_to_bf16(value), nearest_code(value, 0x7f80, decode)) << value;
}

TEST(Dtype, TheEdgesOfTheNarrowFormats) {
  EXPECT_EQ(float_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(float_to_f16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_f16(-kInfinity), 0xfc00);
  EXPECT_EQ(float_to_f16(0x1p-24f), 0x0001);
  EXPECT_EQ(float_to_f16(0x1p-25f), 0x0000);
  EXPECT_EQ(float_to_f16(std::nextafter(0x1p-25f, 1.0f)), 0x0001);
  EXPECT_EQ(float_to_f16(std::nextafter(0x1p-14f, 0.0f)), 0x0400);
  EXPECT_EQ(float_to_f16(-0.0f), 0x8000);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(float_to_bf16(kInfinity), 0x7f80);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(std::bit_cast<float>(0x7f800001u)))));
}

template <class T>
std::vector<std::byte> unaligned_bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(1 + values.size() * sizeof(T));
  std::memcpy(bytes.data() + 1, values.data(), values.size() * sizeof(T));
  return bytes;
}

TEST(Dtype, ConvertsFloatingTypesFromUnalignedBytes) {
  std::vector<float> out(3);
  const std::vector<float> expected{1.5f, -0.25f, 0};
  convert_to_float(DType::f32, unaligned_bytes<float>({1.5f, -0.25f, 0}).data() + 1, out);
  EXPECT_EQ(out, expected);
  convert_to_float(DType::f64, unaligned_bytes<double>({1.5, -0.25, 0}).data() + 1, out);
  EXPECT_EQ(out, expected);
  convert_to_float(DType::bf16, unaligned_bytes<std::uint16_t>({0x3fc0, 0xbe80, 0}).data() + 1, out);
  EXPECT_EQ(out, expected);
  convert_to_float(DType::f16, unaligned_bytes<std::uint16_t>({0x3e00, 0xb400, 0}).data() + 1, out);
  EXPECT_EQ(out, expected);
}

TEST(Dtype, ConvertsQ8BlockByBlock) {
  std::vector<std::byte> bytes(2 * 34);
  const auto put = [&](std::size_t block, float scale) {
    const std::uint16_t half = float_to_f16(scale);
    std::memcpy(bytes.data() + block * 34, &half, 2);
    for (std::size_t i = 0; i < 32; ++i)
      bytes[block * 34 + 2 + i] = static_cast<std::byte>(static_cast<int>(i) * 8 - 128);
  };
  put(0, 0.5f);
  put(1, -2.0f);
  std::vector<float> out(64);
  convert_to_float(DType::q8_0, bytes.data(), out);
  for (std::size_t i = 0; i < 32; ++i) {
    const float quant = static_cast<float>(i) * 8 - 128;
    EXPECT_EQ(out[i], 0.5f * quant);
    EXPECT_EQ(out[32 + i], -2.0f * quant);
  }
  expect_error(ErrorKind::malformed, "multiple of 32",
               [&] { convert_to_float(DType::q8_0, bytes.data(), std::span(out).first(33)); });
}

TEST(Dtype, ConvertsNothingFromNothing) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    EXPECT_NO_THROW(convert_to_float(type, nullptr, {}));
  }
}

TEST(Dtype, RefusesIntegersByName) {
  std::vector<float> out(1);
  const std::vector<std::byte> bytes(8);
  for (const DType type : {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8, DType::boolean}) {
    expect_error(ErrorKind::unsupported, std::string(to_string(type)),
                 [&] { convert_to_float(type, bytes.data(), out); });
  }
}

TEST(Dtype, StorageFollowsElementsAndBlocks) {
  EXPECT_EQ(storage_bytes(DType::bf16, 3), 6u);
  EXPECT_EQ(storage_bytes(DType::f64, 0), 0u);
  EXPECT_EQ(storage_bytes(DType::q8_0, 64), 68u);
  expect_error(ErrorKind::malformed, "multiple of 32", [] { storage_bytes(DType::q8_0, 33); });
  expect_error(ErrorKind::malformed, "address space",
               [] { storage_bytes(DType::f32, std::uint64_t{1} << 62); });
  expect_error(ErrorKind::malformed, "address space",
               [] { storage_bytes(DType::q8_0, std::numeric_limits<std::uint64_t>::max() / 32 * 32); });
  expect_error(ErrorKind::internal, "block", [] { element_bytes(DType::q8_0); });
}

}  // namespace
}  // namespace assay
