#include <array>

#include "ops/rope/rope.hpp"

namespace assay::ops {

void rope_reference(const Context& context, const RopeArgs& args);
void rope_vector(const Context& context, const RopeArgs& args);

std::span<const RopeForm> rope_forms() {
  static constexpr auto kForms = std::to_array<RopeForm>({
      {{"reference", Precision::fp32, "none", 0, "plain loops, each product rounded"}, rope_reference},
      {{"vector", Precision::fp32, "none", 0, "vectors of angles; the reference's bits"}, rope_vector},
  });
  return kForms;
}

}  // namespace assay::ops
