#include "music/composer.hpp"

#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "music/audio_tokens.hpp"
#include "music/condition_encoder.hpp"
#include "music/dit.hpp"
#include "music/edit.hpp"
#include "music/noise.hpp"
#include "music/song_sampler.hpp"
#include "music/text_encoder.hpp"
#include "music/vae.hpp"

namespace assay::music {
namespace {

/// What the text encoder reads for one condition.
struct TextIds {
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> lyrics;
};

/// `seconds` as the prompt's text says them.
TextIds ids_of(const text::Tokenizer& tokenizer, const SongRequest& request, Task task, double seconds) {
  const Metas metas{request.bpm, request.time_signature, request.key_scale, seconds};
  const std::string instruction = request.instruction.value_or(std::string(instruction_of(task)));
  return {encode_text(tokenizer, prompt_text(instruction, request.prompt, metas), kMaxPromptTokens, "prompt"),
          encode_text(tokenizer, lyric_text(request.language, request.lyrics), kMaxLyricTokens, "lyrics")};
}

/// One call of compose: what its stages hand on.
class Composition {
 public:
  Composition(const Checkpoint& checkpoint, const ops::Selection& selection, device::ThreadPool& threads,
              const SongRequest& request, const ComposeOptions& options)
      : checkpoint_(checkpoint),
        selection_(selection),
        threads_(threads),
        request_(request),
        options_(options),
        plan_(plan_request(request, checkpoint.parts().dit)),
        width_(checkpoint.parts().dit.latent_width),
        frames_per_second_(static_cast<double>(checkpoint.vae().sample_rate) /
                           static_cast<double>(checkpoint.vae().samples_per_frame())) {}

  std::vector<ComposedSong> run() {
    check_lengths();
    tokenize();
    silence_ = checkpoint_.silence_latent();
    read_sounds();
    read_codes();
    settle_frames();
    encode_texts();
    encode_conditions();
    sample();
    return decode();
  }

 private:
  void begin(Stage stage) const { at(stage, 0); }
  void at(Stage stage, double done) const {
    if (options_.stop.stop_requested()) {
      throw Error(ErrorKind::cancelled,
                  {.where = std::string(to_string(stage)), .found = "stopped on request"});
    }
    if (options_.progress) options_.progress(stage, done);
  }
  void tap(const std::string& name, std::size_t width, std::span<const float> values) const {
    if (options_.tap) options_.tap(name, values.size() / width, values);
  }
  void tap_song(std::size_t song, std::string_view name, std::size_t width,
                std::span<const float> values) const {
    if (options_.tap) tap(fmt::format("{}.{}", song, name), width, values);
  }

  std::size_t pool_window() const { return checkpoint_.audio_tokenizer().pool_window; }
  std::size_t text_width() const { return checkpoint_.text_encoder().hidden_size; }
  bool mixes_text() const { return plan_.task == Task::cover && request_.cover_strength < 1; }

  /// Seconds as the prompt's text says them.
  double seconds() const {
    if (plan_.seconds) return *plan_.seconds;
    if (request_.source) return request_.source->seconds();
    return static_cast<double>(request_.codes.size() * pool_window()) / frames_per_second_;
  }

  void check_lengths() const {
    if (seconds() <= audio::kLongestSeconds) return;
    throw Error(ErrorKind::limit_exceeded, {.where = request_.source ? "source" : "codes",
                                            .found = fmt::format("{:.1f} s", seconds()),
                                            .expected = fmt::format("at most {} s", audio::kLongestSeconds)});
  }

  /// Before anything takes long: a text that is too long is known at once.
  void tokenize() {
    const text::Tokenizer tokenizer = checkpoint_.tokenizer();
    ids_ = ids_of(tokenizer, request_, plan_.task, seconds());
    if (mixes_text()) text_ids_ = ids_of(tokenizer, request_, Task::text_to_music, seconds());
  }

