#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

/// Assay's public interface: open a decision model, ask it System One requests; open a music model, have it
/// compose.
///
///     assay::api::DecisionModel model("runs/kev-4b");
///     std::string response = model.decide(R"({"state": "…", "questions": {…}})");
///
///     assay::api::MusicModel band("models/acestep-v15-turbo");
///     assay::api::Song song = band.compose({.prompt = "calm piano", .duration = 30}, "song.flac");
///
/// Everything here may be used from several threads at once. Failures are exceptions derived from
/// std::exception; those about a request, a file or a flag are assay::Error (base/error.hpp), whose text
/// names the place, what was found and what to do.
namespace assay::api {

/// How a model is run.
struct DecisionOptions {
  /// The base model's directory, where the run's own reference to it is not to be followed.
  std::optional<std::filesystem::path> base = std::nullopt;
  /// fp32 throughout instead of bf16 matrix products with fp32 sums: the exact path.
  bool exact = false;
  /// Threads to use; 0 is one a core. Answers do not depend on it.
  std::size_t threads = 0;
  /// Bytes of states kept for requests about the same state; 0 keeps none. Answers do not depend on it.
  std::size_t state_cache_bytes = 0;
  /// Op name to the form that is to run it, instead of this device's selection or the default (`assay
  /// forms`).
  std::map<std::string, std::string, std::less<>> forms = {};
  /// Called while the model loads, with layers done and in all.
  std::function<void(std::size_t done, std::size_t total)> progress = nullptr;
};

/// A decision model in memory. Movable; the object it was moved from may only be assigned to or destroyed.
class DecisionModel {
 public:
  /// Opens a Kev run directory, or a GGUF file of such a model, and packs its weights.
  explicit DecisionModel(const std::filesystem::path& run_or_gguf, const DecisionOptions& options = {});
  ~DecisionModel();
  DecisionModel(DecisionModel&&) noexcept;
  DecisionModel& operator=(DecisionModel&&) noexcept;

  /// A System One request body to its response body, both JSON in UTF-8: {"model", "answers", "usage",
  /// "latency_ms"}. Calls from several threads are answered one after another.
  std::string decide(std::string_view request_json);

  /// SHA-256 over the names, sizes and contents of the model's files. The first call reads them: seconds for
  /// gigabytes. Throws where one was changed since the model was loaded.
  std::string identity() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// How a music model is run.
struct MusicOptions {
  /// fp32 throughout instead of bf16 matrix products with fp32 sums: the exact path.
  bool exact = false;
  /// Threads to use; 0 is one a core. Songs do not depend on it.
  std::size_t threads = 0;
  /// As DecisionOptions::forms.
  std::map<std::string, std::string, std::less<>> forms = {};
};

/// What is asked for; docs/compose.md says what each means.
struct SongRequest {
  std::string prompt;
  std::string lyrics = {};
  std::string language = "en";
  std::optional<double> duration = std::nullopt;  ///< seconds
  std::optional<std::uint32_t> bpm = std::nullopt;
  std::string key = {};
  std::string time_signature = {};
  std::optional<std::uint64_t> seed = std::nullopt;  ///< a fresh one where none is given
  std::optional<std::size_t> steps = std::nullopt;
  std::string task = "text2music";                                ///< or "repaint" or "cover", of `source`
  std::optional<std::filesystem::path> source = std::nullopt;     ///< sound file
  std::optional<std::filesystem::path> reference = std::nullopt;  ///< sound file whose timbre is wanted
  double from = 0;                                                ///< of repaint, seconds
  double to = -1;  ///< of repaint; not above 0: the source's end
};

/// How one song's making is followed.
struct ComposeOptions {
  std::stop_token stop = {};  ///< asks for an end: assay::Error of kind cancelled, and no file
  /// Called with the stage's name and how much of it is done, 0 to 1.
  std::function<void(std::string_view stage, double done)> progress = nullptr;
};

struct Song {
  std::filesystem::path file;
  std::uint64_t seed = 0;  ///< the one that was used
  double seconds = 0;
};

/// An ACE-Step 1.5 checkpoint, of diffusers' layout or the original. Its parts are loaded when a song needs
/// them and let go after. Movable as DecisionModel is.
class MusicModel {
 public:
  explicit MusicModel(const std::filesystem::path& checkpoint, const MusicOptions& options = {});
  ~MusicModel();
  MusicModel(MusicModel&&) noexcept;
  MusicModel& operator=(MusicModel&&) noexcept;

  /// Writes the song to `file` (.wav, .flac or .mp3), which appears when it is complete. Calls from several
  /// threads are answered one after another.
  Song compose(const SongRequest& request, const std::filesystem::path& file,
               const ComposeOptions& options = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::api
