#include "music/causal_lm.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "base/utf8.hpp"
#include "formats/backbone_tensors.hpp"
#include "formats/canonical_names.hpp"
#include "formats/hf_config.hpp"
#include "formats/json.hpp"
#include "formats/safetensors.hpp"

namespace assay::music {
namespace {

namespace fs = std::filesystem;

/// FSQ levels 8, 8, 8, 5, 5, 5: the codes that the audio tokenizer has. The released vocabularies name more.
constexpr std::size_t kMostCodes = 64000;

std::vector<std::int32_t> find_codes(const text::Tokenizer& tokenizer, const fs::path& directory) {
  std::vector<std::int32_t> ids;
  while (ids.size() < kMostCodes) {
    const auto id = tokenizer.token_id(fmt::format("<|audio_code_{}|>", ids.size()));
    if (!id) break;
    ids.push_back(*id);
  }
  if (ids.empty()) {
    throw Error(ErrorKind::missing, {.where = (directory / "tokenizer.json").string(),
                                     .found = "no token <|audio_code_0|>",
                                     .expected = "the vocabulary of a planner",
                                     .advice = "name the directory of an acestep-5Hz-lm checkpoint"});
  }
  return ids;
}

/// tokenizer_config.json's eos_token, a string or an object with its content.
std::string end_token_text(const fs::path& directory) {
  const fs::path path = directory / "tokenizer_config.json";
  const std::string origin = path.string();
  const nlohmann::json document =
      formats::parse_json(read_text_file(path, formats::kMaxJsonFileBytes), origin);
  const formats::JsonFields fields(document, origin);
  if (document.contains("eos_token") && document["eos_token"].is_object()) {
    if (const auto content = fields.object("eos_token")->string("content")) return *content;
  } else if (const auto token = fields.string("eos_token")) {
    return *token;
  }
  throw Error(ErrorKind::missing,
              {.where = origin + ": eos_token", .found = "not there", .expected = "the end token"});
}

bool ties_embeddings(const std::string& json, const std::string& origin) {
  const nlohmann::json document = formats::parse_json(json, origin);
  return formats::JsonFields(document, origin).boolean("tie_word_embeddings").value_or(true);
}

}  // namespace

PlannerVocabulary read_planner_vocabulary(const fs::path& directory, std::size_t rows) {
  const fs::path path = directory / "tokenizer.json";
  PlannerVocabulary vocabulary{.tokenizer = text::Tokenizer::from_json(read_text_file(path), path.string()),
                               .codes = {}};
  vocabulary.codes = find_codes(vocabulary.tokenizer, directory);
  const std::string end = end_token_text(directory);
  const auto end_id = vocabulary.tokenizer.token_id(end);
  if (!end_id) {
    throw Error(ErrorKind::missing, {.where = path.string(),
                                     .found = "no token " + in_quotes(end),
                                     .expected = "the end token that tokenizer_config.json names"});
  }
  vocabulary.end = *end_id;
  for (const std::int32_t id : vocabulary.codes) {
    if (static_cast<std::size_t>(id) < rows) continue;
    throw Error(ErrorKind::mismatch,
                {.where = path.string(),
                 .found = "a token of id " + std::to_string(id),
                 .expected = "ids below config.json's vocab_size, " + std::to_string(rows)});
  }
  return vocabulary;
}

struct CausalLm::Impl {
  device::ThreadPool& threads;
  device::Arena arena;
  PlannerVocabulary vocabulary;
  std::unique_ptr<backbone::Backbone> backbone;
  std::shared_ptr<const formats::TensorSource> source;  ///< the output layer's
  std::string output;                                   ///< its tensor
  std::vector<std::int32_t> text_rows;
  std::array<std::optional<ops::MatmulWeight>, 2> heads = {};

  /// The token whose row is row `index` of a part.
  std::int32_t row_token(HeadPart part, std::size_t index) const {
    if (part == HeadPart::text) return text_rows[index];
    return index < vocabulary.codes.size() ? vocabulary.codes[index] : vocabulary.end;
  }
  std::size_t rows(HeadPart part) const {
    return part == HeadPart::text ? text_rows.size() : vocabulary.codes.size() + 1;
  }

