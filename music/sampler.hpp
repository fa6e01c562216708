#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

/// The arithmetic between two calls of the DiT. Latents are [frames, channels], row-major, fp32; t runs from
/// 1 (noise) to 0 (music), and the DiT's velocity v is noise − music, so that x − t·v is the music that it
/// sees in x.
namespace assay::music {

// ---- schedule

/// t of each step: 1 to 0 in `steps` equal parts, each through s·t/(1 + (s − 1)·t), in fp32, without the last
/// 0 (huggingface/diffusers, pipeline_ace_step.py, _get_timestep_schedule). Throws Error(invalid_argument)
/// naming steps outside [1, 1000] or a shift that is not above 0 and finite.
std::vector<float> schedule(std::size_t steps, float shift);

/// A schedule that the caller gave: falling values in (0, 1], a 0 at the end taken off. Throws
/// Error(invalid_argument) otherwise.
std::vector<float> checked_schedule(std::span<const float> timesteps);

// ---- one step

/// Differential correction in the wavelet domain (Yu et al., Elucidating the SNR-t Bias of Diffusion
/// Probabilistic Models, arXiv 2604.16044), mode "double": after a step the low and high Haar bands of x
/// along time move away from those of d = x_before − t·v by t·low and (1 − t)·high of their difference. An
/// odd last frame is paired with zeros.
struct Dcw {
  float low = 0.05f;
  float high = 0.02f;
};

/// x ← x + (t_next − t)·v, then the correction where one is given. x and v are [frames, channels] of equal
/// size, a multiple of channels.
void euler_step(std::span<float> x, std::span<const float> v, std::size_t channels, float t, float t_next,
                const std::optional<Dcw>& dcw);

// ---- guidance

/// Adaptive projected guidance (huggingface/diffusers, guiders/adaptive_projected_guidance.py,
/// normalized_guidance with momentum −0.75, eta 0 and norm threshold 2.5, as the ACE-Step pipeline calls it):
/// the difference of the two velocities, smoothed over steps, bounded in its norm along time and made
/// orthogonal to the conditional velocity, channel by channel. One object a song: it holds the running
/// difference.
class Guidance {
 public:
  Guidance(std::size_t channels, float scale) : channels_(channels), scale_(scale) {}

  /// conditional ← conditional + (scale − 1)·update. Both [frames, channels], the same frames at every step.
  void apply(std::span<float> conditional, std::span<const float> unconditional);

 private:
  std::size_t channels_;
  float scale_;
  std::vector<float> running_;
};

/// out ← strength·out + (1 − strength)·other: how a cover of strength below 1 joins the velocities under the
/// cover's and under the text's condition.
void blend_velocity(std::span<float> out, std::span<const float> other, float strength);

// ---- repaint

/// Which frames are made anew: [first, last).
struct FrameWindow {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// The frames of seconds [from, to) of a song (pipeline_ace_step.py, _build_chunk_mask): rounded down, kept
/// within the song, at least one frame; `to` not above 0 means the end.
FrameWindow repaint_window(double from, double to, std::size_t frames, double frames_per_second);

/// Outside the window x becomes what the source looks like at noise level t: t·noise + (1 − t)·source. Done
/// after the first part of the steps, so that the music around the window steers what is made inside.
void inject_source(std::span<float> x, std::span<const float> noise, std::span<const float> source,
                   std::size_t channels, FrameWindow window, float t);

/// x outside the window becomes the source, over `fade` frames on either side in even steps, so that neither
/// edge jumps.
void blend_into_source(std::span<float> x, std::span<const float> source, std::size_t channels,
                       FrameWindow window, std::size_t fade);

// ---- cover

/// Where a cover of that noise strength starts in the schedule: the step whose t is nearest to 1 − strength,
/// and x there, t·noise + (1 − t)·source. 0 is pure noise and step 0.
std::size_t start_from_source(std::span<float> noise, std::span<const float> source,
                              std::span<const float> timesteps, float strength);

}  // namespace assay::music
