#include "lab/bench_music.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "backbone/backbone.hpp"
#include "base/counted.hpp"
#include "base/error.hpp"
#include "device/cpu_features.hpp"
#include "device/memory.hpp"
#include "device/thread_pool.hpp"
#include "lab/synthetic_weights.hpp"
#include "music/condition_encoder.hpp"
#include "music/dit.hpp"
#include "music/noise.hpp"
#include "music/sampler.hpp"
#include "music/vae.hpp"

namespace assay::lab {
namespace {

constexpr std::uint64_t kMusicSeed = 20;
constexpr std::size_t kTimbreFrames = 750;  ///< of the silence that stands for a reference
constexpr float kShift = 3.0f;

using Progress = std::function<void(std::string_view)>;

void require_music_range(std::string_view flag, std::size_t value, std::size_t low, std::size_t high) {
  if (value >= low && value <= high) return;
  throw Error(ErrorKind::invalid_argument, {.where = std::string(flag),
                                            .found = std::to_string(value),
                                            .expected = fmt::format("{} to {}", low, high)});
}

void check_music(const MusicBenchOptions& options) {
  if (options.seconds.empty()) require_music_range("--seconds", 0, 1, 600);
  for (const std::size_t seconds : options.seconds) require_music_range("--seconds", seconds, 1, 600);
  require_music_range("--steps", options.steps, 1, 1000);
  require_music_range("--text-tokens", options.text_tokens, 1, 256);
  require_music_range("--lyric-tokens", options.lyric_tokens, 1, 2048);
}

double in_double(std::size_t value) {
  return static_cast<double>(value);
}

/// Query-key pairs of a sequence that sees all of itself, or `window` to either side.
double self_pairs(std::size_t length, bool sliding, std::size_t window) {
  const double n = in_double(length);
  if (!sliding || window + 1 >= length) return n * n;
  const double w = in_double(window);
  return n * (2 * w + 1) - w * (w + 1);
}

/// Multiply-adds twice over: of the products of a block's own attention and SwiGLU, for a row.
double block_row_operations(const music::BlockConfig& block) {
  const double hidden = in_double(block.hidden_size);
  const double q = in_double(block.heads * block.head_dim);
  const double kv = in_double(block.kv_heads * block.head_dim);
  return 2 * hidden * (2 * q + 2 * kv + 3 * in_double(block.intermediate_size));
}

double pair_operations(const music::BlockConfig& block) {
  return 4 * in_double(block.heads * block.head_dim);
}

double encoder_operations(const music::BlockConfig& block, const std::vector<bool>& sliding,
                          std::size_t rows) {
  double total = 0;
  for (const bool window : sliding) {
    total += in_double(rows) * block_row_operations(block) +
             self_pairs(rows, window, block.sliding_window) * pair_operations(block);
  }
  return total;
}

/// Measures what a call takes.
template <class Body>
double timed(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Numbers that are no weights: standard normal, the same in every run.
std::vector<float> arbitrary(std::size_t count) {
  std::vector<float> values(count);
  music::fill_normal(kMusicSeed, music::NoiseStream::latents, 0, values);
  return values;
}

class MusicBench {
 public:
  MusicBench(const MusicBenchOptions& options, const Progress& progress)
      : options_(options),
        progress_(progress),
        shape_(music_shape(options.shape)),
        selection_(ops::select_forms(options.precision, options.forms)),
        threads_(options.threads) {
    report_.options = options;
    report_.cpu = device::cpu_model_name();
    report_.selection = ops::describe(selection_);
    report_.threads = threads_.size();
    const std::size_t rate = shape_.vae.sample_rate / shape_.vae.samples_per_frame();
    for (const std::size_t seconds : options.seconds) {
      report_.songs.push_back({.seconds = seconds, .frames = seconds * rate, .stages = {}});
    }
  }

  MusicBenchReport run() {
    const std::vector<float> text = run_text();
    const std::vector<float> condition = run_condition(text);
    std::vector<std::vector<float>> latents = run_dit(condition);
    run_vae(latents);
    return std::move(report_);
  }

 private:
  /// Makes a part, lets it be used and notes what it cost. `make` gives a pointer to it.
  template <class Make, class Use>
  void with_part(const std::string& name, const Make& make, const Use& use) {
    progress_(name + ": making weights");
    device::reset_peak();
    MusicStageLoad load{.part = name};
    decltype(make()) part;
    load.seconds = timed([&] { part = make(); });
    load.weight_bytes = part->weight_bytes();
    use(*part);
    load.peak_bytes = device::footprint().peak;
    report_.parts.push_back(std::move(load));
  }

  void add_to_all(const MusicStageTime& stage) {
    for (MusicBenchSong& song : report_.songs) song.stages.push_back(stage);
  }

  std::vector<float> run_text() {
    std::vector<std::int32_t> tokens(options_.text_tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<std::int32_t>((7919 + i * 104729) % shape_.text.vocabulary_size);
    }
    backbone::Segment segment{.tokens = tokens};
    segment.readouts.resize(tokens.size());
    std::iota(segment.readouts.begin(), segment.readouts.end(), std::size_t{0});
    std::vector<float> hidden;
    with_part(
        "text encoder",
        [&] {
          return std::make_unique<backbone::Backbone>(shape_.text, synthetic_weights(shape_.text, kMusicSeed),
                                                      selection_, threads_);
        },
        [&](backbone::Backbone& encoder) {
          const double seconds = timed([&] { hidden = encoder.run({&segment, 1}).hidden.front(); });
          add_to_all({"text", {seconds}, text_operations(shape_.text, tokens.size())});
        });
    return hidden;
  }

  std::vector<float> run_condition(const std::vector<float>& text) {
    const std::vector<float> lyrics = arbitrary(options_.lyric_tokens * shape_.condition.text_width);
    const std::vector<float> timbre = arbitrary(kTimbreFrames * shape_.condition.timbre_width);
    std::vector<float> rows;
    with_part(
        "condition encoder",
        [&] {
          return std::make_unique<music::ConditionEncoder>(
              shape_.condition, *synthetic_condition(shape_.condition, kMusicSeed), selection_, threads_);
        },
        [&](music::ConditionEncoder& encoder) {
          const double seconds =
              timed([&] { rows = encoder.encode({.text = text, .lyrics = lyrics, .timbre = timbre}); });
          add_to_all({"condition",
                      {seconds},
                      condition_operations(shape_.condition, options_.text_tokens, options_.lyric_tokens,
                                           kTimbreFrames)});
        });
    report_.condition_rows = rows.size() / shape_.condition.block.hidden_size;
    return rows;
  }

  std::vector<std::vector<float>> run_dit(const std::vector<float>& condition) {
    std::vector<std::vector<float>> latents;
    with_part(
        "dit",
        [&] {
          return std::make_unique<music::Dit>(shape_.dit, *synthetic_dit(shape_.dit, kMusicSeed), selection_,
                                              threads_);
        },
        [&](music::Dit& dit) {
          for (MusicBenchSong& song : report_.songs) latents.push_back(sample(dit, condition, song));
        });
    return latents;
  }

  std::vector<float> sample(music::Dit& dit, const std::vector<float>& condition, MusicBenchSong& song) {
    music::PreparedCondition prepared;
    const double prepare = timed([&] { prepared = dit.prepare(condition); });
    song.stages.push_back({"prepare", {prepare}, prepare_operations(shape_.dit, report_.condition_rows)});
    const std::size_t width = shape_.dit.latent_width;
    std::vector<float> x = arbitrary(song.frames * width);
    std::vector<float> velocity(x.size());
    const std::vector<float> context(song.frames * (shape_.dit.in_channels - width), 0.5f);
    MusicStageTime stage{"step", {}, step_operations(shape_.dit, song.frames, report_.condition_rows)};
    const std::vector<float> schedule = music::schedule(options_.steps, kShift);
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const music::DitSong batch{
          .context = context, .noisy = x, .condition = &prepared, .velocity = velocity};
      stage.seconds.push_back(timed([&] { dit.velocity(schedule[i], schedule[i], {&batch, 1}); }));
      const float next = i + 1 < schedule.size() ? schedule[i + 1] : 0.0f;
      music::euler_step(x, velocity, width, schedule[i], next, std::nullopt);
      progress_(fmt::format("{} s of music: step {} of {}: {:.2f} s", song.seconds, i + 1, schedule.size(),
                            stage.seconds.back()));
    }
    song.stages.push_back(std::move(stage));
    return x;
  }

  void run_vae(const std::vector<std::vector<float>>& latents) {
    with_part(
        "vae",
        [&] {
          return std::make_unique<music::VaeDecoder>(shape_.vae, *synthetic_vae(shape_.vae, kMusicSeed),
                                                     selection_, threads_);
        },
        [&](music::VaeDecoder& decoder) {
          for (std::size_t i = 0; i < latents.size(); ++i) {
            MusicBenchSong& song = report_.songs[i];
            const double seconds =
                timed([&] { decoder.decode(latents[i], [](std::size_t, std::span<const float>) {}); });
            song.stages.push_back({"decode", {seconds}, decode_operations(shape_.vae, song.frames)});
            progress_(fmt::format("{} s of music: decoded in {:.2f} s", song.seconds, seconds));
          }
        });
  }

  const MusicBenchOptions& options_;
  const Progress& progress_;
  MusicShape shape_;
  ops::Selection selection_;
  device::ThreadPool threads_;
  MusicBenchReport report_;
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

nlohmann::ordered_json song_json(const MusicBenchSong& song) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (const MusicStageTime& stage : song.stages) {
    const double median = median_of(stage.seconds);
    stages.push_back({{"stage", stage.stage},
                      {"runs", stage.seconds.size()},
                      {"median_seconds", median},
                      {"samples_seconds", stage.seconds},
                      {"operations", stage.operations},
                      {"tflops", stage.operations / median * 1e-12}});
  }
  return {{"seconds", song.seconds},
          {"frames", song.frames},
          {"total_seconds", song.total_seconds()},
          {"stages", std::move(stages)}};
}

std::size_t music_peak(const MusicBenchReport& report) {
  std::size_t peak = 0;
  for (const MusicStageLoad& part : report.parts) peak = std::max(peak, part.peak_bytes);
  return peak;
}

double in_mib(std::size_t bytes) {
  return static_cast<double>(bytes) / (1024.0 * 1024.0);
}

}  // namespace

double text_operations(const formats::ModelConfig& config, std::size_t tokens) {
  const double hidden = in_double(config.hidden_size);
  const double q = in_double(config.heads * config.head_dim);
  const double kv = in_double(config.kv_heads * config.head_dim);
  const double n = in_double(tokens);
  const double row = 2 * hidden * (2 * q + 2 * kv + 3 * in_double(config.intermediate_size));
  return in_double(config.layers.size()) * (n * row + n * (n + 1) / 2 * 4 * q);
}

double condition_operations(const music::ConditionConfig& config, std::size_t text_tokens,
                            std::size_t lyric_tokens, std::size_t timbre_frames) {
  const double hidden = in_double(config.block.hidden_size);
  const double inputs = in_double((text_tokens + lyric_tokens) * config.text_width) +
                        in_double(timbre_frames * config.timbre_width);
  // The timbre encoder's own first row leads its frames.
  return 2 * hidden * inputs + encoder_operations(config.block, config.lyric_sliding, lyric_tokens) +
         encoder_operations(config.block, config.timbre_sliding, timbre_frames + 1);
}

double prepare_operations(const music::DitConfig& config, std::size_t condition_rows) {
  const music::BlockConfig& block = config.stack.block;
  const double hidden = in_double(block.hidden_size);
  const double kv = in_double(block.kv_heads * block.head_dim);
  return 2 * in_double(condition_rows) * hidden *
         (in_double(config.condition_size) + 2 * kv * in_double(config.stack.sliding.size()));
}

double step_operations(const music::DitConfig& config, std::size_t frames, std::size_t condition_rows) {
  const music::BlockConfig& block = config.stack.block;
  const std::size_t rows = (frames + config.patch - 1) / config.patch;
  const double hidden = in_double(block.hidden_size);
  const double q = in_double(block.heads * block.head_dim);
  const double cross =
      in_double(rows) * (2 * hidden * 2 * q) + in_double(rows * condition_rows) * pair_operations(block);
  const double patches =
      2 * in_double(rows * config.patch) * hidden * in_double(config.in_channels + config.latent_width);
  return patches + encoder_operations(block, config.stack.sliding, rows) +
         cross * in_double(config.stack.sliding.size());
}

double decode_operations(const music::VaeConfig& config, std::size_t frames) {
  const auto channels = [&](std::size_t level) {
    return in_double(config.decoder_channels * config.multiples[level]);
  };
  double rows = in_double(frames);
  const std::size_t blocks = config.strides.size();
  double total = 2 * rows * 7 * in_double(config.latent_width) * channels(blocks - 1);
  for (std::size_t level = blocks; level-- > 0;) {
    const double in = channels(level);
    const double out = level == 0 ? in_double(config.decoder_channels) : channels(level - 1);
    rows *= in_double(config.strides[level]);
    // Of a transposed convolution's 2·stride taps each row of its output sees two.
    total += 2 * rows * (2 * in * out + 3 * (7 + 1) * out * out);
  }
  return total + 2 * rows * 7 * in_double(config.decoder_channels * config.audio_channels);
}

double MusicBenchSong::total_seconds() const {
  double total = 0;
  for (const MusicStageTime& stage : stages) {
    total += std::accumulate(stage.seconds.begin(), stage.seconds.end(), 0.0);
  }
  return total;
}

MusicBenchReport bench_music(const MusicBenchOptions& options, const Progress& progress) {
  check_music(options);
  return MusicBench(options, progress).run();
}

nlohmann::ordered_json bench_subject(const MusicBenchReport& report) {
  return {{"bench", "music"},
          {"model", {{"shape", report.options.shape}, {"seed", kMusicSeed}}},
          {"precision", ops::to_string(report.options.precision)},
          {"threads", report.threads},
          {"forms", report.selection},
          {"steps", report.options.steps}};
}

nlohmann::ordered_json to_json(const MusicBenchReport& report) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const MusicStageLoad& part : report.parts) {
    parts.push_back({{"part", part.part},
                     {"load_seconds", part.seconds},
                     {"weight_bytes", part.weight_bytes},
                     {"peak_bytes", part.peak_bytes}});
  }
  nlohmann::ordered_json songs = nlohmann::ordered_json::array();
  for (const MusicBenchSong& song : report.songs) songs.push_back(song_json(song));
  return {{"bench", "music"},
          {"shape", report.options.shape},
          {"weights", "synthetic"},
          {"precision", ops::to_string(report.options.precision)},
          {"forms", report.selection},
          {"cpu", report.cpu},
          {"threads", report.threads},
          {"steps", report.options.steps},
          {"text_tokens", report.options.text_tokens},
          {"lyric_tokens", report.options.lyric_tokens},
          {"condition_rows", report.condition_rows},
          {"peak_bytes", music_peak(report)},
          {"parts", std::move(parts)},
          {"songs", std::move(songs)}};
}

