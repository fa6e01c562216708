#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/tensor_source.hpp"
#include "music/checks.hpp"
#include "ops/matmul/matmul.hpp"

namespace assay::music {

/// A product with what is added to it: y = x · wᵀ + bias.
struct Linear {
  ops::MatmulWeight w;
  std::vector<float> bias;  ///< [n]
};

/// y [m, n] = linear(x [m, k]). The bias is what the product is added to, so a row's bits are its own.
void run_linear(const ops::Context& context, const Linear& linear, ops::Rows<const float> x, std::size_t m,
                ops::Rows<float> y);

/// Reads a part's tensors, checks their shapes and packs products for one form; a tensor is released once
/// read. Names are diffusers'. Everything throws as formats::require and TensorSource::read_rows do.
class WeightLoader {
 public:
  /// `stop` is looked at before each tensor: Error(cancelled).
  WeightLoader(const formats::TensorSource& source, const ops::MatmulForm& form, StopPoint stop = {})
      : source_(source), form_(form), stop_(std::move(stop)) {}

  /// One tensor of a fused product: its rows follow those of the part before it.
  struct Part {
    std::string name;
    std::size_t rows;
  };

  /// A whole tensor, fp32, row-major.
  std::vector<float> values(const std::string& name, std::span<const std::uint64_t> shape) const;
  std::vector<float> vector(const std::string& name, std::size_t size) const;

  /// The parts' rows [Σ rows, k] as one product.
  ops::MatmulWeight product(const std::vector<Part>& parts, std::size_t k) const;
  /// A product of values at hand, [n, k] row-major.
  ops::MatmulWeight product(std::span<const float> values, std::size_t n, std::size_t k) const;

  /// "name.weight" [n, k] and "name.bias" [n].
  Linear linear(const std::string& name, std::size_t n, std::size_t k) const;

  const formats::TensorSource& source() const { return source_; }

 private:
  void read_rows(const std::vector<Part>& parts, std::size_t k, std::size_t first, std::size_t count,
                 std::span<float> rows) const;

  const formats::TensorSource& source_;
  const ops::MatmulForm& form_;
  StopPoint stop_;
};

}  // namespace assay::music
