#pragma once

#include <array>
#include <cstdint>
#include <span>

/// The noise that a song starts from: the same on every device, compiler and number of threads, because value
/// k depends on the seed and k alone, and is computed from integers and IEEE additions, multiplications,
/// divisions and square roots.
namespace assay::music {

/// One block of Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; SC
/// 2011): four random words from a counter and a key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

/// What a seed's numbers are for. Streams of one seed are independent.
enum class NoiseStream : std::uint32_t {
  latents = 0,  ///< the noise that the sampler starts from: [frames, 64], row-major
  planner = 1,  ///< the planner's draws
};

/// Standard normal values number `first`, first + 1, … of a seed's stream.
///
/// Key: the seed's low and high word. Counter of block b: {b's low word, b's high word, stream, 0}. Block b
/// gives values 4b to 4b + 3 from its words w0 … w3 by Box and Muller, in double, rounded to fp32 at the end:
/// radius √(−2 ln((w0 + ½)/2³²)), angle 2π·w1/2³², value 4b the cosine's and 4b + 1 the sine's; w2 and w3
/// give the other two. So |value| < 6.8.
void fill_normal(std::uint64_t seed, NoiseStream stream, std::uint64_t first, std::span<float> out);

/// Uniform value number k of a seed's stream, in [0, 1): word k mod 4 of block k / 4, over 2³².
double uniform(std::uint64_t seed, NoiseStream stream, std::uint64_t k);

/// A seed from the operating system's randomness, for whoever gave none.
std::uint64_t fresh_seed();

}  // namespace assay::music
