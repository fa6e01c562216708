#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ops/matmul/panels.hpp"
#include "ops/matmul/words.hpp"

namespace assay::ops::panels {
namespace {

constexpr std::size_t kTileSteps = 16;
// Rows of w read at once.
constexpr std::size_t kRowsAtOnce = 4 * kColumns;
// Words interleaved at once: those of 32 features are an L1 cache, near enough.
constexpr std::size_t kWordsAtOnce = 256;
constexpr std::size_t kRowsTogether = 4;

using Words = void (*)(const float* values, std::size_t count, std::uint32_t* words);

void copy_words(const float* values, std::size_t count, std::uint32_t* words) {
  std::memcpy(words, values, count * sizeof(float));
}

struct Source {
  Rows<const float> rows;
  std::size_t count;
  std::size_t k;
  std::size_t values_per_word;
  Words to_words;

  /// Words [first, first + count) of a row; zeros past the rows and past k.
  void read(std::size_t row, std::size_t first, std::size_t words, std::uint32_t* out) const {
    const std::size_t begin = std::min(k, first * values_per_word);
    const std::size_t end = row < count ? std::min(k, (first + words) * values_per_word) : begin;
    const std::size_t written = (end - begin + values_per_word - 1) / values_per_word;
    if (written != 0) to_words(rows.row(row) + begin, end - begin, out);
    std::fill(out + written, out + words, 0);
  }
};

/// out[word][row of width]
void interleave(const Source& source, std::size_t width, std::size_t words, std::uint32_t* out) {
  std::array<std::uint32_t, kRowsTogether * kWordsAtOnce> read;
  for (std::size_t first = 0; first < words; first += kWordsAtOnce) {
    const std::size_t count = std::min(kWordsAtOnce, words - first);
    for (std::size_t row = 0; row < width; row += kRowsTogether) {
      const std::size_t together = std::min(kRowsTogether, width - row);
      std::uint32_t* to = out + first * width + row;
      for (std::size_t r = 0; r < together; ++r) source.read(row + r, first, count, &read[r * kWordsAtOnce]);
      if (together == kRowsTogether) {
        interleave_four(read.data(), kWordsAtOnce, count, width, to);
      } else {
        for (std::size_t r = 0; r < together; ++r) {
          for (std::size_t i = 0; i < count; ++i) to[i * width + r] = read[r * kWordsAtOnce + i];
        }
      }
    }
  }
}

}  // namespace

const Layout kFloatLayout = {.values_per_step = 1, .step_multiple = 1, .interleave = interleave_floats};
const Layout kBf16Layout = {
    .values_per_step = 2, .step_multiple = kTileSteps, .interleave = interleave_bf16_pairs};

void interleave_floats(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                       std::size_t steps, std::byte* out) {
  interleave({rows, count, k, 1, copy_words}, width, steps, reinterpret_cast<std::uint32_t*>(out));
}

void interleave_bf16_pairs(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                           std::size_t steps, std::byte* out) {
  interleave({rows, count, k, 2, round_to_bf16}, width, steps, reinterpret_cast<std::uint32_t*>(out));
}

void interleave_rounded_floats(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                               std::size_t steps, std::byte* out) {
  interleave({rows, count, k, 1, round_through_bf16}, width, 2 * steps,
             reinterpret_cast<std::uint32_t*>(out));
}

void tile_bf16_rows(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                    std::size_t steps, std::byte* out) {
  const Source source = {rows, count, k, 2, round_to_bf16};
  auto* words = reinterpret_cast<std::uint32_t*>(out);
  for (std::size_t row = 0; row < width; ++row) {
    for (std::size_t s = 0; s < steps; s += kTileSteps) {
      source.read(row, s, kTileSteps, words + s * width + row * kTileSteps);
    }
  }
}

std::size_t steps_of(const Layout& layout, std::size_t k) {
  const std::size_t values = layout.values_per_step * layout.step_multiple;
  return (k + values - 1) / values * layout.step_multiple;
}

std::size_t packed_bytes(const Layout& layout, std::size_t n, std::size_t k) {
  return (n + kColumns - 1) / kColumns * steps_of(layout, k) * kStepBytes;
}

MatmulWeight pack(const Layout& layout, std::size_t n, std::size_t k, const WeightRows& rows) {
  MatmulWeight weight;
  weight.n = n;
  weight.k = k;
  weight.data = device::Buffer<std::byte>(packed_bytes(layout, n, k));
  if (k == 0) return weight;
  const std::size_t steps = steps_of(layout, k);
  std::vector<float> read(std::min(n, kRowsAtOnce) * k);
  for (std::size_t first = 0; first < n; first += kRowsAtOnce) {
    const std::size_t count = std::min(kRowsAtOnce, n - first);
    rows(first, count, std::span(read).first(count * k));
    for (std::size_t row = 0; row < count; row += kColumns) {
      layout.interleave({read.data() + row * k, k}, std::min(kColumns, count - row), kColumns, k, steps,
                        weight.data.data() + (first + row) * steps * (kStepBytes / kColumns));
    }
  }
  return weight;
}

}  // namespace assay::ops::panels
