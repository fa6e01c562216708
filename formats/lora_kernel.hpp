#pragma once

#include <cstddef>

namespace assay::formats {

/// Adds scale · (b · a) to `rows` rows of `columns` fp32 values at `out`; `a` is [rank, columns], `b` [rows,
/// rank], all row-major. Each element's sum runs over the rank in order, in fp32, and is scaled and added
/// once, so the result does not depend on how a tensor's rows were grouped.
void add_low_rank(float* out, const float* a, const float* b, std::size_t rows, std::size_t rank,
                  std::size_t columns, float scale);

}  // namespace assay::formats
