#include "ops/embed/check.hpp"

#include <string>

#include "base/error.hpp"

namespace assay::ops {

std::size_t check_embed(const EmbedArgs& args) {
  switch (args.type) {
    case DType::f32:
    case DType::bf16:
    case DType::f16:
    case DType::q8_0:
      break;
    default:
      throw Error(ErrorKind::unsupported, {.where = "embedding table",
                                           .found = std::string(to_string(args.type)),
                                           .expected = "F32, BF16, F16 or Q8_0"});
  }
  const std::size_t row_bytes = storage_bytes(args.type, args.dim);
  for (std::size_t t = 0; t < args.ids.size(); ++t) {
    const std::int32_t id = args.ids[t];
    if (id >= 0 && static_cast<std::size_t>(id) < args.vocabulary) continue;
    throw Error(
        ErrorKind::invalid_argument,
        {.where = "token " + std::to_string(t),
         .found = "id " + std::to_string(id),
         .expected = "an id from 0 below the " + std::to_string(args.vocabulary) + " rows of the embedding"});
  }
  return row_bytes;
}

}  // namespace assay::ops
