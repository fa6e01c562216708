#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "audio/sound_spool.hpp"
#include "device/thread_pool.hpp"
#include "music/checkpoint.hpp"
#include "music/song_request.hpp"
#include "ops/selection.hpp"

namespace assay::music {

/// The stages of a song, in their order. Each loads what it needs, runs, and lets it go before the next.
enum class Stage { source, codes, text, condition, sample, decode };
std::string_view to_string(Stage stage);

/// Where a song is: `done` of the stage's work, 0 to 1.
using Progress = std::function<void(Stage stage, double done)>;

/// Sees tensors as they are made: [rows, values.size() / rows], row-major. Those of one song of a batch have
/// its number before their name: "text_hidden", "condition", "context", "0.noise", "0.velocity_03",
/// "0.latents".
using SongTap = std::function<void(std::string_view name, std::size_t rows, std::span<const float> values)>;

struct ComposeOptions {
  std::filesystem::path spool_folder = ".";  ///< where decoded samples wait, in a file without a name
  std::size_t decode_window = 256;           ///< frames; the decoder's memory, and no sample, depends on it
  bool decode = true;                        ///< false: latents alone
  Progress progress = nullptr;
  SongTap tap = nullptr;
  std::stop_token stop = {};  ///< looked at many times a second: Error(cancelled)
};

/// A song, decoded but not yet scaled: audio::write_sound does that.
struct ComposedSong {
  std::uint64_t seed = 0;
  std::vector<float> latents;                ///< [frames, latent width]
  std::unique_ptr<audio::SoundSpool> sound;  ///< null where it was not to be decoded
};

/// What Composer::compose would refuse before it computes anything, of a request's values and of its texts'
/// lengths: for callers that have work of their own to do first. Throws as compose does.
void check_request(const SongRequest& request, const Checkpoint& checkpoint);

/// ACE-Step 1.5 from request to sound.
///
/// The same request, seeds and forms give the same bits, whatever the number of threads and of songs in the
/// batch. One call at a time.
class Composer {
 public:
  /// `threads` must outlive this.
  Composer(Checkpoint checkpoint, const ops::Selection& selection, device::ThreadPool& threads);
  ~Composer();
  Composer(const Composer&) = delete;
  Composer& operator=(const Composer&) = delete;

  /// One song a seed, all in one pass over the weights. Throws Error(invalid_argument | limit_exceeded)
  /// naming the request's field, what loading the parts throws, Error(non_finite) naming the stage,
  /// Error(cancelled), Error(io) where the samples have no room.
  std::vector<ComposedSong> compose(const SongRequest& request, const ComposeOptions& options = {});

  const Checkpoint& checkpoint() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::music