  void read_sounds() {
    if (!request_.source && !request_.reference) {
      timbre_ = silence_of(silence_, timbre_frames(), width_);
      return;
    }
    begin(Stage::source);
    const VaeEncoder encoder(checkpoint_.vae(), *checkpoint_.tensors(Part::vae), selection_, threads_);
    const double share = request_.source && request_.reference ? 0.5 : 1.0;
    VaeOptions options{.window = options_.decode_window, .overlap = {}, .stop = options_.stop};
    if (request_.source) {
      options.progress = [&](double done) { at(Stage::source, share * done); };
      require_a_frame(*request_.source);
      source_ = encoder.encode(request_.source->samples, options);
      tap("source_latents", width_, source_);
    }
    if (request_.reference) {
      options.progress = [&](double done) { at(Stage::source, 1 - share * (1 - done)); };
      timbre_ = encoder.encode(timbre_clip(*request_.reference), options);
      tap("timbre_latents", width_, timbre_);
    } else {
      timbre_ = silence_of(silence_, timbre_frames(), width_);
    }
  }

  /// The timbre encoder reads thirty seconds.
  std::size_t timbre_frames() const {
    const auto wanted = static_cast<std::size_t>(std::ceil(30 * frames_per_second_));
    return std::min(wanted, silence_.size() / width_);
  }

  void require_a_frame(const audio::Sound& sound) const {
    if (sound.frames() >= checkpoint_.vae().samples_per_frame()) return;
    throw Error(ErrorKind::invalid_argument,
                {.where = "source",
                 .found = fmt::format("{:.5f} s", sound.seconds()),
                 .expected = fmt::format("at least {} s, a frame of latents", 1 / frames_per_second_)});
  }

  /// A cover hears its source only through the codes.
  void read_codes() {
    if (plan_.task != Task::cover) return;
    begin(Stage::codes);
    const AudioTokenConfig& config = checkpoint_.audio_tokenizer();
    AudioTokenizer tokenizer(config, *checkpoint_.tensors(Part::audio_tokenizer), selection_, threads_,
                             options_.stop);
    const std::vector<std::int32_t> codes =
        request_.source ? tokenizer.encode(source_, silence_, options_.stop) : request_.codes;
    check_codes(codes, tokenizer.quantizer().codebook_size());
    const std::vector<float> rows = tokenizer.quantizer().embed(codes);
    const AudioTokenConfig& detokenizer_config = checkpoint_.audio_detokenizer();
    AudioDetokenizer detokenizer(detokenizer_config, *checkpoint_.tensors(Part::audio_detokenizer),
                                 selection_, threads_, options_.stop);
    hints_ = detokenizer.decode(rows, options_.stop);
    if (request_.source) hints_.resize(source_.size());
    tap("code_latents", width_, hints_);
  }

  static void check_codes(const std::vector<std::int32_t>& codes, std::int32_t limit) {
    for (std::size_t i = 0; i < codes.size(); ++i) {
      if (codes[i] >= 0 && codes[i] < limit) continue;
      throw Error(ErrorKind::invalid_argument, {.where = fmt::format("codes[{}]", i),
                                                .found = std::to_string(codes[i]),
                                                .expected = fmt::format("0 to {}", limit - 1)});
    }
  }

  void settle_frames() {
    if (plan_.task == Task::cover) {
      frames_ = hints_.size() / width_;
    } else if (request_.source) {
      frames_ = source_.size() / width_;
    } else {
      frames_ = static_cast<std::size_t>(std::ceil(*plan_.seconds * frames_per_second_));
    }
    for (const std::vector<float>& noise : request_.noise) {
      if (noise.size() == frames_ * width_) continue;
      throw Error(ErrorKind::mismatch, {.where = "noise",
                                        .found = fmt::format("{} values", noise.size()),
                                        .expected = fmt::format("[{}, {}]", frames_, width_)});
    }
  }

