#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "device/thread_pool.hpp"
#include "formats/tensor_source.hpp"
#include "music/config.hpp"
#include "ops/selection.hpp"

/// The Oobleck autoencoder: latents at 25 frames a second to stereo at 48 kHz and back. fp32 activations,
/// samples by rows; products in the precision of the selection's conv1d and conv_transpose1d forms. Source:
/// huggingface/diffusers, src/diffusers/models/autoencoders/autoencoder_oobleck.py.
///
/// Windows. A long signal is run in windows that overlap, and only their middles are kept. The overlap is by
/// default what the convolutions reach from one frame (9 frames each way in the released decoder), and an
/// op's row has the same bits wherever it is: so the result is that of one window over everything, bit for
/// bit, and no seam can be heard. A wider overlap is allowed and only costs time; a narrower one leaves
/// seams.
///
/// Memory. Packed weights (84 million in the released decoder: 168 MB at bf16, 336 MB at fp32) and, for a
/// window of W frames with its overlaps, two buffers of the widest layer: 2 · W · 1,920 · 128 · 4 bytes
/// = 1.97 MB a frame. The default window of 256 frames with 2 · 9 of overlap takes 539 MB; it decodes 7 %
/// more frames than it keeps, and one op over it, after which a stop is heard, is a fraction of a second.
namespace assay::music {

struct VaeOptions {
  std::size_t window = 256;            ///< frames kept of a window, at least 1
  std::optional<std::size_t> overlap;  ///< frames on each side; what the convolutions reach if not given
  std::stop_token stop = {};           ///< heard between ops: Error(cancelled)
  std::function<void(double)> progress = {};  ///< after each op: the share of the work done, up to 1
};

/// Receives samples as windows finish, in order and without gaps: the first one's index (a sample is a pair,
/// left and right) and the samples interleaved.
using SampleSink = std::function<void(std::size_t first_sample, std::span<const float> interleaved)>;

class VaeDecoder {
 public:
  /// Reads and packs "decoder.*" of `source`; neither is needed afterwards. `threads` must outlive this.
  /// Throws what formats::require throws for a tensor that is missing or of another shape, Error(non_finite)
  /// naming one that is not finite, Error(unsupported) for an odd stride.
  VaeDecoder(const VaeConfig& config, const formats::TensorSource& source, const ops::Selection& selection,
             device::ThreadPool& threads);
  ~VaeDecoder();
  VaeDecoder(VaeDecoder&&) noexcept;
  VaeDecoder& operator=(VaeDecoder&&) noexcept;

  /// latents [frames, latent width]; the sink gets frames · samples_per_frame samples. Nothing is scaled: the
  /// peak may exceed 1. Throws Error(invalid_argument) for latents that are no whole frames or a window of 0,
  /// Error(non_finite) for a latent or a sample that is not finite (the sink has then had the windows
  /// before), Error(cancelled), and what the sink throws.
  void decode(std::span<const float> latents, const SampleSink& sink, const VaeOptions& options = {}) const;

  /// Frames to either side that a frame's samples depend on.
  std::size_t reach() const;
  /// Bytes of the packed weights.
  std::size_t weight_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class VaeEncoder {
 public:
  /// As VaeDecoder's, of "encoder.*".
  VaeEncoder(const VaeConfig& config, const formats::TensorSource& source, const ops::Selection& selection,
             device::ThreadPool& threads);
  ~VaeEncoder();
  VaeEncoder(VaeEncoder&&) noexcept;
  VaeEncoder& operator=(VaeEncoder&&) noexcept;

  /// The mean of the encoder's distribution, [frames, latent width], for interleaved samples; frames are the
  /// whole ones in them, and what is left of the last one still has its part in it. Throws
  /// Error(invalid_argument) for fewer samples than a frame or half a pair, Error(non_finite),
  /// Error(cancelled).
  std::vector<float> encode(std::span<const float> interleaved, const VaeOptions& options = {}) const;

  std::size_t reach() const;
  std::size_t weight_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::music
