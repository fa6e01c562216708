#include "music/condition_encoder.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.hpp"

namespace assay::music {
namespace {

constexpr const char* kConditionStage = "condition encoder";

/// Rows of one of the inputs, of which there is at least one.
std::size_t count_rows(std::span<const float> values, std::size_t width, const std::string& what) {
  if (!values.empty() && values.size() % width == 0) return values.size() / width;
  throw Error(ErrorKind::mismatch, {.where = "condition: " + what,
                                    .found = std::to_string(values.size()) + " values",
                                    .expected = "one or more rows of " + std::to_string(width)});
}

}  // namespace

ConditionEncoder::ConditionEncoder(const ConditionConfig& config, const formats::TensorSource& source,
                                   const ops::Selection& forms, device::ThreadPool& threads,
                                   const std::stop_token& stop)
    : ConditionEncoder(config, WeightLoader(source, *forms.matmul, {stop, kConditionStage}), forms, threads) {
}

ConditionEncoder::ConditionEncoder(const ConditionConfig& config, const WeightLoader& loader,
                                   const ops::Selection& forms, device::ThreadPool& threads)
    : config_(config),
      forms_(forms),
      threads_(threads),
      text_projector_(loader.product({{"text_projector.weight", hidden_size()}}, config.text_width)),
      lyric_embedding_(loader.linear("lyric_encoder.embed_tokens", hidden_size(), config.text_width)),
      lyric_encoder_(loader, {config.block, config.lyric_sliding}, "lyric_encoder."),
      timbre_embedding_(loader.linear("timbre_encoder.embed_tokens", hidden_size(), config.timbre_width)),
      timbre_encoder_(loader, {config.block, config.timbre_sliding}, "timbre_encoder."),
      null_condition_(
          loader.values("null_condition_emb", std::array<std::uint64_t, 3>{1, 1, hidden_size()})) {}

std::vector<float> ConditionEncoder::encode(const ConditionInput& input, const std::stop_token& stop) {
  const std::size_t lyrics = count_rows(input.lyrics, config_.text_width, "lyrics");
  const std::size_t text = count_rows(input.text, config_.text_width, "text");
  const std::size_t frames = count_rows(input.timbre, config_.timbre_width, "timbre");
  const ops::Context context{threads_, arena_};
  const device::Arena::Scope scope(arena_);
  const std::size_t width = hidden_size();

  // Packed as the DiT reads it: lyrics, timbre, text. Nothing is padded, so there is nothing to sort out.
  std::vector<float> rows((lyrics + 1 + text) * width);
  const std::span<float> lyric_rows = std::span(rows).first(lyrics * width);
  run_linear(context, lyric_embedding_, {input.lyrics.data(), config_.text_width}, lyrics,
             {lyric_rows.data(), width});
  lyric_encoder_.run(context, forms_, std::array{lyrics}, lyric_rows, {stop, kConditionStage});

  const std::span<float> timbre_rows = arena_.allocate<float>(frames * width);
  run_linear(context, timbre_embedding_, {input.timbre.data(), config_.timbre_width}, frames,
             {timbre_rows.data(), width});
  timbre_encoder_.run(context, forms_, std::array{frames}, timbre_rows, {stop, kConditionStage});
  // The first position pools the reference (AceStepTimbreEncoder.forward).
  std::ranges::copy(timbre_rows.first(width), lyric_rows.end());

  ops::matmul(context, {.x = {input.text.data(), config_.text_width},
                        .m = text,
                        .w = &text_projector_,
                        .y = {rows.data() + (lyrics + 1) * width, width}});
  check_finite(rows, kConditionStage);
  return rows;
}

std::size_t ConditionEncoder::weight_bytes() const {
  return text_projector_.data.bytes() + lyric_embedding_.w.data.bytes() + lyric_encoder_.weight_bytes() +
         timbre_embedding_.w.data.bytes() + timbre_encoder_.weight_bytes();
}

}  // namespace assay::music
