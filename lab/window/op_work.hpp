#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/thread_pool.hpp"
#include "lab/window/floor.hpp"
#include "ops/selection.hpp"

namespace assay::lab {

/// Something to time, made ready.
class Work {
 public:
  virtual ~Work() = default;
  virtual void run() = 0;
  virtual WorkCost cost() const = 0;
};

using OpSizes = std::map<std::string, std::size_t>;

/// The ops that can be timed alone and the sizes that each needs:
///   matmul            m (rows), n (outputs), k (inputs)
///   attention         tokens, heads, kv_heads, head_dim; inherited (keys before the tokens, may be 0)
///   gated_delta_rule  tokens, key_heads, value_heads, key_dim, value_dim
///   causal_conv1d     tokens, channels, width
///   rms_norm          rows, dim
///   swiglu            rows, dim
///   conv1d            length (rows of x), in_channels, out_channels, kernel, stride, dilation, padding (may
///                     be 0)
///   conv_transpose1d  length, in_channels, out_channels, kernel, stride, padding (may be 0)
///   snake             rows, channels
std::vector<std::string> timed_ops();

/// Checks an op's name and sizes without making anything. Throws Error(unsupported) for an op not listed
/// above, Error(invalid_argument) naming `where` for a size that is absent, unknown, out of range or does not
/// go with another, or where the values would take more than 16 GiB.
void check_op(std::string_view op, const OpSizes& sizes, const std::string& where);

/// Bytes of an op's values, before a form packs weights.
double op_bytes(std::string_view op, const OpSizes& sizes);

/// The op on random values by the selection's form. Operations are counted as the op's mathematics has them
/// (see lab/bench_decision.hpp), of the convolutions those on values that are there; norms and activations
/// count bytes alone. Throws what `check_op` throws.
std::unique_ptr<Work> make_op_work(std::string_view op, const OpSizes& sizes, const ops::Selection& selection,
                                   device::ThreadPool& threads);

}  // namespace assay::lab
