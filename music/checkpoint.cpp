#include "music/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "base/sha256.hpp"
#include "formats/backbone_tensors.hpp"
#include "formats/canonical_names.hpp"
#include "formats/hf_config.hpp"
#include "formats/json.hpp"
#include "formats/safetensors.hpp"
#include "formats/torch_zip.hpp"

namespace assay::music {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "config.json";
constexpr const char* kIndexFile = "model_index.json";
constexpr const char* kSilenceFile = "silence_latent.pt";
constexpr const char* kSilence = "silence_latent";
constexpr const char* kNullCondition = "null_condition_emb";
constexpr std::string_view kDiffusersStem = "diffusion_pytorch_model";
constexpr std::size_t kMostTokenizerBytes = std::size_t{512} << 20;

std::string read_config(const fs::path& file) {
  return read_text_file(file, formats::kMaxJsonFileBytes);
}

bool has_file(const fs::path& folder, const char* name) {
  return is_directory_path(folder) && path_exists(folder / name);
}

/// A folder whose config.json is that of an original checkpoint's DiT, which alone speaks of lyric encoders.
bool holds_original_dit(const fs::path& folder) {
  if (!has_file(folder, kConfigFile)) return false;
  const std::string origin = (folder / kConfigFile).string();
  const nlohmann::json document = formats::parse_json(read_config(folder / kConfigFile), origin);
  return document.is_object() && document.contains("num_lyric_encoder_hidden_layers") &&
         document.contains("num_hidden_layers");
}

std::vector<fs::path> original_dits_in(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const fs::path& folder : list_directory(directory)) {
    if (holds_original_dit(folder)) found.push_back(folder);
  }
  return found;
}

/// The text encoder of an original checkpoint: the folder beside the DiT that is known by name, else by its
/// kind.
fs::path text_encoder_beside(const fs::path& root) {
  const fs::path usual = root / "Qwen3-Embedding-0.6B";
  if (has_file(usual, kConfigFile)) return usual;
  throw Error(ErrorKind::missing, {.where = usual.string(),
                                   .found = "no text encoder",
                                   .expected = "config.json, model.safetensors and tokenizer.json",
                                   .advice = "download it beside the model's folder"});
}

/// The authors cast the loaded model to bf16 as a whole, its rotary frequencies with it
/// (ace-step/ACE-Step-1.5, acestep/handler.py: AutoModel.from_pretrained(…), then .to(dtype)), and so does
/// who saves it by diffusers. What it was trained with are these frequencies: with exact ones its hidden
/// states are off by 0.2 %.
formats::ModelConfig parse_text_encoder_config(std::string_view json, const std::string& origin) {
  formats::ModelConfig config = formats::parse_hf_config(json, origin);
  config.bf16_rope_frequencies = true;
  return config;
}

template <class Parse>
auto parse_config_of(const fs::path& folder, const Parse& parse) {
  const fs::path file = folder / kConfigFile;
  return parse(read_config(file), file.string());
}

std::vector<float> transposed(const std::vector<float>& values, std::size_t rows, std::size_t columns) {
  std::vector<float> out(values.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) out[c * rows + r] = values[r * columns + c];
  }
  return out;
}

[[noreturn]] void bad_silence(const std::string& where, std::span<const std::uint64_t> shape,
                              const std::string& expected) {
  throw Error(ErrorKind::mismatch,
              {.where = where, .found = "shape " + formats::describe_shape(shape), .expected = expected});
}

/// torch.save of [1, width, frames] (huggingface/diffusers, scripts/convert_ace_step_to_diffusers.py
/// transposes it).
std::vector<float> read_silence_file(const fs::path& file, std::size_t width) {
  const formats::TorchValue value = formats::read_torch_file(file);
  const formats::TorchTensor* tensor = value.tensor();
  if (tensor == nullptr) {
    throw Error(ErrorKind::malformed,
                {.where = file.string(), .found = value.kind(), .expected = "one tensor"});
  }
  const std::vector<std::uint64_t>& shape = tensor->shape;
  if (shape.size() != 3 || shape[0] != 1 || shape[1] != width || shape[2] == 0) {
    bad_silence(file.string(), shape, fmt::format("[1, {}, frames]", width));
  }
  return transposed(tensor->to_floats(), width, static_cast<std::size_t>(shape[2]));
}

