#include "ops/attention/forms.hpp"

#include <array>
#include <string>

#include "base/error.hpp"

namespace assay::ops {
namespace attention {

namespace {

std::string keys_wanted(AttentionMask mask, std::size_t queries) {
  switch (mask) {
    case AttentionMask::causal:
      return "a last run of " + std::to_string(queries) + ", one a query";
    case AttentionMask::full:
      return "at least one";
    case AttentionMask::sliding:
      return std::to_string(queries) + ", one a query";
  }
  return {};
}

bool keys_fit(AttentionMask mask, const AttentionSegment& segment) {
  switch (mask) {
    case AttentionMask::causal:
      return (segment.runs.empty() ? 0 : segment.runs.back().length) == segment.length;
    case AttentionMask::full:
      return segment.length == 0 || key_count(segment) > 0;
    case AttentionMask::sliding:
      return key_count(segment) == segment.length;
  }
  return false;
}

}  // namespace

void check_shape(const AttentionArgs& args) {
  if (args.kv_heads == 0 || args.heads == 0 || args.heads % args.kv_heads != 0 || args.head_dim == 0) {
    throw Error(ErrorKind::mismatch,
                {.where = "attention",
                 .found = std::to_string(args.heads) + " heads over " + std::to_string(args.kv_heads) +
                          " key-value heads of " + std::to_string(args.head_dim),
                 .expected = "heads a multiple of key-value heads, no dimension 0"});
  }
  for (const AttentionSegment& segment : args.segments) {
    if (keys_fit(args.mask, segment)) continue;
    const std::size_t last = segment.runs.empty() ? 0 : segment.runs.back().length;
    throw Error(ErrorKind::mismatch, {.where = "attention: segment at row " + std::to_string(segment.first),
                                      .found = std::to_string(key_count(segment)) + " keys, " +
                                               std::to_string(last) + " of them in the last run",
                                      .expected = keys_wanted(args.mask, segment.length)});
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
