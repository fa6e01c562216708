#include <cstring>

#include "base/dtype.hpp"
#include "ops/embed/check.hpp"
#include "ops/embed/embed.hpp"
#include "ops/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/embed/vector.cpp"
#include <hwy/foreach_target.h>

#include "ops/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::ops {
namespace HWY_NAMESPACE {
namespace {

using WordTag = hn::Rebind<std::uint32_t, FloatTag>;
using WordVector = hn::Vec<WordTag>;

/// `count` 16-bit codes at any address, each in the low half of a word.
HWY_INLINE WordVector load_codes(const std::byte* from, std::size_t count) {
  const hn::Rebind<std::uint16_t, FloatTag> d16;
  HWY_ALIGN std::uint16_t codes[kMostLanes] = {};
  std::memcpy(codes, from, 2 * count);
  return hn::PromoteTo(WordTag(), hn::Load(d16, codes));
}

struct Bf16 {
  static FloatVector decode(WordVector codes) { return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(codes)); }
};

/// As f16_to_float in base/dtype.hpp, lane by lane: Highway's own conversion leaves NaN and infinity out on
/// targets without the instruction.
struct F16 {
  static FloatVector decode(WordVector codes) {
    const FloatTag d;
    const WordTag words;
    const WordVector magnitude = hn::ShiftLeft<13>(hn::And(codes, hn::Set(words, 0x7fffu)));
    const WordVector sign = hn::ShiftLeft<16>(hn::And(codes, hn::Set(words, 0x8000u)));
    const auto special = hn::Eq(hn::And(codes, hn::Set(words, 0x7c00u)), hn::Set(words, 0x7c00u));
    const WordVector exponent = hn::IfThenElseZero(special, hn::Set(words, 0x7f800000u));
    const FloatVector scaled = hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f));
    return hn::BitCast(d, hn::Or(hn::BitCast(words, scaled), hn::Or(exponent, sign)));
  }
};

template <class Code>
void widen(const std::byte* row, float* y, std::size_t dim) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= dim; i += lanes) hn::StoreU(Code::decode(load_codes(row + 2 * i, lanes)), d, y + i);
  if (i < dim) store_part(Code::decode(load_codes(row + 2 * i, dim - i)), d, y + i, dim - i);
}

/// Blocks of an fp16 scale and 32 signed bytes (ggml, src/ggml-common.h, block_q8_0).
void widen_q8_0(const std::byte* row, float* y, std::size_t dim) {
  const FloatTag d;
  const hn::Rebind<std::int32_t, FloatTag> d32;
  const hn::Rebind<std::int8_t, FloatTag> d8;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t first = 0; first < dim; first += 32, row += 34) {
    std::uint16_t half = 0;
    std::memcpy(&half, row, sizeof half);
    const FloatVector scale = hn::Set(d, f16_to_float(half));
    const auto* quants = reinterpret_cast<const std::int8_t*>(row + 2);
    for (std::size_t i = 0; i < 32; i += lanes) {
      const FloatVector quant = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, quants + i)));
      hn::StoreU(hn::Mul(scale, quant), d, y + first + i);
    }
  }
}

}  // namespace

void embed_row(DType type, const std::byte* row, float* y, std::size_t dim) {
  switch (type) {
    case DType::bf16:
      return widen<Bf16>(row, y, dim);
    case DType::f16:
      return widen<F16>(row, y, dim);
    case DType::q8_0:
      return widen_q8_0(row, y, dim);
    default:
      std::copy_n(row, dim * sizeof(float), reinterpret_cast<std::byte*>(y));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace assay::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::ops {

HWY_EXPORT(embed_row);

void embed_vector(const Context& context, const EmbedArgs& args) {
  const std::size_t row_bytes = check_embed(args);
  parallel_ranges(context.threads, args.ids.size(), args.dim, [&](std::size_t first, std::size_t last) {
    for (std::size_t t = first; t < last; ++t) {
      const std::byte* row = args.table + static_cast<std::size_t>(args.ids[t]) * row_bytes;
      HWY_DYNAMIC_DISPATCH(embed_row)(args.type, row, args.y.row(t), args.dim);
    }
  });
}

}  // namespace assay::ops
#endif
