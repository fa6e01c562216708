#include "ops/gated_delta_rule/forms.hpp"

#include <array>
#include <string>

#include "base/error.hpp"

namespace assay::ops {
namespace gdn {

void check_shape(const GatedDeltaRuleArgs& args) {
  const bool fits = args.key_heads != 0 && args.value_heads != 0 && args.value_heads % args.key_heads == 0 &&
                    args.key_dim != 0 && args.value_dim != 0;
  if (fits) return;
  throw Error(
      ErrorKind::mismatch,
      {.where = "gated_delta_rule",
       .found = std::to_string(args.key_heads) + " key heads of " + std::to_string(args.key_dim) + ", " +
                std::to_string(args.value_heads) + " value heads of " + std::to_string(args.value_dim),
       .expected = "value heads a multiple of key heads, no dimension 0"});
}

}  // namespace gdn

namespace {

constexpr std::string_view kState = "state fp32 [value_heads, key_dim, value_dim]";

template <std::size_t kChunk>
constexpr GatedDeltaRuleForm chunked(std::string_view name) {
  return {{name, Precision::fp32, kState, 0, "chunk by chunk: products of matrices and a triangular solve"},
          kChunk,
          [](const Context& context, const GatedDeltaRuleArgs& args) {
            gdn::run_chunked(context, args, kChunk);
          }};
}

}  // namespace

std::span<const GatedDeltaRuleForm> gated_delta_rule_forms() {
  static constexpr auto kForms = std::to_array<GatedDeltaRuleForm>({
      {{"reference", Precision::fp32, kState, 0, "token by token, plain loops"}, 1, gdn::run_reference},
      {{"vector", Precision::fp32, kState, 0, "token by token, one pass over the state"}, 1, gdn::run_vector},
      chunked<16>("chunk_16"),
      chunked<32>("chunk_32"),
      chunked<64>("chunk_64"),
      chunked<128>("chunk_128"),
  });
  return kForms;
}

}  // namespace assay::ops
