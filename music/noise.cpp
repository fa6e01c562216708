#include "music/noise.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <random>

namespace assay::music {
namespace {

constexpr double kLn2 = 0.693147180559945309417232121458;
constexpr double kPi = 3.14159265358979323846264338328;
constexpr double kTwoTo32 = 4294967296.0;

/// ln x for positive normal x, within a few units in the last place of double. Libraries differ in their
/// logarithms' last bits; this has one answer.
double natural_logarithm(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (mantissa > 1.41421356237309515) {
    mantissa *= 0.5;
    exponent += 1;
  }
  // ln m = 2 artanh z with z = (m − 1)/(m + 1), |z| < 0.172: the series' 12th term is below 2^-64.
  const double z = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = z * z;
  double sum = 0;
  for (int term = 12; term >= 0; --term) sum = sum * square + 1.0 / (2 * term + 1);
  return 2.0 * z * sum + exponent * kLn2;
}

struct CosineSine {
  double cosine;
  double sine;
};

/// Of an angle in [0, π/4], by Taylor's series: the terms left out are below 2^-60.
CosineSine small_angle(double angle) {
  const double square = angle * angle;
  double cosine = 0;
  double sine = 0;
  for (int term = 8; term >= 1; --term) {
    cosine = (cosine + 1.0) * -square / ((2.0 * term - 1.0) * (2.0 * term));
    sine = (sine + 1.0) * -square / ((2.0 * term) * (2.0 * term + 1.0));
  }
  return {cosine + 1.0, (sine + 1.0) * angle};
}

/// Of the angle 2π·word/2³². The octant is cut off in integers, exactly.
CosineSine turn(std::uint32_t word) {
  const std::uint32_t octant = word >> 29;
  std::uint32_t rest = word & 0x1fffffffu;
  const bool odd = (octant & 1u) != 0;
  if (odd) rest = 0x20000000u - rest;  // from the octant's far end, where the roles change
  CosineSine value = small_angle(2.0 * kPi * (static_cast<double>(rest) / kTwoTo32));
  const std::uint32_t quarter = octant >> 1;
  if (odd) value = {value.sine, value.cosine};
  switch (quarter) {
    case 0:
      return value;
    case 1:
      return {-value.sine, value.cosine};
    case 2:
      return {-value.cosine, -value.sine};
    default:
      return {value.sine, -value.cosine};
  }
}

std::array<std::uint32_t, 4> block_of(std::uint64_t seed, NoiseStream stream, std::uint64_t block) {
  return philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                     static_cast<std::uint32_t>(stream), 0},
                    {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

std::array<float, 4> normals_of(const std::array<std::uint32_t, 4>& words) {
  std::array<float, 4> values{};
  for (std::size_t pair = 0; pair < 2; ++pair) {
    const double uniform = (static_cast<double>(words[2 * pair]) + 0.5) / kTwoTo32;
    const double radius = std::sqrt(-2.0 * natural_logarithm(uniform));
    const CosineSine direction = turn(words[2 * pair + 1]);
    values[2 * pair] = static_cast<float>(radius * direction.cosine);
    values[2 * pair + 1] = static_cast<float>(radius * direction.sine);
  }
  return values;
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

void fill_normal(std::uint64_t seed, NoiseStream stream, std::uint64_t first, std::span<float> out) {
  std::array<float, 4> values{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t k = first + i;
    if (i == 0 || k % 4 == 0) values = normals_of(block_of(seed, stream, k / 4));
    out[i] = values[k % 4];
  }
}

double uniform(std::uint64_t seed, NoiseStream stream, std::uint64_t k) {
  return static_cast<double>(block_of(seed, stream, k / 4)[k % 4]) / kTwoTo32;
}

std::uint64_t fresh_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace assay::music