std::vector<float> read_silence_tensor(const formats::TensorSource& source, std::size_t width) {
  const formats::TensorInfo& info = formats::require(source, kSilence);
  if (info.shape.size() != 3 || info.shape[0] != 1 || info.shape[1] == 0 || info.shape[2] != width) {
    bad_silence(info.origin + ": tensor '" + kSilence + "'", info.shape,
                fmt::format("[1, frames, {}]", width));
  }
  formats::require_floating(info);
  return formats::read_tensor(source, kSilence, info.shape);
}

void append_folder(const fs::path& folder, std::string_view stem, std::vector<fs::path>& files) {
  if (!is_directory_path(folder)) return;
  for (const fs::path& file : list_directory(folder)) {
    const std::string name = file.filename().string();
    const bool weights = name.starts_with(stem) && name.ends_with(".safetensors");
    if (weights || name == kConfigFile || name == "tokenizer.json" || name == kSilenceFile) {
      files.push_back(file);
    }
  }
}

}  // namespace

bool Checkpoint::looks_like(const fs::path& directory) {
  if (!is_directory_path(directory)) return false;
  if (path_exists(directory / kIndexFile)) return true;
  return holds_original_dit(directory) || !original_dits_in(directory).empty();
}

Checkpoint Checkpoint::open(const fs::path& directory) {
  if (!is_directory_path(directory)) {
    throw Error(ErrorKind::missing, {.where = directory.string(),
                                     .found = "no directory",
                                     .expected = "an ACE-Step checkpoint's directory"});
  }
  if (path_exists(directory / kIndexFile)) return open_diffusers(directory);
  if (holds_original_dit(directory)) return open_original(directory);
  const std::vector<fs::path> dits = original_dits_in(directory);
  if (dits.size() == 1) return open_original(dits[0]);
  if (dits.empty()) {
    throw Error(ErrorKind::missing, {.where = directory.string(),
                                     .found = "no ACE-Step checkpoint",
                                     .expected = "model_index.json, or a folder such as acestep-v15-turbo"});
  }
  std::string names;
  for (const fs::path& dit : dits) names += (names.empty() ? "" : ", ") + dit.filename().string();
  throw Error(ErrorKind::invalid_argument, {.where = directory.string(),
                                            .found = "several models: " + names,
                                            .expected = "one",
                                            .advice = "name the folder of the one that is meant"});
}

Checkpoint Checkpoint::open_diffusers(const fs::path& root) {
  const auto folder = [&](Part part) { return root / folder_of(part); };
  Checkpoint checkpoint;
  checkpoint.root_ = root;
  checkpoint.text_ = folder(Part::text_encoder);
  checkpoint.tokenizer_ = root / "tokenizer";
  PartConfigs& parts = checkpoint.parts_;
  parts.dit = parse_config_of(folder(Part::transformer), parse_dit_config);
  parts.condition = parse_config_of(folder(Part::condition_encoder), parse_condition_config);
  if (has_file(folder(Part::audio_tokenizer), kConfigFile) &&
      has_file(folder(Part::audio_detokenizer), kConfigFile)) {
    parts.tokenizer = parse_config_of(folder(Part::audio_tokenizer), parse_audio_tokenizer_config);
    parts.detokenizer = parse_config_of(folder(Part::audio_detokenizer), parse_audio_detokenizer_config);
  }
  checkpoint.vae_ = parse_config_of(folder(Part::vae), parse_vae_config);
  checkpoint.text_encoder_ = parse_config_of(checkpoint.text_, parse_text_encoder_config);
  check_configs_agree(parts, checkpoint.vae_, checkpoint.text_encoder_.hidden_size, root.string());
  return checkpoint;
}

