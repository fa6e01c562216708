#include "formats/lora_kernel.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/lora_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::formats::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

/// One vector of columns of up to four rows, so that each load of `a` serves four sums.
template <std::size_t kRows>
void AddColumns(Tag tag, float* out, const float* a, const float* b, std::size_t rank, std::size_t columns,
                float scale) {
  Vec sums[kRows];
  for (std::size_t row = 0; row < kRows; ++row) sums[row] = hn::Zero(tag);
  for (std::size_t r = 0; r < rank; ++r) {
    const Vec direction = hn::LoadU(tag, a + r * columns);
    for (std::size_t row = 0; row < kRows; ++row) {
      sums[row] = hn::MulAdd(hn::Set(tag, b[row * rank + r]), direction, sums[row]);
    }
  }
  const Vec factor = hn::Set(tag, scale);
  for (std::size_t row = 0; row < kRows; ++row) {
    float* place = out + row * columns;
    hn::StoreU(hn::Add(hn::LoadU(tag, place), hn::Mul(factor, sums[row])), tag, place);
  }
}

template <std::size_t kRows>
void AddRows(float* out, const float* a, const float* b, std::size_t rank, std::size_t columns, float scale) {
  const Tag tag;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t column = 0;
  for (; column + lanes <= columns; column += lanes) {
    AddColumns<kRows>(tag, out + column, a + column, b, rank, columns, scale);
  }
  const hn::CappedTag<float, 1> one;
  for (; column < columns; ++column) {
    for (std::size_t row = 0; row < kRows; ++row) {
      auto sum = hn::Zero(one);
      for (std::size_t r = 0; r < rank; ++r) {
        sum = hn::MulAdd(hn::Set(one, b[row * rank + r]), hn::LoadU(one, a + r * columns + column), sum);
      }
      float* place = out + row * columns + column;
      hn::StoreU(hn::Add(hn::LoadU(one, place), hn::Mul(hn::Set(one, scale), sum)), one, place);
    }
  }
}

void AddLowRank(float* out, const float* a, const float* b, std::size_t rows, std::size_t rank,
                std::size_t columns, float scale) {
  std::size_t row = 0;
  for (; row + 4 <= rows; row += 4) AddRows<4>(out + row * columns, a, b + row * rank, rank, columns, scale);
  for (; row < rows; ++row) AddRows<1>(out + row * columns, a, b + row * rank, rank, columns, scale);
}

}  // namespace assay::formats::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::formats {

HWY_EXPORT(AddLowRank);

void add_low_rank(float* out, const float* a, const float* b, std::size_t rows, std::size_t rank,
                  std::size_t columns, float scale) {
  HWY_DYNAMIC_DISPATCH(AddLowRank)(out, a, b, rows, rank, columns, scale);
}

}  // namespace assay::formats
#endif
