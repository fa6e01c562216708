#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "backbone/backbone.hpp"
#include "backbone/call_plan.hpp"
#include "backbone/weights.hpp"

namespace assay::backbone {

/// A segment while it runs. It has a state if somebody needs one after the layer: a child, a later call of
/// its own, or the caller.
struct LiveSegment {
  std::shared_ptr<SegmentState> state;
  const SegmentState* parent = nullptr;  ///< complete, or completed by an earlier piece of the same call
  std::size_t base = 0;                  ///< tokens that its state held before this pass
};

/// Takes the hidden vectors of one call through the layers in place.
class LayerRunner {
 public:
  LayerRunner(const formats::ModelConfig& config, const BackboneWeights& weights, const FormTable& forms,
              const ops::Context& context, OpObserver* observer);

  /// Readies positions, levels and scratch for a call. Scratch lives in the context's arena.
  void begin(const Call& call, std::span<const LiveSegment> segments, std::span<const std::int32_t> parents);

  /// tokens → hidden [rows, hidden_size].
  void embed(std::span<const std::int32_t> tokens);
  void layer(std::size_t index);
  /// hidden[row] normed by the final norm into `out` [hidden_size].
  void final_norm(std::size_t row, std::span<float> out);
  std::span<const float> hidden() const { return hidden_; }

 private:
  class Timed;

  void plan_levels(const Call& call, std::span<const std::int32_t> parents);
  void compute_rope(const Call& call, std::span<const LiveSegment> segments);

  /// The forms of a part of the layer that is running.
  const ops::Selection& forms(LayerPart part) const { return forms_.of(layer_, part); }
  void norm(LayerPart part, std::string_view name, const float* x, const std::vector<float>& weight,
            float* y);
  void product(std::string_view part, const ops::MatmulWeight& w, ops::Rows<const float> x,
               ops::Rows<float> y, bool accumulate);
  OpCall norm_call(const ops::Selection& forms, std::string_view part, std::size_t rows, std::size_t groups,
                   std::size_t dim, bool gated) const;
  void full_attention(std::size_t index, const AttentionWeights& weights);
  void rotate_and_store_keys(std::size_t index, const AttentionWeights& weights);
  void attend(std::size_t index);
  OpCall attention_call(std::span<const ops::AttentionSegment> queries) const;
  void linear_attention(std::size_t index, const LinearAttentionWeights& weights);
  void convolve(std::size_t index, const LinearAttentionWeights& weights);
  void recur(std::size_t index, const LinearAttentionWeights& weights);
  /// Bytes of the states of `floats` each that a recurrent op reads and writes in this call.
  double state_traffic(std::size_t floats) const;
  void mlp(const LayerWeights& weights);
  /// The segments of one level as sequences with their states in `member` of layer `index`.
  std::vector<ops::SequenceSegment> sequences(std::size_t index, const std::vector<std::size_t>& pieces,
                                              device::Buffer<float> SegmentState::Layer::*member);

  const formats::ModelConfig& config_;
  const BackboneWeights& weights_;
  const FormTable& forms_;
  const ops::Context& context_;
  OpObserver* observer_;

  const Call* call_ = nullptr;
  std::span<const LiveSegment> segments_;
  std::vector<std::vector<std::size_t>> levels_;  ///< pieces whose parents' pieces are in earlier levels
  std::size_t rows_ = 0;
  std::size_t layer_ = 0;  ///< the one that is running
  std::size_t projection_width_ = 0;
  std::span<float> hidden_;      ///< [rows, hidden]
  std::span<float> normed_;      ///< [rows, hidden]
  std::span<float> projection_;  ///< [rows, the widest fused product]
  std::span<float> convolved_;   ///< [rows, conv channels]
  std::span<float> mixed_;       ///< [rows, the mixer's output width]
  std::span<float> cos_;         ///< [rows, rotary_dim / 2]
  std::span<float> sin_;
};

}  // namespace assay::backbone