Checkpoint Checkpoint::open_original(const fs::path& dit) {
  Checkpoint checkpoint;
  checkpoint.layout_ = Layout::original;
  // A path such as "." has its parent only once it is resolved.
  checkpoint.dit_ = dit;
  checkpoint.root_ = resolved_path(dit).parent_path();
  checkpoint.text_ = text_encoder_beside(checkpoint.root_);
  checkpoint.tokenizer_ = checkpoint.text_;
  checkpoint.parts_ = parse_config_of(dit, parse_original_config);
  checkpoint.vae_ = parse_config_of(checkpoint.root_ / folder_of(Part::vae), parse_vae_config);
  checkpoint.text_encoder_ = parse_config_of(checkpoint.text_, parse_text_encoder_config);
  check_configs_agree(checkpoint.parts_, checkpoint.vae_, checkpoint.text_encoder_.hidden_size, dit.string());
  return checkpoint;
}

const AudioTokenConfig& Checkpoint::audio_tokenizer() const {
  if (parts_.tokenizer) return *parts_.tokenizer;
  throw Error(ErrorKind::missing, {.where = root_.string(),
                                   .found = "no audio_tokenizer and audio_token_detokenizer",
                                   .expected = "both, for covers and audio codes"});
}

const AudioTokenConfig& Checkpoint::audio_detokenizer() const {
  audio_tokenizer();
  return *parts_.detokenizer;
}

fs::path Checkpoint::weights_of(Part part) const {
  if (part == Part::text_encoder) return text_;
  if (part == Part::vae || layout_ == Layout::diffusers) return root_ / folder_of(part);
  return dit_;
}

std::shared_ptr<const formats::TensorSource> Checkpoint::tensors(Part part) const {
  const fs::path folder = weights_of(part);
  if (part == Part::text_encoder) return formats::canonical_names(formats::open_safetensors(folder));
  if (part == Part::vae || layout_ == Layout::diffusers) {
    return formats::open_safetensors(folder, kDiffusersStem);
  }
  return formats::renamed_tensors(formats::open_safetensors(folder),
                                  [part](std::string_view name) { return part_name(part, name); });
}

text::Tokenizer Checkpoint::tokenizer() const {
  const fs::path file = tokenizer_ / "tokenizer.json";
  return text::Tokenizer::from_json(read_text_file(file, kMostTokenizerBytes), file.string(),
                                    text::TextTemplate::read);
}

std::vector<float> Checkpoint::silence_latent() const {
  const std::size_t width = parts_.dit.latent_width;
  if (layout_ == Layout::original) return read_silence_file(dit_ / kSilenceFile, width);
  return read_silence_tensor(*tensors(Part::condition_encoder), width);
}

std::optional<std::vector<float>> Checkpoint::null_condition() const {
  const auto source = tensors(Part::condition_encoder);
  if (source->find(kNullCondition) == nullptr) return std::nullopt;
  const std::array<std::uint64_t, 3> shape = {1, 1, parts_.condition.block.hidden_size};
  return formats::read_tensor(*source, kNullCondition, shape);
}

std::vector<fs::path> Checkpoint::files() const {
  std::vector<fs::path> files;
  append_folder(text_, "model", files);
  if (tokenizer_ != text_) append_folder(tokenizer_, "model", files);
  for (const Part part : {Part::condition_encoder, Part::transformer, Part::audio_tokenizer,
                          Part::audio_detokenizer, Part::vae}) {
    if (layout_ == Layout::diffusers || part == Part::vae) {
      append_folder(weights_of(part), kDiffusersStem, files);
    }
  }
  if (layout_ == Layout::original) append_folder(dit_, "model", files);
  return files;
}

std::string Checkpoint::identity() const {
  std::string lines;
  for (const fs::path& file : files()) {
    const std::string name = file.parent_path().filename().string() + "/" + file.filename().string();
    lines += fmt::format("{} {} {}\n", name, fs::file_size(file), sha256_hex(file));
  }
  return sha256_hex(std::as_bytes(std::span(lines)));
}

}  // namespace assay::music
