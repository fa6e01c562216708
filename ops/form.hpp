#pragma once

#include <span>
#include <string_view>

#include "device/arena.hpp"
#include "device/cpu_features.hpp"
#include "device/thread_pool.hpp"

namespace assay::ops {

/// What a run computes its matrix products in. Everything else is fp32 in both.
enum class Precision { fp32, bf16 };

std::string_view to_string(Precision precision);

/// The part of a form that does not depend on its op.
struct FormInfo {
  std::string_view name;        ///< unique within the op: "reference", "vector", "amx_bf16"
  Precision precision;          ///< of its products
  std::string_view layout;      ///< of its weights or state, in a few words
  device::CpuFeatureSet needs;  ///< instruction sets; the empty set runs anywhere
  std::string_view summary;     ///< one line for `assay forms`
};

/// What every form may use besides its arguments. Forms allocate scratch from the arena before they
/// enter a parallel region.
struct Context {
  device::ThreadPool& threads;
  device::Arena& arena;
};

/// A run of tokens that an op with memory (convolution, recurrence) treats as one sequence.
/// Rows [first, first + length) of the batch. `initial` is the state before the first token, null for
/// zeros; `final`, if not null, receives the state after the last. They may not overlap, and no segment
/// of one call may read what another writes: parents run in an earlier call.
/// A segment of length 0 copies initial to final.
struct SequenceSegment {
  std::size_t first = 0;
  std::size_t length = 0;
  const float* initial = nullptr;
  float* final = nullptr;
};

/// Rows of a matrix with a distance between rows, both counted in elements. Rows are contiguous inside.
template <class T>
struct Rows {
  T* data = nullptr;
  std::size_t stride = 0;
  T* row(std::size_t index) const { return data + index * stride; }
};

}  // namespace assay::ops