std::string to_table(const MusicBenchReport& report) {
  fmt::memory_buffer out;
  const auto write = [&](auto format, const auto&... values) {
    fmt::format_to(std::back_inserter(out), format, values...);
  };
  write(FMT_STRING("music of shape {}, synthetic weights, {}, {} on {}\n"), report.options.shape,
        ops::to_string(report.options.precision), counted(report.threads, "thread"), report.cpu);
  write(FMT_STRING("forms: {}\n"), report.selection);
  write(FMT_STRING("{} of text, {} of lyrics, {} of condition, {}\n\n"),
        counted(report.options.text_tokens, "token"), counted(report.options.lyric_tokens, "token"),
        counted(report.condition_rows, "row"), counted(report.options.steps, "step"));
  write(FMT_STRING("{:<18} {:>9} {:>12} {:>10}\n"), "part", "made in", "weights MiB", "peak MiB");
  for (const MusicStageLoad& part : report.parts) {
    write(FMT_STRING("{:<18} {:>7.1f} s {:>12.0f} {:>10.0f}\n"), part.part, part.seconds,
          in_mib(part.weight_bytes), in_mib(part.peak_bytes));
  }
  for (const MusicBenchSong& song : report.songs) {
    write(FMT_STRING("\n{} s of music, {}: {:.2f} s, {:.2f} times real time\n"), song.seconds,
          counted(song.frames, "frame"), song.total_seconds(),
          static_cast<double>(song.seconds) / song.total_seconds());
    write(FMT_STRING("{:<10} {:>5} {:>12} {:>12} {:>12} {:>10}\n"), "stage", "runs", "median s", "total s",
          "TFLOP a run", "TFLOP/s");
    for (const MusicStageTime& stage : song.stages) {
      const double median = median_of(stage.seconds);
      write(FMT_STRING("{:<10} {:>5} {:>12.3f} {:>12.3f} {:>12.4f} {:>10.3f}\n"), stage.stage,
            stage.seconds.size(), median, std::accumulate(stage.seconds.begin(), stage.seconds.end(), 0.0),
            stage.operations * 1e-12, stage.operations / median * 1e-12);
    }
  }
  return fmt::to_string(out);
}

}  // namespace assay::lab
