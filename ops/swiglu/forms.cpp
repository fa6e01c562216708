#include <array>

#include "ops/swiglu/swiglu.hpp"

namespace assay::ops {

void swiglu_reference(const Context& context, const SwigluArgs& args);
void swiglu_vector(const Context& context, const SwigluArgs& args);

std::span<const SwigluForm> swiglu_forms() {
  static constexpr auto kForms = std::to_array<SwigluForm>({
      {{"reference", Precision::fp32, "none", 0, "plain loops, the library's exp"}, swiglu_reference},
      {{"vector", Precision::fp32, "none", 0, "vectors, exp by a polynomial"}, swiglu_vector},
  });
  return kForms;
}

}  // namespace assay::ops