  void encode_texts() {
    begin(Stage::text);
    const auto source = checkpoint_.tensors(Part::text_encoder);
    lyrics_ = embedding_rows(*source, ids_.lyrics, text_width());
    TextEncoder encoder(checkpoint_.text_encoder(), source, selection_, threads_);
    at(Stage::text, 0.5);
    text_ = encoder.hidden_states(ids_.prompt, options_.stop);
    if (text_ids_) other_text_ = encoder.hidden_states(text_ids_->prompt, options_.stop);
    tap("text_hidden", text_width(), text_);
    tap("lyric_embedding", text_width(), lyrics_);
    at(Stage::text, 1);
  }

  void encode_conditions() {
    begin(Stage::condition);
    const ConditionConfig& config = checkpoint_.parts().condition;
    ConditionEncoder encoder(config, *checkpoint_.tensors(Part::condition_encoder), selection_, threads_,
                             options_.stop);
    at(Stage::condition, 0.5);
    condition_ = encoder.encode({text_, lyrics_, timbre_}, options_.stop);
    if (mixes_text()) other_condition_ = encoder.encode({other_text_, lyrics_, timbre_}, options_.stop);
    if (plan_.guidance > 1)
      null_condition_.assign(encoder.null_condition().begin(), encoder.null_condition().end());
    tap("condition", config.block.hidden_size, condition_);
    at(Stage::condition, 1);
  }

  FrameWindow repaint_frames() const {
    return repaint_window(request_.repaint_from, request_.repaint_to, frames_, frames_per_second_);
  }

  std::vector<float> context() const {
    const std::vector<float> silence = silence_of(silence_, frames_, width_);
    if (plan_.task == Task::cover) return context_rows(hints_, width_);
    if (plan_.task == Task::repaint) return repaint_context_rows(source_, silence, width_, repaint_frames());
    return context_rows(silence, width_);
  }

  std::vector<std::vector<float>> starting_noise() const {
    if (!request_.noise.empty()) return request_.noise;
    std::vector<std::vector<float>> noise(request_.seeds.size(), std::vector<float>(frames_ * width_));
    for (std::size_t song = 0; song < noise.size(); ++song) {
      fill_normal(request_.seeds[song], NoiseStream::latents, 0, noise[song]);
    }
    return noise;
  }

  void sample() {
    begin(Stage::sample);
    const DitConfig& config = checkpoint_.parts().dit;
    const std::vector<float> context_values = context();
    tap("context", 2 * width_, context_values);
    const std::vector<std::vector<float>> noise = starting_noise();
    latents_ = noise;
    std::span<const float> timesteps = plan_.timesteps;
    if (plan_.task == Task::cover && request_.cover_noise > 0) {
      std::size_t first = 0;
      for (std::vector<float>& x : latents_) {
        first = start_from_source(x, source_, plan_.timesteps, request_.cover_noise);
      }
      timesteps = timesteps.subspan(first);
    }
    for (std::size_t song = 0; song < noise.size(); ++song) tap_song(song, "noise", width_, noise[song]);
    Dit dit(config, *checkpoint_.tensors(Part::transformer), selection_, threads_, nullptr, options_.stop);
    sample_songs(dit, sample_job(context_values, timesteps), noise, latents_);
    for (std::size_t song = 0; song < noise.size(); ++song) tap_song(song, "latents", width_, latents_[song]);
  }

  SampleJob sample_job(std::span<const float> context_values, std::span<const float> timesteps) const {
    SampleJob job;
    job.context = context_values;
    job.condition = condition_;
    job.null_condition = null_condition_;
    job.text_condition = other_condition_;
    job.guidance = plan_.guidance;
    job.guidance_from = request_.guidance_from;
    job.guidance_to = request_.guidance_to;
    job.cover_strength = request_.cover_strength;
    job.timesteps = timesteps;
    job.dcw = request_.dcw;
    if (plan_.task == Task::repaint) {
      const auto injected = std::lround(request_.repaint_injection * static_cast<float>(timesteps.size()));
      job.repaint = {repaint_frames(), source_, static_cast<std::size_t>(injected), request_.repaint_fade};
    }
    if (options_.tap) {
      job.tap = [this](std::string_view name, std::size_t song, std::span<const float> values) {
        tap_song(song, name, width_, values);
      };
    }
    job.progress = [this](double done) { at(Stage::sample, done); };
    job.stop = options_.stop;
    return job;
  }

