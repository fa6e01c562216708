#include "music/planner.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "music/metadata_grammar.hpp"
#include "music/noise.hpp"

namespace assay::music {
namespace {

using Tokens = std::vector<std::int32_t>;

/// Room for the metadata: a caption at its longest, and every other field.
constexpr std::size_t kMetadataRoom = MetadataGrammar::kMostCaptionTokens + 256;

/// Bytes that are no UTF-8, as a model can write them token by token, become U+FFFD.
std::string valid_text(std::string_view text) {
  std::string result;
  while (const auto bad = find_invalid_utf8(text)) {
    result.append(text.substr(0, *bad)).append("\xef\xbf\xbd");
    text.remove_prefix(*bad + 1);
  }
  return result.append(text);
}

class Writer {
 public:
  Writer(CausalLm& model, const PlannerPrompt& prompt, const PlannerOptions& options,
         const PlannerProgress& progress, const std::stop_token& stop)
      : model_(model), prompt_(prompt), options_(options), progress_(progress), stop_(stop) {}

  SongMetadata write_metadata(const SongMetadata& given);
  Tokens write_codes(const SongMetadata& metadata);

 private:
  CausalLm::Texts begin(const std::string& guided, const std::string& unguided, std::size_t more) const {
    std::vector<Tokens> prompts{model_.tokenizer().encode(guided)};
    if (options_.guidance != 1) prompts.push_back(model_.tokenizer().encode(unguided));
    return {model_, std::move(prompts), more};
  }

  std::vector<float> guided_logits(CausalLm::Texts& texts, HeadPart part) const {
    std::vector<std::vector<float>> logits = texts.logits(part, stop_);
    if (logits.size() == 2) guide(logits[0], logits[1], options_.guidance);
    return std::move(logits[0]);
  }

  double next_uniform() { return uniform(options_.seed, NoiseStream::planner, drawn_++); }
  void tell(std::string_view stage, std::size_t done, std::size_t expected) const {
    if (progress_) progress_(stage, done, expected);
  }

  CausalLm& model_;
  const PlannerPrompt& prompt_;
  const PlannerOptions& options_;
  const PlannerProgress& progress_;
  const std::stop_token& stop_;
  std::uint64_t drawn_ = 0;
};

SongMetadata Writer::write_metadata(const SongMetadata& given) {
  const MetadataVocabulary vocabulary(model_.tokenizer(), model_.codes());
  MetadataGrammar grammar(vocabulary, given, {.caption = options_.caption, .language = options_.language});
  const std::string asked = metadata_prompt(prompt_);
  const std::size_t given_tokens = given.caption ? model_.tokenizer().encode(*given.caption).size() : 0;
  CausalLm::Texts texts = begin(asked, unguided_metadata_prompt(prompt_), kMetadataRoom + given_tokens);
  std::vector<std::size_t> seen;
  for (const std::int32_t token : model_.tokenizer().encode(asked)) {
    seen.push_back(static_cast<std::size_t>(token));
  }
  Tokens written;
  const auto write = [&](std::span<const std::int32_t> tokens) {
    texts.append(tokens);
    for (const std::int32_t token : tokens) {
      written.push_back(token);
      seen.push_back(static_cast<std::size_t>(token));
    }
  };
  while (true) {
    write(grammar.take_forced());
    if (grammar.done()) break;
    std::vector<float> logits = guided_logits(texts, HeadPart::text);
    if (!grammar.restrict(logits)) {
      // The caption ended: what follows is forced, and the model is asked again after it.
      continue;
    }
    penalize(logits, seen, options_.sampling.repetition_penalty);
    const auto token = static_cast<std::int32_t>(draw_token(logits, options_.sampling, next_uniform()));
    grammar.accept(token);
    write(std::span(&token, 1));
    tell("metadata", written.size(), 0);
  }
  model_.drop(HeadPart::text);
  const std::string text = valid_text(model_.tokenizer().decode(written));
  SongMetadata metadata = parse_metadata_lines(text.substr(std::min(text.find('\n') + 1, text.size())));
  // What was given is kept as given, whatever became of it in YAML.
  if (given.caption) metadata.caption = given.caption;
  return metadata;
}

Tokens Writer::write_codes(const SongMetadata& metadata) {
  const bool timed = options_.duration > 0;
  const double seconds = timed ? options_.duration : kLongestSong;
  const auto most = static_cast<std::size_t>(seconds * static_cast<double>(kCodesPerSecond));
  CausalLm::Texts texts = begin(codes_prompt(prompt_, metadata), unguided_codes_prompt(prompt_), most + 1);
  const std::size_t end = model_.codes().size();
  Tokens codes;
  std::vector<std::size_t> seen;
  while (codes.size() < most) {
    std::vector<float> logits = guided_logits(texts, HeadPart::codes);
    if (timed) logits[end] = -INFINITY;
    penalize(logits, seen, options_.sampling.repetition_penalty);
    const std::size_t drawn = draw_token(logits, options_.sampling, next_uniform());
    if (drawn == end) break;
    codes.push_back(static_cast<std::int32_t>(drawn));
    seen.push_back(drawn);
    const std::int32_t token = model_.codes()[drawn];
    texts.append(std::span(&token, 1));
    tell("codes", codes.size(), timed ? most : 0);
  }
  model_.drop(HeadPart::codes);
  return codes;
}

void check_planner_options(const PlannerOptions& options) {
  check_token_sampling(options.sampling);
  constexpr float kMostGuidance = 100;
  if (!(options.guidance >= 0 && options.guidance <= kMostGuidance)) {
    throw Error(ErrorKind::invalid_argument,
                {.where = "guidance", .found = fmt::format("{}", options.guidance), .expected = "0 to 100"});
  }
  if (!(options.duration >= 0 && options.duration <= kLongestSong)) {
    throw Error(
        ErrorKind::invalid_argument,
        {.where = "duration", .found = fmt::format("{}", options.duration), .expected = "0 to 600 seconds"});
  }
}

}  // namespace

void require_known_codes(std::size_t codes, const Checkpoint& checkpoint, const std::string& planner) {
  const std::size_t known = checkpoint.audio_tokenizer().codebook_size();
  if (codes <= known) return;
  throw Error(ErrorKind::mismatch, {.where = planner,
                                    .found = fmt::format("{} audio codes", codes),
                                    .expected = fmt::format("at most the model's {}", known),
                                    .advice = "name the model's own planner, or add --metadata-only"});
}

Plan plan_song(CausalLm& model, const PlannerPrompt& prompt, const SongMetadata& given,
               const PlannerOptions& options, const PlannerProgress& progress, const std::stop_token& stop) {
  check_planner_options(options);
  Writer writer(model, prompt, options, progress, stop);
  Plan plan{.metadata = given, .codes = {}, .seed = options.seed};
  if (options.metadata) plan.metadata = writer.write_metadata(given);
  if (options.codes) plan.codes = writer.write_codes(plan.metadata);
  return plan;
}

}  // namespace assay::music
