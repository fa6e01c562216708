#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "music/dit.hpp"
#include "music/sampler.hpp"

namespace assay::music {

/// What the songs of a batch have in common: conditions, surroundings, and how to step.
struct SampleJob {
  std::span<const float> context = {};         ///< [frames, source | mask]
  std::span<const float> condition = {};       ///< [rows, condition size]
  std::span<const float> null_condition = {};  ///< one row; empty: no guidance
  std::span<const float> text_condition = {};  ///< what a cover of strength below 1 is mixed with; else empty
  float guidance = 1;
  float guidance_from = 0;
  float guidance_to = 1;
  float cover_strength = 1;
  std::span<const float> timesteps = {};
  std::optional<Dcw> dcw = std::nullopt;

  struct Repaint {
    FrameWindow window;
    std::span<const float> source = {};  ///< [frames, latent width]
    std::size_t injected_steps = 0;      ///< after so many steps the source is put back outside the window
    std::optional<std::size_t> fade = std::nullopt;  ///< frames; without it the source is not put back
  };
  std::optional<Repaint> repaint = std::nullopt;

  std::function<void(std::string_view name, std::size_t song, std::span<const float> values)> tap = nullptr;
  std::function<void(double done)> progress = nullptr;
  std::stop_token stop = {};
};

/// Takes each song's x from noise to latents, in place; all songs in one pass of the DiT a step. `noise` is
/// what each started from, which repaint needs again.
void sample_songs(Dit& dit, const SampleJob& job, std::span<const std::vector<float>> noise,
                  std::vector<std::vector<float>>& x);

}  // namespace assay::music
