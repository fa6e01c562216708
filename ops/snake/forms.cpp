#include <array>

#include "ops/snake/snake.hpp"

namespace assay::ops {

void snake_reference(const Context& context, const SnakeArgs& args);
void snake_vector(const Context& context, const SnakeArgs& args);

std::span<const SnakeForm> snake_forms() {
  static constexpr auto kForms = std::to_array<SnakeForm>({
      {{"reference", Precision::fp32, "none", 0, "plain loops, the library's sine"}, snake_reference},
      {{"vector", Precision::fp32, "none", 0, "vectors of channels, sin² by a polynomial"}, snake_vector},
  });
  return kForms;
}

}  // namespace assay::ops
