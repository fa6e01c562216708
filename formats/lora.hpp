#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/tensor_source.hpp"

namespace assay::formats {

/// A key of PEFT's rank_pattern or alpha_pattern: a regular expression that matches a module's path within
/// the adapted model ("layers.0.mlp.up_proj"), or what follows one of its dots, to the end (huggingface/peft,
/// src/peft/utils/other.py, get_pattern_key).
class ModulePattern {
 public:
  /// Throws Error(malformed) for what is not a regular expression. `where` names it in messages.
  ModulePattern(const std::string& key, std::string where);
  /// Throws Error(malformed) when matching takes more steps than any sensible pattern needs.
  bool matches(std::string_view module) const;

 private:
  std::string where_;
  std::shared_ptr<const void> compiled_;
};

/// Which modules an adapter holds, where the configuration says so by names (huggingface/peft,
/// src/peft/tuners/tuners_utils.py, check_target_module_exists).
struct TargetModules {
  std::vector<std::string> names;     ///< paths, or what follows one of a path's dots
  std::vector<std::string> excluded;  ///< likewise
  std::vector<std::uint64_t> layers;  ///< only of these; empty: of all

  /// `module`: its path within the backbone, "layers.0.mlp.up_proj".
  bool hold(std::string_view module) const;
};

/// What a PEFT adapter_config.json says of a LoRA adapter, as far as it changes the merged weights.
struct LoraConfig {
  std::size_t rank = 0;
  double alpha = 0;
  bool rank_stabilised = false;  ///< scale alpha/√r rather than alpha/r
  std::vector<std::pair<ModulePattern, std::size_t>> rank_pattern{};  ///< the first that matches wins
  std::vector<std::pair<ModulePattern, double>> alpha_pattern{};

  std::optional<TargetModules> targets{};  ///< none where they are given by a pattern

  std::size_t rank_of(std::string_view module) const;
  float scale_of(std::string_view module) const;
};

/// Parses adapter_config.json. A field that would change the weights and that nothing here computes (DoRA,
/// biases, saved modules, trained tokens, …) is Error(unsupported) by its name, known to us or not; only
/// fields known to leave merged weights alone are passed over.
LoraConfig parse_lora_config(std::string_view json, const std::string& origin);

/// What a merge found.
struct LoraReport {
  LoraConfig config;
  std::size_t matched = 0;               ///< modules of the adapter that the base has
  std::vector<std::string> unmatched{};  ///< modules of the adapter that it has not
};

/// `base`, which has canonical names, with a PEFT LoRA adapter (adapter_config.json,
/// adapter_model.safetensors) added: W + scale · B · A in fp32, computed for the rows that are read.
/// `report`, when given, is filled even where the merge is refused for unmatched modules.
///
/// Throws Error(missing | malformed | mismatch | unsupported); Error(mismatch) when a module of the adapter
/// is not in the base or not among the targets, or none is; Error(missing) when a matrix of the base that is
/// a target has no adapter, as in an adapter saved in part.
std::shared_ptr<const TensorSource> merge_lora(std::shared_ptr<const TensorSource> base,
                                               const std::filesystem::path& adapter_directory,
                                               LoraReport* report = nullptr);

/// The same with the adapter's parts in hand. `origin` names the adapter in messages.
std::shared_ptr<const TensorSource> merge_lora(std::shared_ptr<const TensorSource> base, LoraConfig config,
                                               std::shared_ptr<const TensorSource> adapter,
                                               const std::string& origin, LoraReport* report = nullptr);

}  // namespace assay::formats
