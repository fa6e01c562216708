#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/tensor_source.hpp"

namespace assay::music {

/// Named fp32 tensors in memory.
class MemoryTensors : public formats::TensorSource {
 public:
  void add(const std::string& name, std::vector<std::uint64_t> shape, std::vector<float> values) {
    tensors_[name] = {{name, DType::f32, std::move(shape), "memory"}, std::move(values)};
  }

  /// Random values whose sums over the inner dimensions stay near 1; `offset` is added to each.
  void add_random(const std::string& name, std::vector<std::uint64_t> shape, float offset = 0) {
    std::uint64_t inner = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) inner *= shape[i];
    std::normal_distribution<float> draw(0,
                                         shape.size() == 1 ? 0.2f : 1 / std::sqrt(static_cast<float>(inner)));
    std::vector<float> values(shape[0] * inner);
    for (float& value : values) value = offset + draw(random_);
    add(name, std::move(shape), std::move(values));
  }

  const std::vector<float>& values(const std::string& name) const { return tensors_.at(name).second; }

  const formats::TensorInfo* find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second.first;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    return names;
  }
  void read_rows(std::string_view name, std::uint64_t first, std::uint64_t count,
                 std::span<float> out) const override {
    const auto& [info, values] = tensors_.find(name)->second;
    const std::size_t row = values.size() / info.shape[0];
    std::ranges::copy(std::span(values).subspan(first * row, count * row), out.begin());
  }
  std::span<const std::byte> stored_bytes(std::string_view /*name*/) const override { return {}; }
  void release(std::string_view /*name*/) const override {}

 private:
  std::map<std::string, std::pair<formats::TensorInfo, std::vector<float>>, std::less<>> tensors_;
  std::mt19937 random_{7};
};

}  // namespace assay::music
