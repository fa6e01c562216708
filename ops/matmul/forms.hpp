#pragma once

#include "ops/matmul/matmul.hpp"

namespace assay::ops {

/// fp32 [n, k] as given.
std::size_t reference_packed_bytes(std::size_t n, std::size_t k);
MatmulWeight reference_pack(std::size_t n, std::size_t k, const WeightRows& rows);
void reference_run(const Context& context, const MatmulArgs& args);

/// bf16 [n, k].
std::size_t reference_bf16_packed_bytes(std::size_t n, std::size_t k);
MatmulWeight reference_bf16_pack(std::size_t n, std::size_t k, const WeightRows& rows);
void reference_bf16_run(const Context& context, const MatmulArgs& args);

}  // namespace assay::ops
