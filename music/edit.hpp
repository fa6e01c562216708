#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "audio/sound_reader.hpp"
#include "music/sampler.hpp"

/// What the DiT is told of a song's surroundings, beside its condition (huggingface/diffusers,
/// pipelines/ace_step/pipeline_ace_step.py: prepare_src_latents, _build_chunk_mask,
/// prepare_reference_audio_latents).
namespace assay::music {

/// Silence of so many frames: the checkpoint's, repeated as often as it takes.
std::vector<float> silence_of(std::span<const float> silence, std::size_t frames, std::size_t width);

/// The context rows [frames, source | mask], both `width` wide: the mask is 1 where music is to be made. With
/// a window, the source is kept outside it, under mask 0, and silence stands inside.
std::vector<float> context_rows(std::span<const float> source, std::size_t width);
std::vector<float> repaint_context_rows(std::span<const float> source, std::span<const float> silence,
                                        std::size_t width, FrameWindow window);

/// Thirty seconds of a reference: ten from its start, ten from a third of its way on, ten up to its end; a
/// shorter one is repeated first. Interleaved stereo.
std::vector<float> timbre_clip(const audio::Sound& reference);

}  // namespace assay::music
