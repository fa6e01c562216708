#include "music/weight_loader.hpp"

#include <algorithm>
#include <array>

namespace assay::music {

void run_linear(const ops::Context& context, const Linear& linear, ops::Rows<const float> x, std::size_t m,
                ops::Rows<float> y) {
  for (std::size_t row = 0; row < m; ++row) std::copy(linear.bias.begin(), linear.bias.end(), y.row(row));
  ops::matmul(context, {.x = x, .m = m, .w = &linear.w, .y = y, .accumulate = true});
}

std::vector<float> WeightLoader::values(const std::string& name, std::span<const std::uint64_t> shape) const {
  stop_.check();
  std::vector<float> values = formats::read_tensor(source_, name, shape);
  source_.release(name);
  return values;
}

std::vector<float> WeightLoader::vector(const std::string& name, std::size_t size) const {
  return values(name, std::array<std::uint64_t, 1>{size});
}

ops::MatmulWeight WeightLoader::product(const std::vector<Part>& parts, std::size_t k) const {
  stop_.check();
  std::size_t n = 0;
  for (const Part& part : parts) {
    formats::require(source_, part.name, std::array<std::uint64_t, 2>{part.rows, k});
    n += part.rows;
  }
  ops::MatmulWeight packed =
      form_.pack(n, k, [&](std::size_t first, std::size_t count, std::span<float> rows) {
        read_rows(parts, k, first, count, rows);
      });
  for (const Part& part : parts) source_.release(part.name);
  return packed;
}

ops::MatmulWeight WeightLoader::product(std::span<const float> values, std::size_t n, std::size_t k) const {
  return form_.pack(n, k, [&](std::size_t first, std::size_t count, std::span<float> rows) {
    std::ranges::copy(values.subspan(first * k, count * k), rows.begin());
  });
}

Linear WeightLoader::linear(const std::string& name, std::size_t n, std::size_t k) const {
  return {.w = product({{name + ".weight", n}}, k), .bias = vector(name + ".bias", n)};
}

void WeightLoader::read_rows(const std::vector<Part>& parts, std::size_t k, std::size_t first,
                             std::size_t count, std::span<float> rows) const {
  std::size_t part_begin = 0;
  for (const Part& part : parts) {
    const std::size_t begin = std::max(first, part_begin);
    const std::size_t end = std::min(first + count, part_begin + part.rows);
    if (begin < end) {
      source_.read_rows(part.name, begin - part_begin, end - begin,
                        rows.subspan((begin - first) * k, (end - begin) * k));
    }
    part_begin += part.rows;
  }
}

}  // namespace assay::music
