#include "ops/embed/check.hpp"
#include "ops/embed/embed.hpp"
#include "ops/parallel.hpp"

namespace assay::ops {

void embed_reference(const Context& context, const EmbedArgs& args) {
  const std::size_t row_bytes = check_embed(args);
  parallel_ranges(context.threads, args.ids.size(), args.dim, [&](std::size_t first, std::size_t last) {
    for (std::size_t t = first; t < last; ++t) {
      const std::byte* row = args.table + static_cast<std::size_t>(args.ids[t]) * row_bytes;
      convert_to_float(args.type, row, {args.y.row(t), args.dim});
    }
  });
}

}  // namespace assay::ops
