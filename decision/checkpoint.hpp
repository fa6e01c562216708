#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decision/model_files.hpp"
#include "formats/lora.hpp"
#include "formats/model_config.hpp"
#include "formats/tensor_source.hpp"
#include "text/tokenizer.hpp"

namespace assay::decision {

/// Reads an option's logit from two hidden vectors: (K·h_opt + k)·(Q·h_dec + q) / √dim / temperature.
struct PointerHead {
  std::size_t dim = 0;
  std::size_t hidden = 0;
  std::vector<float> q_weight;  ///< [dim, hidden]
  std::vector<float> q_bias;    ///< [dim]
  std::vector<float> k_weight;  ///< [dim, hidden]
  std::vector<float> k_bias;    ///< [dim]
  float temperature = 1;        ///< above 0
};

/// What head.pt holds, as far as it is used (jaredpalmer/kev, kev/checkpoint.py, Meta: the same defaults for
/// fields that older checkpoints did not write).
struct HeadFile {
  std::string base;           ///< a directory relative to the run, an absolute one, or a Hub id
  std::string base_revision;  ///< empty: the default
  std::size_t lora_rank = 0;  ///< 0: trained without an adapter
  std::string weights_dtype;  ///< what the author trained in: "fp32" or "bf16"
  PointerHead head;
};

/// Reads head.pt. Throws Error(missing | malformed | mismatch | non_finite) naming file and field,
/// Error(unsupported) for option isolation and trained delimiter embeddings, which change what the backbone
/// computes.
HeadFile read_head_file(const std::filesystem::path& path);

/// A directory or file as it stands, else the snapshot of a Hub id ("org/name", "org/name@revision") in the
/// local cache. Throws Error(missing) where there is neither, what path_exists and find_in_hf_cache throw.
std::filesystem::path locate_model(const std::filesystem::path& path_or_id);

/// Where the parts of a checkpoint were found.
struct CheckpointSources {
  std::filesystem::path run;        ///< the run directory, or the GGUF file
  std::filesystem::path base;       ///< the base's directory; the run's own where it holds all weights
  std::filesystem::path tokenizer;  ///< the file
  std::string weights_dtype;        ///< of the training
  std::optional<formats::LoraReport> adapter;  ///< none: no adapter
};

/// All of a decision model, opened and checked, its weights not yet read.
struct Checkpoint {
  formats::ModelConfig config;
  std::shared_ptr<const formats::TensorSource> weights;  ///< canonical names, adapter merged
  PointerHead head;
  text::Tokenizer tokenizer;
  std::shared_ptr<const ModelFiles> files;  ///< all that were and will be read
  CheckpointSources sources = {};
};

/// Opens a Kev run directory, or a GGUF file of such a model.
///
/// A run holds head.pt and either a PEFT adapter, whose base is looked for as `base` (a directory or Hub id;
/// when given, nowhere else), then by head.pt's own reference: a path from the run, an absolute path, a Hub
/// id in the local Hugging Face cache; or all weights (config.json and safetensors files), as full-weight
/// training writes them; or neither, for a head on the bare base. The tokenizer is the run's, else the
/// base's. A `base` for what holds its own weights is Error(invalid_argument).
///
/// Every file's structure is checked, and that all tensors are there in their shapes; weights are read, and
/// their values checked, later. Throws Error naming file and tensor or field, and what to do.
Checkpoint open_checkpoint(const std::filesystem::path& run_or_gguf,
                           const std::optional<std::filesystem::path>& base);

/// Checks that the tokenizer has the five delimiters of decision rows and no id beyond the vocabulary.
/// `origin` names its file in messages. Throws Error(missing | mismatch).
void check_tokenizer(const text::Tokenizer& tokenizer, const formats::ModelConfig& config,
                     const std::string& origin);

}  // namespace assay::decision
