#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.hpp"
#include "ops/form.hpp"

/// Op `embed`: y[t, ·] = table[ids[t], ·], converted exactly to fp32. The table stays mapped as the
/// checkpoint ships it, unaligned.
namespace assay::ops {

struct EmbedArgs {
  DType type = DType::f32;  ///< f32, bf16, f16 or q8_0 (dim a multiple of 32)
  const std::byte* table = nullptr;
  std::size_t vocabulary = 0;  ///< rows of the table
  std::size_t dim = 0;
  std::span<const std::int32_t> ids = {};  ///< each in [0, vocabulary); else Error(invalid_argument)
  Rows<float> y = {};
};

struct EmbedForm {
  FormInfo info;
  void (*run)(const Context& context, const EmbedArgs& args);
};

std::span<const EmbedForm> embed_forms();

}  // namespace assay::ops
