#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/synthetic_music.hpp"
#include "ops/selection.hpp"

namespace assay::lab {

/// What `assay bench music` measures: a song's stages one after the other, each made of synthetic weights
/// (lab/synthetic_music.hpp), run for every duration and dropped before the next, as a song's run does. Text,
/// lyrics and latents are arbitrary numbers: the time does not depend on them.
struct MusicBenchOptions {
  std::string shape = "turbo";
  std::vector<std::size_t> seconds = {12, 60};  ///< of music, each 1 to 600
  std::size_t steps = 8;                        ///< of the sampler, 1 to 1000
  std::size_t text_tokens = 128;                ///< of the prompt, 1 to 256
  std::size_t lyric_tokens = 512;               ///< 1 to 2048
  std::size_t threads = 0;                      ///< 0: one per core
  ops::Precision precision = ops::Precision::bf16;
  ops::FormOverrides forms;
};

/// Floating-point operations by the mathematics: 2·m·n·k of every product and every tap of a convolution that
/// exists, 4·heads·head_dim of every visible pair of query and key. Norms, activations and what is computed
/// once for all frames (time embeddings) are left out.
double text_operations(const formats::ModelConfig& config, std::size_t tokens);
double condition_operations(const music::ConditionConfig& config, std::size_t text_tokens,
                            std::size_t lyric_tokens, std::size_t timbre_frames);
/// Keys and values of one condition, for every layer's cross-attention.
double prepare_operations(const music::DitConfig& config, std::size_t condition_rows);
double step_operations(const music::DitConfig& config, std::size_t frames, std::size_t condition_rows);
double decode_operations(const music::VaeConfig& config, std::size_t frames);

/// One stage of one song.
struct MusicStageTime {
  std::string stage;            ///< "text", "condition", "prepare", "step", "decode"
  std::vector<double> seconds;  ///< of each run: as many as there are steps, else one
  double operations = 0;        ///< of one run
};

struct MusicBenchSong {
  std::size_t seconds = 0;  ///< of music
  std::size_t frames = 0;
  std::vector<MusicStageTime> stages;
  double total_seconds() const;  ///< of all stages, loading left out
};

/// What a stage costs to have.
struct MusicStageLoad {
  std::string part;  ///< "text encoder", "condition encoder", "dit", "vae"
  double seconds = 0;
  std::size_t weight_bytes = 0;  ///< packed
  std::size_t peak_bytes = 0;  ///< the most resident memory of the process while it had this part; since its
                               ///< start where the kernel does not let a peak begin again
};

struct MusicBenchReport {
  MusicBenchOptions options;
  std::string cpu;
  std::string selection;
  std::size_t threads = 0;
  std::size_t condition_rows = 0;
  std::vector<MusicStageLoad> parts;
  std::vector<MusicBenchSong> songs;
};

/// `progress` gets a line now and then. Throws Error(invalid_argument) for an unknown shape or a number out
/// of its range.
MusicBenchReport bench_music(const MusicBenchOptions& options,
                             const std::function<void(std::string_view)>& progress);

/// A bench receipt. subject: {"bench": "music", "model": {"shape", "seed"}, "precision", "threads", "forms",
/// "steps"}; result: what to_json gives.
nlohmann::ordered_json bench_subject(const MusicBenchReport& report);
nlohmann::ordered_json to_json(const MusicBenchReport& report);
std::string to_table(const MusicBenchReport& report);

}  // namespace assay::lab
