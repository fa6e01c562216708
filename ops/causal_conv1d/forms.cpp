#include <array>

#include "ops/causal_conv1d/causal_conv1d.hpp"

namespace assay::ops {

void causal_conv1d_reference(const Context& context, const CausalConv1dArgs& args);
void causal_conv1d_vector(const Context& context, const CausalConv1dArgs& args);

std::span<const CausalConv1dForm> causal_conv1d_forms() {
  static constexpr auto kForms = std::to_array<CausalConv1dForm>({
      {{"reference", Precision::fp32, "[width, channels]", 0, "plain loops"}, causal_conv1d_reference},
      {{"vector", Precision::fp32, "[width, channels]", 0, "vectors of channels, exp by a polynomial"},
       causal_conv1d_vector},
  });
  return kForms;
}

}  // namespace assay::ops
