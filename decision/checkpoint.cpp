#include "decision/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/path.hpp"
#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "decision/gguf_checkpoint.hpp"
#include "formats/backbone_tensors.hpp"
#include "formats/canonical_names.hpp"
#include "formats/gguf.hpp"
#include "formats/hf_cache.hpp"
#include "formats/hf_config.hpp"
#include "formats/json.hpp"
#include "formats/safetensors.hpp"
#include "formats/torch_zip.hpp"

namespace assay::decision {
namespace {

namespace fs = std::filesystem;
using formats::TorchTensor;
using formats::TorchValue;

constexpr const char* kHeadFile = "head.pt";
constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr const char* kConfigFile = "config.json";
constexpr const char* kTokenizerFile = "tokenizer.json";

/// Fields of head.pt, each checked for its type; what is absent or None takes the author's default.
class HeadReader {
 public:
  HeadReader(const TorchValue& root, std::string origin) : root_(root), origin_(std::move(origin)) {
    if (root.dict() == nullptr) fail(ErrorKind::mismatch, "", root.kind(), "a dict, as Kev saves it");
  }

  std::string string(std::string_view key) const {
    const TorchValue* value = present(key);
    if (value == nullptr) return {};
    if (value->string() == nullptr) fail(ErrorKind::mismatch, key, value->kind(), "a string");
    // A path or id would end there for the system, and be another.
    if (value->string()->find('\0') != std::string::npos) {
      fail(ErrorKind::malformed, key, in_quotes(*value->string()), "a string without NULs");
    }
    return *value->string();
  }

  bool flag(std::string_view key) const {
    const TorchValue* value = present(key);
    if (value == nullptr) return false;
    if (value->boolean() == nullptr) fail(ErrorKind::mismatch, key, value->kind(), "True or False");
    return *value->boolean();
  }

  std::size_t size(std::string_view key) const {
    const TorchValue* value = present(key);
    if (value == nullptr) return 0;
    if (value->integer() == nullptr || *value->integer() < 0) {
      fail(ErrorKind::mismatch, key, value->kind(), "a whole number, not negative");
    }
    return static_cast<std::size_t>(*value->integer());
  }

  float temperature() const {
    const TorchValue* value = present("temperature");
    if (value == nullptr) return 1;
    if (value->number() == nullptr && value->integer() == nullptr) {
      fail(ErrorKind::mismatch, "temperature", value->kind(), "a number");
    }
    const double number =
        value->number() != nullptr ? *value->number() : static_cast<double>(*value->integer());
    const auto narrow = static_cast<float>(number);
    if (!(narrow > 0) || !std::isfinite(narrow)) {
      fail(ErrorKind::malformed, "temperature", fmt::format("{}", number), "a finite number above 0");
    }
    return narrow;
  }

  /// A parameter of the head. An extent of 0 in `shape` takes the file's.
  std::vector<float> parameter(std::string_view name, std::span<std::uint64_t> shape) const {
    const TorchValue* head = present("head");
    if (head == nullptr) fail(ErrorKind::missing, "head", "not there", "the pointer head's weights");
    const std::string field = "head." + std::string(name);
    const TorchValue* value = head->find(name);
    if (value == nullptr) fail(ErrorKind::missing, field, "not there", "a tensor");
    const TorchTensor* tensor = value->tensor();
    if (tensor == nullptr) fail(ErrorKind::mismatch, field, value->kind(), "a tensor");
    const bool fits = std::ranges::equal(tensor->shape, shape, [](std::uint64_t found, std::uint64_t wanted) {
      return found != 0 && (wanted == 0 || found == wanted);
    });
    if (!fits) {
      fail(ErrorKind::mismatch, field, "shape " + formats::describe_shape(tensor->shape),
           shape[0] == 0 ? "[head_dim, hidden size]" : formats::describe_shape(shape));
    }
    std::ranges::copy(tensor->shape, shape.begin());
    try {
      return tensor->to_floats();
    } catch (const Error& error) {
      fail(error.kind(), field, error.parts().found, error.parts().expected);
    }
  }

  [[noreturn]] void fail(ErrorKind kind, std::string_view key, std::string found, std::string expected,
                         std::string advice = {}) const {
    throw Error(kind, {.where = key.empty() ? origin_ : origin_ + ": " + std::string(key),
                       .found = std::move(found),
                       .expected = std::move(expected),
                       .advice = std::move(advice)});
  }

 private:
  const TorchValue* present(std::string_view key) const {
    const TorchValue* value = root_.find(key);
    return value == nullptr || value->is_none() ? nullptr : value;
  }

