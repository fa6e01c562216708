#include <array>

#include "ops/rms_norm/rms_norm.hpp"

namespace assay::ops {

void rms_norm_reference(const Context& context, const RmsNormArgs& args);
void rms_norm_vector(const Context& context, const RmsNormArgs& args);

std::span<const RmsNormForm> rms_norm_forms() {
  static constexpr auto kForms = std::to_array<RmsNormForm>({
      {{"reference", Precision::fp32, "none", 0, "plain loops, the sum of squares in ascending order"},
       rms_norm_reference},
      {{"vector", Precision::fp32, "none", 0, "four vector sums of squares that join in a fixed order"},
       rms_norm_vector},
  });
  return kForms;
}

}  // namespace assay::ops
