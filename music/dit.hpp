#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "device/memory.hpp"
#include "device/thread_pool.hpp"
#include "formats/tensor_source.hpp"
#include "music/config.hpp"
#include "ops/selection.hpp"

namespace assay::music {

/// A song's condition as every layer's cross-attention reads it: the same at every step, so computed once a
/// song.
struct PreparedCondition {
  std::size_t rows = 0;
  device::Buffer<float> keys = {};  ///< [layers, rows, k | v], keys normed
};

/// One song of a pass; rows are row-major fp32.
struct DitSong {
  std::span<const float> context = {};  ///< source latents and mask, [frames, in_channels − latent_width]
  std::span<const float> noisy = {};    ///< x at time t, [frames, latent_width]
  const PreparedCondition* condition = nullptr;  ///< of this Dit
  std::span<float> velocity = {};  ///< the result, [frames, latent_width]; may not overlap the inputs
};

/// The diffusion transformer of ACE-Step 1.5: patches of frames, blocks of AdaLN self-attention (a window or
/// everything, in turn), cross-attention to the condition and AdaLN SwiGLU, an output norm, and patches back
/// to frames. Source: huggingface/diffusers, models/transformers/ace_step_transformer.py
/// (AceStepTransformer1DModel).
///
/// The residual stream, norms, softmax and modulation are fp32; products run in the precision of the
/// selection's matmul form. Runs are serial: one at a time per Dit.
class Dit {
 public:
  /// Reads and packs every tensor (diffusers' names); nothing of `source` is read later. `progress(done,
  /// total)` counts layers. Throws Error(missing | mismatch | non_finite) naming tensor and file.
  Dit(const DitConfig& config, const formats::TensorSource& source, const ops::Selection& forms,
      device::ThreadPool& threads, const std::function<void(std::size_t, std::size_t)>& progress = nullptr,
      const std::stop_token& stop = {});
  ~Dit();
  Dit(const Dit&) = delete;
  Dit& operator=(const Dit&) = delete;

  const DitConfig& config() const noexcept;

  /// Condition rows [rows, condition_size], at least one. Throws Error(mismatch) for another width.
  PreparedCondition prepare(std::span<const float> condition, const std::stop_token& stop = {});

  /// The velocity of every song at time t, with r the end of the step as the time embedding sees it (r = t
  /// for what is released). Songs may have different lengths; one whose frames do not fill its last patch is
  /// padded with zeros for the pass. A song's bits depend neither on its mates nor on the number of threads.
  /// `stop` is looked at between layers. Throws Error(mismatch) for a song whose parts do not fit,
  /// Error(non_finite) naming song, frame and time, Error(cancelled).
  void velocity(float t, float r, std::span<const DitSong> songs, const std::stop_token& stop = {});

  std::size_t weight_bytes() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::music