  const TorchValue& root_;
  std::string origin_;
};

PointerHead read_pointer_head(const HeadReader& reader) {
  std::array<std::uint64_t, 2> matrix = {reader.size("head_dim"), 0};
  PointerHead head;
  head.q_weight = reader.parameter("q.weight", matrix);
  head.k_weight = reader.parameter("k.weight", matrix);
  std::array<std::uint64_t, 1> vector = {matrix[0]};
  head.q_bias = reader.parameter("q.bias", vector);
  head.k_bias = reader.parameter("k.bias", vector);
  head.dim = static_cast<std::size_t>(matrix[0]);
  head.hidden = static_cast<std::size_t>(matrix[1]);
  head.temperature = reader.temperature();
  return head;
}

void refuse_other_arithmetic(const HeadReader& reader) {
  if (reader.flag("option_isolation")) {
    reader.fail(ErrorKind::unsupported, "option_isolation", "True", "options that see those before them",
                "this checkpoint needs the author's server");
  }
  if (reader.flag("special_embeddings")) {
    reader.fail(ErrorKind::unsupported, "special_embeddings", "True", "the base's own delimiter embeddings",
                "this checkpoint needs the author's server");
  }
}

fs::path checked_base(const fs::path& directory) {
  if (path_exists(directory / kConfigFile)) return directory;
  throw Error(
      ErrorKind::missing,
      {.where = directory.string(), .found = "no config.json", .expected = "the base model's directory"});
}

/// `reference` as a directory as it stands, or as a Hub id in the local cache.
std::optional<fs::path> find_base(const fs::path& directory, const std::string& id,
                                  const std::string& revision) {
  if (is_directory_path(directory)) return checked_base(directory);
  if (!formats::is_hub_id(id)) return std::nullopt;
  const auto snapshot = formats::find_in_hf_cache(id, revision);
  return snapshot ? std::optional(checked_base(*snapshot)) : std::nullopt;
}

fs::path locate_base(const fs::path& run, const HeadFile& head, const std::optional<fs::path>& base) {
  if (base) {
    if (const auto found = find_base(*base, base->string(), "")) return *found;
    throw Error(ErrorKind::missing, {.where = "--base " + base->string(),
                                     .found = "neither a directory nor a model in the Hugging Face cache",
                                     .expected = "the base model's directory"});
  }
  if (head.base.empty()) {
    throw Error(ErrorKind::missing, {.where = (run / kHeadFile).string() + ": base",
                                     .found = "not there",
                                     .advice = "name the base model's directory with --base"});
  }
  // An absolute reference replaces the run's directory in the join.
  if (const auto found = find_base(run / head.base, head.base, head.base_revision)) return *found;
  const std::string revision = head.base_revision.empty() ? "" : " at revision " + head.base_revision;
  throw Error(ErrorKind::missing, {.where = (run / kHeadFile).string() + ": base",
                                   .found = "'" + head.base + "'" + revision +
                                            " is neither beside the run nor in the Hugging Face cache",
                                   .advice = "download it, or name its directory with --base"});
}

bool holds_all_weights(const fs::path& run) {
  return !path_exists(run / kAdapterConfig) && path_exists(run / kConfigFile) &&
         formats::has_safetensors(run);
}

std::shared_ptr<const formats::TensorSource> open_weights(CheckpointSources& sources, const HeadFile& head,
                                                          const formats::ModelConfig& config) {
  auto weights = formats::canonical_names(formats::open_safetensors(sources.base));
  formats::check_backbone_tensors(*weights, config);
  if (!path_exists(sources.run / kAdapterConfig)) {
    if (head.lora_rank == 0 || sources.base == sources.run) return weights;
    throw Error(ErrorKind::missing, {.where = (sources.run / kAdapterConfig).string(),
                                     .found = "not there",
                                     .expected = "the adapter of rank " + std::to_string(head.lora_rank) +
                                                 " that head.pt speaks of",
                                     .advice = "finish the download of the run"});
  }
  formats::LoraReport report;
  weights = formats::merge_lora(std::move(weights), sources.run, &report);
  if (head.lora_rank != report.config.rank) {
    log().warn("{}: head.pt speaks of an adapter of rank {}, the adapter has rank {}", sources.run.string(),
               head.lora_rank, report.config.rank);
  }
  sources.adapter = std::move(report);
  return weights;
}

fs::path locate_tokenizer(const CheckpointSources& sources) {
  for (const fs::path& directory : {sources.run, sources.base}) {
    if (path_exists(directory / kTokenizerFile)) return directory / kTokenizerFile;
  }
  throw Error(ErrorKind::missing, {.where = (sources.run / kTokenizerFile).string(),
                                   .found = "neither there nor beside the base",
                                   .expected = "the checkpoint's tokenizer"});
}

void add_files(const fs::path& directory, std::vector<fs::path>& files) {
  for (const fs::path& file : list_directory(directory)) {
    const std::string name = file.filename().string();
    const bool part = name.ends_with(".safetensors") || name == "model.safetensors.index.json" ||
                      name == kHeadFile || name == kAdapterConfig || name == kConfigFile;
    if (part) files.push_back(file);
  }
}

std::shared_ptr<const ModelFiles> run_files(const CheckpointSources& sources) {
  std::vector<fs::path> files;
  add_files(sources.run, files);
  if (sources.base != sources.run) add_files(sources.base, files);
  files.push_back(sources.tokenizer);
  return std::make_shared<const ModelFiles>(std::move(files));
}

void refuse_what_is_no_run(const fs::path& directory) {
  if (path_exists(directory / kHeadFile)) return;
  const bool is_base = path_exists(directory / kConfigFile);
  throw Error(ErrorKind::missing,
              {.where = directory.string(),
               .found = is_base ? "a model without head.pt" : "no head.pt",
               .expected = "a Kev run's directory",
               .advice = is_base ? "if it is the base of a run, name the run, and this with --base"
                                 : "name the directory that holds head.pt"});
}

[[noreturn]] void refuse_base(const fs::path& base, const fs::path& model, const char* why) {
  throw Error(ErrorKind::invalid_argument, {.where = "--base " + base.string(),
                                            .found = "given with " + model.string() + ", which " + why,
                                            .expected = "a run whose base lies elsewhere",
                                            .advice = "leave --base out"});
}

Checkpoint open_run(const fs::path& run, const std::optional<fs::path>& base) {
  refuse_what_is_no_run(run);
  const bool whole = holds_all_weights(run);
  if (whole && base) refuse_base(*base, run, "holds all weights itself");
  const HeadFile head = read_head_file(run / kHeadFile);
  CheckpointSources sources{
      .run = run, .base = {}, .tokenizer = {}, .weights_dtype = head.weights_dtype, .adapter = {}};
  sources.base = whole ? run : locate_base(run, head, base);
  sources.tokenizer = locate_tokenizer(sources);
  auto files = run_files(sources);
  const fs::path config_path = sources.base / kConfigFile;
  const formats::ModelConfig config =
      formats::parse_hf_config(read_text_file(config_path, formats::kMaxJsonFileBytes), config_path.string());
  if (head.head.hidden != config.hidden_size) {
    throw Error(ErrorKind::mismatch,
                {.where = (run / kHeadFile).string() + ": head",
                 .found = "a head for hidden vectors of " + std::to_string(head.head.hidden),
                 .expected = std::to_string(config.hidden_size) + ", by " + config_path.string(),
                 .advice = "the run was trained on another base"});
  }
  auto weights = open_weights(sources, head, config);
  auto tokenizer = text::Tokenizer::from_json(read_text_file(sources.tokenizer), sources.tokenizer.string());
  check_tokenizer(tokenizer, config, sources.tokenizer.string());
  return {config, std::move(weights), head.head, std::move(tokenizer), std::move(files), std::move(sources)};
}

}  // namespace

fs::path locate_model(const fs::path& path_or_id) {
  if (path_exists(path_or_id)) return path_or_id;
  const std::string text = path_or_id.string();
  const std::size_t at = text.find('@');
  const std::string id = text.substr(0, at);
  if (formats::is_hub_id(id)) {
    const auto found = formats::find_in_hf_cache(id, at == std::string::npos ? "" : text.substr(at + 1));
    if (found) return *found;
  }
  throw Error(ErrorKind::missing, {.where = text,
                                   .found = "neither there nor in the Hugging Face cache",
                                   .expected = "a run directory, a GGUF file or a downloaded model's id"});
}

HeadFile read_head_file(const fs::path& path) {
  const TorchValue root = formats::read_torch_file(path);
  const HeadReader reader(root, path.string());
  refuse_other_arithmetic(reader);
  HeadFile file;
  file.base = reader.string("base");
  file.base_revision = reader.string("base_revision");
  file.lora_rank = reader.size("lora");
  file.weights_dtype = reader.string("weights_dtype");
  if (file.weights_dtype.empty()) file.weights_dtype = "fp32";
  file.head = read_pointer_head(reader);
  return file;
}

void check_tokenizer(const text::Tokenizer& tokenizer, const formats::ModelConfig& config,
                     const std::string& origin) {
  // Tokens of Qwen's that text rarely has serve as delimiters (jaredpalmer/kev, kev/model.py, SPECIAL).
  for (const char* token :
       {"<|fim_prefix|>", "<|fim_middle|>", "<|box_start|>", "<|box_end|>", "<|fim_suffix|>"}) {
    if (tokenizer.token_id(token)) continue;
    throw Error(ErrorKind::missing, {.where = origin,
                                     .found = std::string("no token ") + token,
                                     .expected = "the delimiters of decision rows",
                                     .advice = "use the tokenizer that came with the checkpoint"});
  }
  if (tokenizer.id_limit() <= config.vocabulary_size) return;
  throw Error(ErrorKind::mismatch,
              {.where = origin,
               .found = "ids up to " + std::to_string(tokenizer.id_limit() - 1),
               .expected = "ids below the vocabulary's " + std::to_string(config.vocabulary_size),
               .advice = "the tokenizer and the weights are of different models"});
}

Checkpoint open_checkpoint(const fs::path& run_or_gguf, const std::optional<fs::path>& base) {
  const fs::path run = locate_model(run_or_gguf);
  if (is_directory_path(run)) return open_run(run, base);
  if (formats::is_gguf(run)) {
    if (base) refuse_base(*base, run, "holds its base");
    return open_gguf_checkpoint(run);
  }
  throw Error(ErrorKind::unsupported, {.where = run.string(),
                                       .found = "a file that is not GGUF",
                                       .expected = "a run directory or a GGUF file",
                                       .advice = "`assay inspect` says what it holds"});
}

}  // namespace assay::decision
