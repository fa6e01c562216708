#include "ops/attention/forms.hpp"

#include <array>
#include <string>

#include "base/error.hpp"

namespace assay::ops {
namespace attention {

void check_shape(const AttentionArgs& args) {
  if (args.kv_heads == 0 || args.heads == 0 || args.heads % args.kv_heads != 0 || args.head_dim == 0) {
    throw Error(ErrorKind::mismatch,
                {.where = "attention",
                 .found = std::to_string(args.heads) + " heads over " + std::to_string(args.kv_heads) +
                          " key-value heads of " + std::to_string(args.head_dim),
                 .expected = "heads a multiple of key-value heads, no dimension 0"});
  }
  for (const AttentionSegment& segment : args.segments) {
    const std::size_t own = segment.runs.empty() ? 0 : segment.runs.back().length;
    if (own != segment.length) {
      throw Error(ErrorKind::mismatch, {.where = "attention: segment at row " + std::to_string(segment.first),
                                        .found = "last run of " + std::to_string(own) + " keys",
                                        .expected = std::to_string(segment.length) + ", one a query"});
    }
  }
}

}  // namespace attention

std::span<const AttentionForm> attention_forms() {
  constexpr std::string_view kKeys = "keys and values fp32 [tokens, kv_heads, head_dim]";
  static constexpr auto kForms = std::to_array<AttentionForm>({
      {{"reference", Precision::fp32, kKeys, 0, "query by query, plain loops"}, attention::run_reference},
      {{"vector", Precision::fp32, kKeys, 0, "tiles of queries and grouped heads against blocks of keys"},
       attention::run_vector},
  });
  return kForms;
}

}  // namespace assay::ops
