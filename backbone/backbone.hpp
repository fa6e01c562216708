#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backbone/op_observer.hpp"
#include "backbone/part_forms.hpp"
#include "backbone/state.hpp"
#include "formats/model_config.hpp"
#include "formats/tensor_source.hpp"
#include "ops/selection.hpp"

namespace assay::backbone {

/// A run of tokens with one parent. Positions follow the parent's end.
struct Segment {
  std::span<const std::int32_t> tokens = {};
  std::int32_t parent = -1;  ///< index of an earlier segment of the same pass; −1: `parent_state`, or a root
  std::shared_ptr<const SegmentState> parent_state =
      {};  ///< a state from earlier: a parent without tokens here
  /// A state of Backbone::growing_state that these tokens are appended to, in one segment of a pass: how a
  /// text is continued token by token. Its parent is that state's, so `parent` and `parent_state` stay unset.
  std::shared_ptr<SegmentState> growing = {};
  bool keep_state = false;                 ///< hand its state back in Pass::states
  std::vector<std::size_t> readouts = {};  ///< indices of its tokens whose hidden vector is wanted
};

/// What a pass gives: per segment, in the order asked, the final-normed hidden vectors of its readouts.
struct PassResult {
  std::vector<std::vector<float>> hidden;  ///< per segment [readouts, hidden_size], row-major
  std::vector<std::shared_ptr<const SegmentState>> states;  ///< per segment, null where not kept
};

/// Called with every layer's output, for tests against an oracle: tap("layer_03", rows, width, values).
using Tap =
    std::function<void(std::string_view name, std::size_t rows, std::size_t width, const float* values)>;

struct RunOptions {
  std::size_t call_tokens = 1024;  ///< L: tokens in one call at most; rounded down to the scan's chunk
  const std::atomic<bool>* cancel = nullptr;  ///< looked at between layers; Error(cancelled)
  OpObserver* observer = nullptr;             ///< null: nothing is timed
  Tap tap = nullptr;                          ///< sees calls in order; with one call, whole layers
};

/// A Qwen3 or Qwen3.5 stack: embedding, blocks, final norm. Weights are packed for the selected forms when
/// loaded and never change; a run holds the activations of one call (L tokens) in its arena.
///
/// Runs are serial: one at a time per Backbone.
class Backbone {
 public:
  /// Reads every tensor it needs from `weights` (names without the checkpoint's prefix:
  /// "embed_tokens.weight", "layers.0.…", "norm.weight"), checks shapes, packs. `progress(done, total)`
  /// counts layers. Throws Error(missing | mismatch | non_finite) naming tensor and file. Nothing of
  /// `weights` is read later: it is let go once loaded. `parts`, where given, runs parts of layers in forms
  /// of their own.
  Backbone(formats::ModelConfig config, std::shared_ptr<const formats::TensorSource> weights,
           const ops::Selection& selection, device::ThreadPool& threads,
           const std::function<void(std::size_t, std::size_t)>& progress = nullptr,
           const PartForms& parts = nullptr);
  ~Backbone();
  Backbone(const Backbone&) = delete;
  Backbone& operator=(const Backbone&) = delete;

  const formats::ModelConfig& config() const noexcept;
  const ops::Selection& selection() const noexcept;

  /// Runs all segments, parents before children, in as few passes over the weights as `call_tokens` allows.
  /// The result does not depend on how they were cut or on what else is in the list.
  PassResult run(std::span<const Segment> segments, const RunOptions& options = {});

  /// An empty state with room for `capacity` tokens behind `parent` (null for a root), to be filled by
  /// segments that name it as `growing`. Once full it is a state as any other. The hidden vectors are those
  /// of the same tokens run at once, bit for bit; where the selected scan of a recurrent layer is chunked, a
  /// state can only be continued at a multiple of the chunk. Throws Error(invalid_argument) for a capacity
  /// of 0.
  std::shared_ptr<SegmentState> growing_state(std::size_t capacity,
                                              std::shared_ptr<const SegmentState> parent = nullptr) const;

  /// Bytes of a state of `tokens` tokens, for a cache's budget.
  std::size_t state_bytes(std::size_t tokens) const;
  std::size_t weight_bytes() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::backbone