  const ops::MatmulWeight& head(HeadPart part) {
    auto& packed = heads[static_cast<std::size_t>(part)];
    if (packed) return *packed;
    const std::size_t width = backbone->config().hidden_size;
    packed = backbone->selection().matmul->pack(
        rows(part), width, [&](std::size_t first, std::size_t count, std::span<float> out) {
          for (std::size_t i = 0; i < count; ++i) {
            source->read_rows(output, static_cast<std::uint64_t>(row_token(part, first + i)), 1,
                              out.subspan(i * width, width));
          }
        });
    source->release(output);
    return *packed;
  }
};

CausalLm::CausalLm(const fs::path& directory, const ops::Selection& selection, device::ThreadPool& threads,
                   const std::function<void(std::size_t, std::size_t)>& progress) {
  const fs::path config_path = directory / "config.json";
  const std::string json = read_text_file(config_path, formats::kMaxJsonFileBytes);
  formats::ModelConfig config = formats::parse_hf_config(json, config_path.string());
  if (config.family != formats::Family::qwen3) {
    throw Error(ErrorKind::unsupported, {.where = config_path.string(),
                                         .found = "a hybrid model",
                                         .expected = "Qwen3, as every released planner is"});
  }
  auto source = formats::open_safetensors(directory);
  impl_.reset(new Impl{.threads = threads,
                       .arena = {},
                       .vocabulary = read_planner_vocabulary(directory, config.vocabulary_size),
                       .backbone = nullptr,
                       .source = source,
                       .output = "lm_head.weight",
                       .text_rows = {}});
  if (ties_embeddings(json, config_path.string())) {
    const auto names = source->names();
    const auto tied = std::ranges::find_if(names, [](const std::string& name) {
      return formats::canonical_name(name) == "embed_tokens.weight";
    });
    if (tied != names.end()) impl_->output = *tied;
  }
  formats::require(*source, impl_->output,
                   std::array<std::uint64_t, 2>{config.vocabulary_size, config.hidden_size});
  std::vector<bool> is_code(config.vocabulary_size);
  for (const std::int32_t id : impl_->vocabulary.codes) is_code[static_cast<std::size_t>(id)] = true;
  for (std::size_t id = 0; id < is_code.size(); ++id) {
    if (!is_code[id]) impl_->text_rows.push_back(static_cast<std::int32_t>(id));
  }
  auto weights = formats::canonical_names(std::move(source));
  formats::check_backbone_tensors(*weights, config);
  impl_->backbone = std::make_unique<backbone::Backbone>(std::move(config), std::move(weights), selection,
                                                         threads, progress);
}

CausalLm::~CausalLm() = default;

const text::Tokenizer& CausalLm::tokenizer() const {
  return impl_->vocabulary.tokenizer;
}
std::size_t CausalLm::vocabulary() const {
  return impl_->backbone->config().vocabulary_size;
}
std::span<const std::int32_t> CausalLm::codes() const {
  return impl_->vocabulary.codes;
}
std::int32_t CausalLm::end_token() const {
  return impl_->vocabulary.end;
}
void CausalLm::drop(HeadPart part) {
  impl_->heads[static_cast<std::size_t>(part)].reset();
}
std::size_t CausalLm::weight_bytes() const {
  std::size_t bytes = impl_->backbone->weight_bytes();
  for (const auto& head : impl_->heads) bytes += head ? head->data.bytes() : 0;
  return bytes;
}

CausalLm::Texts::Texts(CausalLm& model, std::vector<std::vector<std::int32_t>> prompts, std::size_t more)
    : model_(model), pending_(std::move(prompts)) {
  const std::size_t most = model.impl_->backbone->config().max_positions;
  for (const std::vector<std::int32_t>& prompt : pending_) {
    if (prompt.empty() || prompt.size() + more > most) {
      throw Error(ErrorKind::limit_exceeded,
                  {.where = "the planner's text",
                   .found = fmt::format("{} tokens and room for {} more", prompt.size(), more),
                   .expected = fmt::format("1 to {} in all, the model's positions", most),
                   .advice = "shorten the lyrics or the song"});
    }
    states_.push_back(model.impl_->backbone->growing_state(prompt.size() + more));
  }
}

void CausalLm::Texts::append(std::span<const std::int32_t> tokens) {
  for (std::vector<std::int32_t>& pending : pending_) {
    pending.insert(pending.end(), tokens.begin(), tokens.end());
  }
}

std::vector<std::vector<float>> CausalLm::Texts::logits(HeadPart part, const std::stop_token& stop) {
  Impl& impl = *model_.impl_;
  std::vector<backbone::Segment> segments(states_.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    segments[i].tokens = pending_[i];
    segments[i].growing = states_[i];
    segments[i].readouts = {pending_[i].size() - 1};
  }
  std::atomic<bool> cancel = false;
  const std::stop_callback callback(stop, [&] { cancel = true; });
  backbone::RunOptions options;
  options.cancel = &cancel;
  const backbone::PassResult pass = impl.backbone->run(segments, options);
  for (std::vector<std::int32_t>& pending : pending_) pending.clear();

  const std::size_t width = impl.backbone->config().hidden_size;
  std::vector<float> hidden;
  for (const std::vector<float>& row : pass.hidden) hidden.insert(hidden.end(), row.begin(), row.end());
  const ops::MatmulWeight& head = impl.head(part);
  std::vector<float> rows(segments.size() * head.n);
  const device::Arena::Scope scope(impl.arena);
  ops::matmul({impl.threads, impl.arena},
              {.x = {hidden.data(), width}, .m = segments.size(), .w = &head, .y = {rows.data(), head.n}});
  std::vector<std::vector<float>> result(segments.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::span<const float> row = std::span(rows).subspan(i * head.n, head.n);
    if (part == HeadPart::codes) {
      result[i].assign(row.begin(), row.end());
      continue;
    }
    result[i].assign(model_.vocabulary(), -std::numeric_limits<float>::infinity());
    for (std::size_t j = 0; j < row.size(); ++j) {
      result[i][static_cast<std::size_t>(impl.text_rows[j])] = row[j];
    }
  }
  return result;
}

}  // namespace assay::music
