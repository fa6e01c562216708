#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::backbone {

/// Tokens [offset, offset + count) of a segment, run in one call.
struct Piece {
  std::size_t segment = 0;
  std::size_t offset = 0;
  std::size_t count = 0;
  std::size_t row = 0;  ///< of its first token in the call's batch
};

/// One pass over the weights.
struct Call {
  std::vector<Piece> pieces;
  std::size_t tokens = 0;
};

/// Cuts segments of these lengths, in their order, into calls of at most `call_tokens` tokens. A segment is
/// cut only at multiples of `alignment` from its own first token, where a chunked scan may be resumed with
/// the same bits. A segment's pieces come in order, and all of an earlier segment's come no later than the
/// first of a later one: with parents listed before children no child outruns its parent.
/// Throws Error(invalid_argument) when `call_tokens` is less than `alignment` or a length is 0.
std::vector<Call> plan_calls(std::span<const std::size_t> lengths, std::size_t call_tokens,
                             std::size_t alignment);

}  // namespace assay::backbone
