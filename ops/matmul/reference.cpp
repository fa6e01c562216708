#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.hpp"
#include "ops/matmul/forms.hpp"

namespace assay::ops {
namespace {

constexpr std::size_t kRowsAtOnce = 128;
constexpr std::size_t kFeaturesPerItem = 16;

/// The sum over k from first to last, as written.
template <class Weight, class ToFloat>
void plain_product(const Context& context, const MatmulArgs& args, Rows<const float> x, const Weight* w,
                   const ToFloat& to_float) {
  const std::size_t n = args.w->n;
  const std::size_t k = args.w->k;
  const std::size_t items = (n + kFeaturesPerItem - 1) / kFeaturesPerItem;
  context.threads.parallel_for(items, [&](std::size_t item, std::size_t /*worker*/) {
    const std::size_t end = std::min(n, (item + 1) * kFeaturesPerItem);
    for (std::size_t i = 0; i < args.m; ++i) {
      const float* row = x.row(i);
      float* y = args.y.row(i);
      for (std::size_t j = item * kFeaturesPerItem; j < end; ++j) {
        float sum = 0;
        for (std::size_t l = 0; l < k; ++l) sum += row[l] * to_float(w[j * k + l]);
        y[j] = args.accumulate ? y[j] + sum : sum;
      }
    }
  });
}

MatmulWeight unpacked_weight(std::size_t n, std::size_t k, std::size_t element_bytes) {
  MatmulWeight weight;
  weight.n = n;
  weight.k = k;
  weight.data = device::Buffer<std::byte>(n * k * element_bytes);
  return weight;
}

/// Calls take(first, count) for rows of w, in order.
template <class Take>
void for_row_blocks(std::size_t n, std::size_t k, const Take& take) {
  for (std::size_t first = 0; k != 0 && first < n; first += kRowsAtOnce)
    take(first, std::min(kRowsAtOnce, n - first));
}

}  // namespace

std::size_t reference_packed_bytes(std::size_t n, std::size_t k) {
  return n * k * sizeof(float);
}

MatmulWeight reference_pack(std::size_t n, std::size_t k, const WeightRows& rows) {
  MatmulWeight weight = unpacked_weight(n, k, sizeof(float));
  auto* values = reinterpret_cast<float*>(weight.data.data());
  for_row_blocks(n, k, [&](std::size_t first, std::size_t count) {
    rows(first, count, {values + first * k, count * k});
  });
  return weight;
}

void reference_run(const Context& context, const MatmulArgs& args) {
  plain_product(context, args, args.x, reinterpret_cast<const float*>(args.w->data.data()),
                [](float value) { return value; });
}

std::size_t reference_bf16_packed_bytes(std::size_t n, std::size_t k) {
  return n * k * sizeof(std::uint16_t);
}

MatmulWeight reference_bf16_pack(std::size_t n, std::size_t k, const WeightRows& rows) {
  MatmulWeight weight = unpacked_weight(n, k, sizeof(std::uint16_t));
  auto* values = reinterpret_cast<std::uint16_t*>(weight.data.data());
  std::vector<float> read(std::min(n, kRowsAtOnce) * k);
  for_row_blocks(n, k, [&](std::size_t first, std::size_t count) {
    const std::span<float> block = std::span(read).first(count * k);
    rows(first, count, block);
    std::ranges::transform(block, values + first * k, float_to_bf16);
  });
  return weight;
}

void reference_bf16_run(const Context& context, const MatmulArgs& args) {
  const std::size_t k = args.w->k;
  const device::Arena::Scope scope(context.arena);
  const std::span<float> rounded = context.arena.allocate<float>(args.m * k);
  for (std::size_t i = 0; i < args.m; ++i) {
    const float* row = args.x.row(i);
    std::transform(row, row + k, rounded.data() + i * k,
                   [](float value) { return bf16_to_float(float_to_bf16(value)); });
  }
  plain_product(context, args, {rounded.data(), k},
                reinterpret_cast<const std::uint16_t*>(args.w->data.data()), bf16_to_float);
}

}  // namespace assay::ops
