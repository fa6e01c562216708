#include "backbone/call_plan.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace assay::backbone {
namespace {

std::size_t tokens_that_fit(std::size_t remaining, std::size_t room, std::size_t alignment) {
  return remaining <= room ? remaining : room / alignment * alignment;
}

}  // namespace

std::vector<Call> plan_calls(std::span<const std::size_t> lengths, std::size_t call_tokens,
                             std::size_t alignment) {
  if (alignment == 0 || call_tokens < alignment) {
    throw Error(ErrorKind::invalid_argument,
                {.where = "call length",
                 .found = std::to_string(call_tokens) + " tokens",
                 .expected = "at least the scan's chunk of " + std::to_string(alignment)});
  }
  std::vector<Call> calls;
  for (std::size_t segment = 0; segment < lengths.size(); ++segment) {
    if (lengths[segment] == 0) {
      throw Error(
          ErrorKind::invalid_argument,
          {.where = "segment " + std::to_string(segment), .found = "no tokens", .expected = "at least one"});
    }
    for (std::size_t offset = 0; offset < lengths[segment];) {
      const std::size_t remaining = lengths[segment] - offset;
      if (calls.empty() || tokens_that_fit(remaining, call_tokens - calls.back().tokens, alignment) == 0) {
        calls.emplace_back();
      }
      Call& call = calls.back();
      const std::size_t count = tokens_that_fit(remaining, call_tokens - call.tokens, alignment);
      call.pieces.push_back({segment, offset, count, call.tokens});
      call.tokens += count;
      offset += count;
    }
  }
  return calls;
}

}  // namespace assay::backbone
