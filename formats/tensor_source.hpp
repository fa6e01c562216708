#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"

namespace assay::formats {

/// What is known of a tensor before its bytes are read.
struct TensorInfo {
  std::string name;  ///< as the source lists it
  DType type = DType::f32;
  std::vector<std::uint64_t> shape;  ///< outermost first; empty for a scalar
  std::string origin;                ///< the file that holds it, for messages
};

/// "[2, 3]"
std::string describe_shape(std::span<const std::uint64_t> shape);
/// Product of the dimensions; the format readers have checked that it does not overflow.
std::uint64_t element_count(const TensorInfo& info);

/// Named tensors, wherever they come from: safetensors, GGUF, a checkpoint with its adapter merged, a
/// generator of synthetic weights. Reading is const and may run from several threads.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  /// Null when there is none of that name.
  virtual const TensorInfo* find(std::string_view name) const = 0;
  virtual std::vector<std::string> names() const = 0;

  /// Rows [first, first + count) along the outermost dimension, as fp32, row-major; `out` holds exactly them
  /// (a scalar is one row of one element). Throws Error(missing) for an unknown tensor,
  /// Error(invalid_argument) for rows outside it, Error(non_finite) naming tensor, file and element for a NaN
  /// or infinity.
  virtual void read_rows(std::string_view name, std::uint64_t first, std::uint64_t count,
                         std::span<float> out) const = 0;

  /// The tensor's bytes as stored, valid while the source lives and until release(name); null data where they
  /// are not stored as such (a merged or generated tensor).
  virtual std::span<const std::byte> stored_bytes(std::string_view name) const = 0;

  /// The caller is done with this tensor for now: a mapped source gives its pages back.
  virtual void release(std::string_view name) const = 0;
};

/// The tensor, or Error(missing) that names it and says what the source has instead (nearest names).
const TensorInfo& require(const TensorSource& source, std::string_view name);
/// The same with its shape checked: Error(mismatch) naming file, tensor, both shapes.
const TensorInfo& require(const TensorSource& source, std::string_view name,
                          std::span<const std::uint64_t> shape);
/// Throws Error(mismatch) naming file and tensor where its elements are not of a floating type.
void require_floating(const TensorInfo& info);

/// A whole tensor of that shape as fp32.
std::vector<float> read_tensor(const TensorSource& source, std::string_view name,
                               std::span<const std::uint64_t> shape);

}  // namespace assay::formats
