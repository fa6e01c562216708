#include "assay/assay.hpp"

#include <mutex>
#include <utility>

#include "audio/sound_writer.hpp"
#include "music/composer.hpp"
#include "music/noise.hpp"
#include "ops/device_selection.hpp"

namespace assay::api {
namespace {

ops::Selection music_forms(const MusicOptions& options) {
  const ops::Precision precision = options.exact ? ops::Precision::fp32 : ops::Precision::bf16;
  return ops::select_forms(precision, ops::with_device_selection(options.forms, precision));
}

music::SongRequest to_music(const SongRequest& request) {
  music::SongRequest song;
  song.prompt = request.prompt;
  song.lyrics = request.lyrics;
  song.language = request.language;
  song.duration = request.duration;
  song.bpm = request.bpm;
  song.key_scale = request.key;
  song.time_signature = request.time_signature;
  song.seeds = {request.seed ? *request.seed : music::fresh_seed()};
  song.steps = request.steps;
  song.task = music::parse_task(request.task, "task");
  if (request.source) song.source = audio::read_sound(*request.source);
  if (request.reference) song.reference = audio::read_sound(*request.reference);
  song.repaint_from = request.from;
  song.repaint_to = request.to;
  return song;
}

}  // namespace

struct MusicModel::Impl {
  Impl(const std::filesystem::path& checkpoint, const MusicOptions& options)
      : threads(options.threads),
        composer(music::Checkpoint::open(checkpoint), music_forms(options), threads) {}

  device::ThreadPool threads;
  music::Composer composer;
  std::mutex mutex;
};

MusicModel::MusicModel(const std::filesystem::path& checkpoint, const MusicOptions& options)
    : impl_(std::make_unique<Impl>(checkpoint, options)) {}

MusicModel::~MusicModel() = default;
MusicModel::MusicModel(MusicModel&&) noexcept = default;
MusicModel& MusicModel::operator=(MusicModel&&) noexcept = default;

Song MusicModel::compose(const SongRequest& request, const std::filesystem::path& file,
                         const ComposeOptions& options) {
  const audio::SoundFormat format = audio::sound_format_of(file, "", "file");
  const music::SongRequest song = to_music(request);
  music::ComposeOptions music_options;
  music_options.spool_folder = file.parent_path();
  music_options.stop = options.stop;
  if (options.progress) {
    music_options.progress = [&](music::Stage stage, double done) {
      options.progress(to_string(stage), done);
    };
  }
  const std::lock_guard lock(impl_->mutex);
  const std::vector<music::ComposedSong> songs = impl_->composer.compose(song, music_options);
  const audio::SoundSpool& sound = *songs.front().sound;
  const audio::SoundTags tags{
      .title = request.prompt.substr(0, request.prompt.find('\n')),
      .comment = "prompt: " + request.prompt + "\nseed: " + std::to_string(song.seeds[0])};
  audio::write_sound(file, format, sound, tags, options.stop);
  const double seconds = static_cast<double>(sound.samples()) / 2 / static_cast<double>(audio::kSampleRate);
  return {.file = file, .seed = song.seeds[0], .seconds = seconds};
}

}  // namespace assay::api
