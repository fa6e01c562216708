#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/thread_pool.hpp"
#include "lab/gate/subject.hpp"
#include "lab/music_fixture.hpp"
#include "music/composer.hpp"
#include "ops/selection.hpp"

namespace assay::lab {

/// A music model's run of a fixture's songs. A case is a song, an array a stage of it (kMusicStages); the
/// waveform has a sample rate. The songs start from the oracle's noise and take its steps without DCW,
/// guidance, injection of the source or a blend of edges, as the oracle does. Codes are compared at fp32
/// alone: elsewhere a near tie turns one over whole.
///
/// Input arms: "wrong_seed" starts from other noise, "swapped_conditions" gives a song the words of the next
/// one that has others.
class MusicSubject final : public Subject {
 public:
  /// `fixture` must outlive this. Throws Error(mismatch) for a fixture of another model: by the widths of
  /// what was recorded, and by the token ids that the model's tokenizer gives the recorded texts.
  MusicSubject(music::Checkpoint checkpoint, const MusicFixture& fixture, const ops::Selection& selection,
               ops::Precision precision, std::size_t threads);

  nlohmann::ordered_json describe() const override;
  std::size_t cases() const override;
  std::string case_name(std::size_t index) const override;
  Answer expected(std::size_t index) override;
  Answer run(std::size_t index) override;
  std::optional<Answer> run_changed(std::size_t index, std::string_view arm) override;

 private:
  using Arrays = std::map<std::string, Array, std::less<>>;

  Answer answer(std::size_t index, const music::SongRequest& request);
  Arrays compose(const music::SongRequest& request);
  /// The codes of the source's latents, which the composer itself needs for covers alone.
  void add_codes(std::size_t index, Arrays& arrays);
  std::vector<std::string> stages(std::size_t index) const;
  Error in_case(const Error& error, std::size_t index) const;

  const MusicFixture& fixture_;
  ops::Selection selection_;
  ops::Precision precision_;
  std::string identity_;
  device::ThreadPool threads_;
  music::Composer composer_;
};

}  // namespace assay::lab
