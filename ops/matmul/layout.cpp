#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ops/matmul/panels.hpp"
#include "ops/matmul/round.hpp"

namespace assay::ops::panels {
namespace {

constexpr std::size_t kTileSteps = 16;
// Rows of w read at once, and steps interleaved at once: 32 features of the latter are half an L1 cache.
constexpr std::size_t kRowsAtOnce = 4 * kColumns;
constexpr std::size_t kStepsAtOnce = 128;

/// Calls convert(row, first k, count of k, converted) for pieces of kStepsAtOnce steps, `PerStep` elements
/// each, of every row, and spreads what it wrote over `out`.
template <std::size_t PerStep, class Element, class Convert>
void interleave(std::size_t count, std::size_t width, std::size_t k, std::size_t values_per_step,
                std::size_t steps, Element* out, const Convert& convert) {
  std::array<Element, kStepsAtOnce * PerStep> converted;
  for (std::size_t first = 0; first < steps; first += kStepsAtOnce) {
    const std::size_t end = std::min(steps, first + kStepsAtOnce);
    for (std::size_t row = 0; row < width; ++row) {
      const std::size_t begin_k = std::min(k, first * values_per_step);
      const std::size_t end_k = row < count ? std::min(k, end * values_per_step) : begin_k;
      converted.fill({});
      convert(row, begin_k, end_k - begin_k, converted.data());
      for (std::size_t s = first; s < end; ++s) {
        for (std::size_t j = 0; j < PerStep; ++j) {
          out[(s * width + row) * PerStep + j] = converted[(s - first) * PerStep + j];
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
  interleave<1>(count, width, k, 1, steps, reinterpret_cast<float*>(out),
                [&](std::size_t row, std::size_t first, std::size_t values, float* to) {
                  if (values != 0) std::copy_n(rows.row(row) + first, values, to);
                });
}

void interleave_bf16_pairs(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                           std::size_t steps, std::byte* out) {
  interleave<1>(count, width, k, 2, steps, reinterpret_cast<std::uint32_t*>(out),
                [&](std::size_t row, std::size_t first, std::size_t values, std::uint32_t* to) {
                  if (values != 0) round_to_bf16(rows.row(row) + first, values, to);
                });
}

void interleave_rounded_pairs(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                              std::size_t steps, std::byte* out) {
  interleave<2>(count, width, k, 2, steps, reinterpret_cast<float*>(out),
                [&](std::size_t row, std::size_t first, std::size_t values, float* to) {
                  if (values != 0) round_through_bf16(rows.row(row) + first, values, to);
                });
}

void tile_bf16_rows(Rows<const float> rows, std::size_t count, std::size_t width, std::size_t k,
                    std::size_t steps, std::byte* out) {
  for (std::size_t row = 0; row < width; ++row) {
    for (std::size_t s = 0; s < steps; s += kTileSteps) {
      std::array<std::uint32_t, kTileSteps> pairs{};
      const std::size_t first = std::min(k, 2 * s);
      const std::size_t values = row < count ? std::min(k - first, 2 * kTileSteps) : 0;
      if (values != 0) round_to_bf16(rows.row(row) + first, values, pairs.data());
      std::memcpy(out + (s * width + row * kTileSteps) * sizeof(std::uint32_t), pairs.data(), sizeof pairs);
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
