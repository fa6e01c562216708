#include <array>

#include "ops/embed/embed.hpp"

namespace assay::ops {

void embed_reference(const Context& context, const EmbedArgs& args);
void embed_vector(const Context& context, const EmbedArgs& args);

std::span<const EmbedForm> embed_forms() {
  static constexpr auto kForms = std::to_array<EmbedForm>({
      {{"reference", Precision::fp32, "as the checkpoint's", 0, "one element at a time"}, embed_reference},
      {{"vector", Precision::fp32, "as the checkpoint's", 0, "vectors of table values; the reference's bits"},
       embed_vector},
  });
  return kForms;
}

}  // namespace assay::ops