  std::vector<ComposedSong> decode() {
    std::vector<ComposedSong> songs(latents_.size());
    for (std::size_t song = 0; song < songs.size(); ++song) {
      songs[song].seed = request_.seeds[song];
      songs[song].latents = std::move(latents_[song]);
    }
    if (options_.decode) decode_sounds(songs);
    return songs;
  }

  void decode_sounds(std::vector<ComposedSong>& songs) const {
    begin(Stage::decode);
    const VaeDecoder decoder(checkpoint_.vae(), *checkpoint_.tensors(Part::vae), selection_, threads_);
    const auto count = static_cast<double>(songs.size());
    for (std::size_t song = 0; song < songs.size(); ++song) {
      songs[song].sound = std::make_unique<audio::SoundSpool>(options_.spool_folder);
      audio::SoundSpool& sound = *songs[song].sound;
      VaeOptions options{.window = options_.decode_window, .overlap = {}, .stop = options_.stop};
      options.progress = [&](double done) { at(Stage::decode, (static_cast<double>(song) + done) / count); };
      decoder.decode(
          songs[song].latents, [&](std::size_t, std::span<const float> part) { sound.append(part); },
          options);
      if (options_.tap) tap_sound(song, sound);
    }
  }

  /// The samples as decoded, [samples, 2], before they are scaled.
  void tap_sound(std::size_t song, const audio::SoundSpool& sound) const {
    std::vector<float> samples(sound.samples());
    sound.read(0, samples);
    tap_song(song, "raw", 2, samples);
  }

  const Checkpoint& checkpoint_;
  const ops::Selection& selection_;
  device::ThreadPool& threads_;
  const SongRequest& request_;
  const ComposeOptions& options_;
  SongPlan plan_;
  std::size_t width_;
  double frames_per_second_;
  std::size_t frames_ = 0;

  TextIds ids_;
  std::optional<TextIds> text_ids_;  ///< of a cover that is mixed with its text
  std::vector<float> silence_;       ///< the checkpoint's, [frames, width]
  std::vector<float> source_;        ///< latents of the source
  std::vector<float> timbre_;        ///< latents of the reference, or silence
  std::vector<float> hints_;         ///< latents of the codes
  std::vector<float> text_;          ///< [tokens, text width]
  std::vector<float> other_text_;
  std::vector<float> lyrics_;
  std::vector<float> condition_;  ///< [rows, condition size]
  std::vector<float> other_condition_;
  std::vector<float> null_condition_;  ///< one row, where there is guidance
  std::vector<std::vector<float>> latents_;
};

}  // namespace

struct Composer::Impl {
  Checkpoint checkpoint;
  ops::Selection selection;
  device::ThreadPool& threads;
};

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::source:
      return "reading the source";
    case Stage::codes:
      return "audio codes";
    case Stage::text:
      return "text";
    case Stage::condition:
      return "condition";
    case Stage::sample:
      return "sampling";
    case Stage::decode:
      return "decoding";
  }
  return "";
}

void check_request(const SongRequest& request, const Checkpoint& checkpoint) {
  const SongPlan plan = plan_request(request, checkpoint.parts().dit);
  ids_of(checkpoint.tokenizer(), request, plan.task, plan.seconds.value_or(audio::kLongestSeconds));
}

Composer::Composer(Checkpoint checkpoint, const ops::Selection& selection, device::ThreadPool& threads)
    : impl_(std::make_unique<Impl>(Impl{std::move(checkpoint), selection, threads})) {}

Composer::~Composer() = default;

std::vector<ComposedSong> Composer::compose(const SongRequest& request, const ComposeOptions& options) {
  return Composition(impl_->checkpoint, impl_->selection, impl_->threads, request, options).run();
}

const Checkpoint& Composer::checkpoint() const {
  return impl_->checkpoint;
}

}  // namespace assay::music
