#include "formats/tensor_source.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.hpp"

namespace assay::formats {
namespace {

constexpr std::size_t kSuggestions = 3;
constexpr std::size_t kNamesCompared = 20000;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

std::string nearest_names(const TensorSource& source, std::string_view wanted) {
  const std::vector<std::string> names = source.names();
  if (names.empty()) return "the source holds no tensors";
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (std::string_view name : names) {
    if (ranked.size() == kNamesCompared) break;
    ranked.emplace_back(edit_distance(name.substr(0, 128), wanted.substr(0, 128)), name);
  }
  const std::size_t shown = std::min(kSuggestions, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(shown), ranked.end());
  std::string text = "nearest of the " + std::to_string(names.size()) + " there: ";
  for (std::size_t i = 0; i < shown; ++i) text.append(i == 0 ? "" : ", ").append(ranked[i].second);
  return text;
}

}  // namespace

std::string describe_shape(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::uint64_t element_count(const TensorInfo& info) {
  return std::accumulate(info.shape.begin(), info.shape.end(), std::uint64_t{1}, std::multiplies<>());
}

const TensorInfo& require(const TensorSource& source, std::string_view name) {
  if (const TensorInfo* info = source.find(name)) return *info;
  const std::vector<std::string> names = source.names();
  const std::string file = names.empty() ? "" : " of " + source.find(names.front())->origin;
  throw Error(ErrorKind::missing, {.where = "tensor '" + std::string(name) + "'",
                                   .found = "not in the weights" + file,
                                   .advice = nearest_names(source, name)});
}

const TensorInfo& require(const TensorSource& source, std::string_view name,
                          std::span<const std::uint64_t> shape) {
  const TensorInfo& info = require(source, name);
  if (std::ranges::equal(info.shape, shape)) return info;
  throw Error(ErrorKind::mismatch, {.where = info.origin + ": tensor '" + std::string(name) + "'",
                                    .found = "shape " + describe_shape(info.shape),
                                    .expected = describe_shape(shape),
                                    .advice = "the weights and the configuration are of different models"});
}

void require_floating(const TensorInfo& info) {
  const bool floating = info.type == DType::f64 || info.type == DType::f32 || info.type == DType::f16 ||
                        info.type == DType::bf16 || info.type == DType::q8_0;
  if (floating) return;
  throw Error(ErrorKind::mismatch, {.where = info.origin + ": tensor '" + info.name + "'",
                                    .found = "element type " + std::string(to_string(info.type)),
                                    .expected = "a floating type"});
}

std::vector<float> read_tensor(const TensorSource& source, std::string_view name,
                               std::span<const std::uint64_t> shape) {
  const TensorInfo& info = require(source, name, shape);
  require_floating(info);
  std::vector<float> values(element_count(info));
  source.read_rows(name, 0, shape.empty() ? 1 : shape[0], values);
  return values;
}

}  // namespace assay::formats
