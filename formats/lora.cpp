#include "formats/lora.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/path.hpp"
#include "formats/backbone_tensors.hpp"
#include "formats/canonical_names.hpp"
#include "formats/json.hpp"
#include "formats/lora_kernel.hpp"
#include "formats/row_conversion.hpp"
#include "formats/safetensors.hpp"

namespace assay::formats {
namespace {

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kWeightsFile = "adapter_model.safetensors";
constexpr std::size_t kMaxRank = 65536;
constexpr std::size_t kMaxPatterns = 4096;
constexpr std::uint32_t kMaxMatchSteps = 100'000;

// Fields of PEFT's LoraConfig that do not enter a merged weight: provenance, training, and how targets were
// chosen (the tensors themselves say which modules are adapted).
constexpr std::array<std::string_view, 15> kInertFields = {"base_model_name_or_path",
                                                           "revision",
                                                           "peft_version",
                                                           "task_type",
                                                           "inference_mode",
                                                           "auto_mapping",
                                                           "lora_dropout",
                                                           "megatron_core",
                                                           "eva_config",
                                                           "qalora_group_size",
                                                           "peft_type",
                                                           "ensure_weight_tying",
                                                           "runtime_config",
                                                           "loftq_config",
                                                           "lora_ga_config"};
constexpr std::array<std::string_view, 12> kReadFields = {"r",
                                                          "lora_alpha",
                                                          "use_rslora",
                                                          "rank_pattern",
                                                          "alpha_pattern",
                                                          "bias",
                                                          "init_lora_weights",
                                                          "fan_in_fan_out",
                                                          "target_modules",
                                                          "exclude_modules",
                                                          "layers_to_transform",
                                                          "layers_pattern"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_off(const nlohmann::json& value) {
  if (value.is_null() || value == false) return true;
  return (value.is_array() || value.is_object() || value.is_string()) && value.size() == 0;
}

[[noreturn]] void fail_field(ErrorKind kind, const std::string& where, std::string found,
                             std::string expected, std::string advice = {}) {
  throw Error(kind, {.where = where,
                     .found = std::move(found),
                     .expected = std::move(expected),
                     .advice = std::move(advice)});
}

void refuse_unknown_features(const JsonFields& fields) {
  for (const auto& [key, value] : fields.json().items()) {
    if (contains(kInertFields, key) || contains(kReadFields, key) || is_off(value)) continue;
    fail_field(ErrorKind::unsupported, fields.where(key), excerpt(value),
               "a plain LoRA adapter, without this feature", "merge the adapter into its base with PEFT");
  }
}

/// Some initialisations move part of the base weight into the adapter, so that the base as published is no
/// longer what the adapter adds to.
void check_initialisation(const JsonFields& fields) {
  const auto found = fields.json().find("init_lora_weights");
  if (found == fields.json().end() || found->is_null() || found->is_boolean()) return;
  for (const char* name : {"gaussian", "eva", "orthogonal"}) {
    if (*found == name) return;
  }
  fail_field(ErrorKind::unsupported, fields.where("init_lora_weights"), excerpt(*found),
             "an initialisation that leaves the base weights alone",
             "convert the adapter to plain LoRA with PEFT");
}

std::size_t rank_value(const std::string& where, std::uint64_t rank) {
  if (rank == 0 || rank > kMaxRank)
    fail_field(ErrorKind::malformed, where, std::to_string(rank), "1 to 65536");
  return static_cast<std::size_t>(rank);
}

/// The scale is used in fp32, whatever the rank.
double alpha_value(const std::string& where, double alpha) {
  if (!std::isfinite(static_cast<float>(alpha))) {
    fail_field(ErrorKind::malformed, where, fmt::format("{}", alpha), "a number that fp32 holds");
  }
  return alpha;
}

std::vector<std::string> names_of(const JsonFields& fields, std::string_view field) {
  std::vector<std::string> names;
  for (const nlohmann::json& name : *fields.array(field)) {
    if (!name.is_string()) {
      fail_field(ErrorKind::malformed, fields.where(field), excerpt(name), "names of modules");
    }
    names.push_back(name.get<std::string>());
  }
  return names;
}

/// layers_to_transform: a list of layers' indices, or one.
std::vector<std::uint64_t> layers_of(const JsonFields& fields) {
  constexpr const char* kField = "layers_to_transform";
  const auto found = fields.json().find(kField);
  if (found == fields.json().end() || found->is_null()) return {};
  std::vector<std::uint64_t> layers;
  for (const nlohmann::json& layer : found->is_array() ? *found : nlohmann::json::array({*found})) {
    if (!layer.is_number_unsigned()) {
      fail_field(ErrorKind::malformed, fields.where(kField), excerpt(layer), "indices of layers");
    }
    layers.push_back(layer.get<std::uint64_t>());
  }
  return layers;
}

/// None where a pattern takes the place of names: it matches paths of the author's whole model, whose prefix
/// the canonical names lack.
std::optional<TargetModules> read_targets(const JsonFields& fields) {
  const auto is_list = [&](const char* field) {
    const auto found = fields.json().find(field);
    return found != fields.json().end() && found->is_array();
  };
  const auto is_given = [&](const char* field) {
    const auto found = fields.json().find(field);
    return found != fields.json().end() && !is_off(*found);
  };
  if (!is_list("target_modules") || is_given("layers_pattern")) return std::nullopt;
  if (is_given("exclude_modules") && !is_list("exclude_modules")) return std::nullopt;
  TargetModules targets;
  targets.names = names_of(fields, "target_modules");
  if (is_given("exclude_modules")) targets.excluded = names_of(fields, "exclude_modules");
  targets.layers = layers_of(fields);
  return targets;
}

bool is_named(std::string_view module, const std::vector<std::string>& names) {
  return std::ranges::any_of(
      names, [&](const std::string& name) { return module == name || module.ends_with("." + name); });
}

template <class T>
T by_pattern(const std::vector<std::pair<ModulePattern, T>>& patterns, std::string_view module, T fallback) {
  for (const auto& [pattern, value] : patterns) {
    if (pattern.matches(module)) return value;
  }
  return fallback;
}

/// Calls `add(pattern, key)` for each entry of the object at `field`, in the document's order.
template <class Add>
void read_patterns(std::string_view json, const JsonFields& fields, std::string_view field, Add add) {
  const auto entries = fields.object(field);
  if (!entries) return;
  if (entries->json().size() > kMaxPatterns) {
    fail_field(ErrorKind::malformed, fields.where(field),
               std::to_string(entries->json().size()) + " patterns",
               "at most " + std::to_string(kMaxPatterns));
  }
  for (const std::string& key : key_order(json, field))
    add(*entries, key, ModulePattern(key, entries->where(key)));
}

/// A module's two factors by their names in the adapter.
struct FactorNames {
  std::string module;  ///< path within the adapted model
  std::string a;
  std::string b;
};

/// A, in fp32, and B with it.
struct Factors {
  std::vector<float> a;  ///< [rank, in]
  std::vector<float> b;  ///< [out, rank]
  std::size_t rank = 0;
  float scale = 0;
};

class MergedSource final : public TensorSource {
 public:
  MergedSource(std::shared_ptr<const TensorSource> base, std::shared_ptr<const TensorSource> adapter,
               LoraConfig config, std::map<std::string, FactorNames, std::less<>> adapted)
      : base_(std::move(base)),
        adapter_(std::move(adapter)),
        config_(std::move(config)),
        adapted_(std::move(adapted)) {}

  const TensorInfo* find(std::string_view name) const override { return base_->find(name); }
  std::vector<std::string> names() const override { return base_->names(); }

  void read_rows(std::string_view name, std::uint64_t first, std::uint64_t count,
                 std::span<float> out) const override {
    base_->read_rows(name, first, count, out);
    const auto adapted = adapted_.find(name);
    if (adapted == adapted_.end() || count == 0) return;
    const std::shared_ptr<const Factors> factors = load(name, adapted->second);
    const std::size_t columns = out.size() / count;
    add_low_rank(out.data(), factors->a.data(), factors->b.data() + first * factors->rank, count,
                 factors->rank, columns, factors->scale);
    check_finite(*base_->find(name), first * columns, out);
  }

  std::span<const std::byte> stored_bytes(std::string_view name) const override {
    return adapted_.contains(name) ? std::span<const std::byte>{} : base_->stored_bytes(name);
  }

  void release(std::string_view name) const override {
    base_->release(name);
    const auto adapted = adapted_.find(name);
    if (adapted == adapted_.end()) return;
    adapter_->release(adapted->second.a);
    adapter_->release(adapted->second.b);
    const std::lock_guard lock(mutex_);
    loaded_.erase(adapted->first);
  }

 private:
  /// Kept from a tensor's first rows until it is released: packing reads a tensor a few rows at a time.
  std::shared_ptr<const Factors> load(std::string_view name, const FactorNames& names) const {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const Factors>& kept = loaded_[std::string(name)];
    if (kept == nullptr) {
      auto factors = std::make_shared<Factors>();
      factors->rank = config_.rank_of(names.module);
      factors->scale = config_.scale_of(names.module);
      factors->a = read_tensor(*adapter_, names.a, require(*adapter_, names.a).shape);
      factors->b = read_tensor(*adapter_, names.b, require(*adapter_, names.b).shape);
      kept = std::move(factors);
    }
    return kept;
  }

  std::shared_ptr<const TensorSource> base_;
  std::shared_ptr<const TensorSource> adapter_;
  LoraConfig config_;
  std::map<std::string, FactorNames, std::less<>> adapted_;  ///< by the base tensor's name
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const Factors>, std::less<>> loaded_;
};

struct AdapterKey {
  std::string module;
  bool is_a = false;
};

/// "base_model.model.<module>.lora_A.weight", or with an adapter's name before ".weight" as PEFT holds it in
/// memory.
AdapterKey parse_key(std::string_view key, const std::string& origin) {
  static constexpr std::array<std::pair<std::string_view, bool>, 4> kEndings = {
      {{".lora_A.weight", true},
       {".lora_B.weight", false},
       {".lora_A.default.weight", true},
       {".lora_B.default.weight", false}}};
  std::string_view module = key;
  for (const auto& [ending, is_a] : kEndings) {
    if (!module.ends_with(ending)) continue;
    module.remove_suffix(ending.size());
    constexpr std::string_view kPrefix = "base_model.model.";
    if (module.starts_with(kPrefix)) module.remove_prefix(kPrefix.size());
    return {std::string(module), is_a};
  }
  static constexpr std::array<std::string_view, 7> kOtherKinds = {
      "lora_embedding_", "lora_magnitude_vector", "modules_to_save", "token_adapter",
      "trainable_token", "lora_B.bias",           "original_module"};
  for (std::string_view kind : kOtherKinds) {
    if (key.find(kind) == std::string_view::npos) continue;
    fail_field(ErrorKind::unsupported, origin + ": tensor '" + std::string(key) + "'",
               "a " + std::string(kind) + " tensor", "lora_A and lora_B weights only");
  }
  fail_field(ErrorKind::malformed, origin + ": tensor '" + std::string(key) + "'", "not a LoRA weight",
             "'base_model.model.….lora_A.weight' or '….lora_B.weight'");
}

std::map<std::string, FactorNames> pair_factors(const TensorSource& adapter, const std::string& origin) {
  std::map<std::string, FactorNames> modules;
  for (const std::string& key : adapter.names()) {
    const AdapterKey parsed = parse_key(key, origin);
    FactorNames& names = modules[parsed.module];
    names.module = parsed.module;
    std::string& place = parsed.is_a ? names.a : names.b;
    if (!place.empty()) {
      fail_field(ErrorKind::malformed, origin, "'" + place + "' and '" + key + "'", "one adapter");
    }
    place = key;
  }
  for (const auto& [module, names] : modules) {
    if (!names.a.empty() && !names.b.empty()) continue;
    fail_field(ErrorKind::missing, origin + ": module '" + module + "'",
               names.a.empty() ? "lora_B without lora_A" : "lora_A without lora_B", "both");
  }
  return modules;
}

void check_shapes(const FactorNames& names, const TensorInfo& weight, const TensorSource& adapter,
                  const LoraConfig& config) {
  if (weight.shape.size() != 2) {
    fail_field(ErrorKind::unsupported, weight.origin + ": tensor '" + weight.name + "'",
               "an adapter on a tensor of shape " + describe_shape(weight.shape), "adapters on matrices");
  }
  const std::uint64_t rank = config.rank_of(names.module);
  require_floating(require(adapter, names.a, std::array<std::uint64_t, 2>{rank, weight.shape[1]}));
  require_floating(require(adapter, names.b, std::array<std::uint64_t, 2>{weight.shape[0], rank}));
}

std::string module_of(std::string_view tensor) {
  constexpr std::string_view kWeight = ".weight";
  return std::string(tensor.ends_with(kWeight) ? tensor.substr(0, tensor.size() - kWeight.size()) : "");
}

/// PEFT makes an adapter for every linear layer that is a target and for no other, and passes over what a
/// file has beyond them.
void check_targets(const TensorSource& base, const TargetModules& targets,
                   const std::map<std::string, FactorNames, std::less<>>& adapted,
                   const std::string& origin) {
  for (const std::string& tensor : base.names()) {
    const std::string module = module_of(tensor);
    if (module.empty() || module == "embed_tokens" || base.find(tensor)->shape.size() != 2) continue;
    const bool held = adapted.contains(tensor);
    if (held == targets.hold(module)) continue;
    const std::string where = origin + ": module '" + module + "'";
    if (held) {
      fail_field(ErrorKind::mismatch, where, "lora_A and lora_B",
                 "none, by target_modules, exclude_modules and layers_to_transform of adapter_config.json",
                 "the configuration and the weights are of different adapters");
    }
    fail_field(ErrorKind::missing, where, "no lora_A and lora_B",
               "both, by target_modules of adapter_config.json", "save or download the adapter again");
  }
}

}  // namespace

ModulePattern::ModulePattern(const std::string& key, std::string where) : where_(std::move(where)) {
  const std::string pattern = "(.*\\.)?(" + key + ")$";
  int code = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_ANCHORED | PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &offset, nullptr);
  if (compiled == nullptr) {
    fail_field(ErrorKind::malformed, where_, "not a regular expression", "a module's name or a pattern");
  }
  compiled_ = std::shared_ptr<const void>(compiled, [compiled](const void*) { pcre2_code_free(compiled); });
}

bool ModulePattern::matches(std::string_view module) const {
  const auto* code = static_cast<const pcre2_code*>(compiled_.get());
  const std::shared_ptr<pcre2_match_context> context(pcre2_match_context_create(nullptr),
                                                     pcre2_match_context_free);
  pcre2_set_match_limit(context.get(), kMaxMatchSteps);
  const std::shared_ptr<pcre2_match_data> data(pcre2_match_data_create_from_pattern(code, nullptr),
                                               pcre2_match_data_free);
  const int result = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0, 0,
                                 data.get(), context.get());
  if (result < 0 && result != PCRE2_ERROR_NOMATCH) {
    fail_field(ErrorKind::malformed, where_, "a pattern that cannot be matched in bounded time",
               "a module's name or a simple pattern");
  }
  return result > 0;
}

bool TargetModules::hold(std::string_view module) const {
  if (!is_named(module, names) || is_named(module, excluded)) return false;
  if (layers.empty()) return true;
  constexpr std::string_view kLayers = "layers.";
  if (!module.starts_with(kLayers)) return false;
  const std::string_view index =
      module.substr(kLayers.size(), module.find('.', kLayers.size()) - kLayers.size());
  return std::ranges::any_of(layers, [&](std::uint64_t layer) { return std::to_string(layer) == index; });
}

std::size_t LoraConfig::rank_of(std::string_view module) const {
  return by_pattern(rank_pattern, module, rank);
}

float LoraConfig::scale_of(std::string_view module) const {
  const double r = static_cast<double>(rank_of(module));
  return static_cast<float>(by_pattern(alpha_pattern, module, alpha) / (rank_stabilised ? std::sqrt(r) : r));
}

LoraConfig parse_lora_config(std::string_view json, const std::string& origin) {
  const nlohmann::json document = parse_json(json, origin);
  const JsonFields fields(document, origin);
  const std::string type = fields.string("peft_type").value_or("");
  if (type != "LORA") {
    fail_field(ErrorKind::unsupported, fields.where("peft_type"),
               type.empty() ? "not there" : "'" + type + "'", "LORA");
  }
  const std::string bias = fields.string("bias").value_or("none");
  if (bias != "none") fail_field(ErrorKind::unsupported, fields.where("bias"), "'" + bias + "'", "none");
  refuse_unknown_features(fields);
  check_initialisation(fields);
  if (fields.boolean("fan_in_fan_out").value_or(false)) {
    // PEFT itself sets it back to false on torch.nn.Linear, which every adapted module here is.
    log().warn("{}: fan_in_fan_out is true; as in PEFT it has no effect on linear layers", origin);
  }
  LoraConfig config;
  const auto rank = fields.unsigned_integer("r");
  if (!rank) fail_field(ErrorKind::missing, fields.where("r"), "not there", "the adapter's rank");
  config.rank = rank_value(fields.where("r"), *rank);
  const auto alpha = fields.number("lora_alpha");
  if (!alpha) fail_field(ErrorKind::missing, fields.where("lora_alpha"), "not there", "a number");
  config.alpha = alpha_value(fields.where("lora_alpha"), *alpha);
  config.rank_stabilised = fields.boolean("use_rslora").value_or(false);
  read_patterns(json, fields, "rank_pattern",
                [&](const JsonFields& entries, const std::string& key, ModulePattern pattern) {
                  const std::uint64_t value = entries.unsigned_integer(key).value_or(0);
                  config.rank_pattern.emplace_back(std::move(pattern), rank_value(entries.where(key), value));
                });
  read_patterns(json, fields, "alpha_pattern",
                [&](const JsonFields& entries, const std::string& key, ModulePattern pattern) {
                  const auto value = entries.number(key);
                  if (!value) fail_field(ErrorKind::malformed, entries.where(key), "null", "a number");
                  config.alpha_pattern.emplace_back(std::move(pattern),
                                                    alpha_value(entries.where(key), *value));
                });
  config.targets = read_targets(fields);
  return config;
}

std::shared_ptr<const TensorSource> merge_lora(std::shared_ptr<const TensorSource> base, LoraConfig config,
                                               std::shared_ptr<const TensorSource> adapter,
                                               const std::string& origin, LoraReport* report) {
  LoraReport found{.config = config};
  std::map<std::string, FactorNames, std::less<>> adapted;
  for (auto& [module, names] : pair_factors(*adapter, origin)) {
    const std::optional<std::string> canonical = canonical_name(module);
    const TensorInfo* weight = canonical ? base->find(*canonical + ".weight") : nullptr;
    if (weight == nullptr) {
      found.unmatched.push_back(module);
      continue;
    }
    ++found.matched;
    check_shapes(names, *weight, *adapter, config);
    if (!adapted.emplace(weight->name, names).second) {
      fail_field(ErrorKind::malformed, origin, "two modules for '" + weight->name + "'", "one");
    }
  }
  if (report != nullptr) *report = found;
  if (found.matched == 0 && found.unmatched.empty()) {
    fail_field(ErrorKind::missing, origin, "no tensors", "lora_A and lora_B weights",
               "save or download the adapter again");
  }
  if (found.matched == 0 || !found.unmatched.empty()) {
    const std::string example =
        found.unmatched.empty() ? "" : ", '" + found.unmatched.front() + "' among the others";
    fail_field(ErrorKind::mismatch, origin,
               std::to_string(found.matched) + " modules that the base has and " +
                   std::to_string(found.unmatched.size()) + " that it has not" + example,
               "every adapted module in the base", "the adapter was trained on another base model");
  }
  if (config.targets) check_targets(*base, *config.targets, adapted, origin);
  return std::make_shared<MergedSource>(std::move(base), std::move(adapter), std::move(config),
                                        std::move(adapted));
}

std::shared_ptr<const TensorSource> merge_lora(std::shared_ptr<const TensorSource> base,
                                               const std::filesystem::path& adapter_directory,
                                               LoraReport* report) {
  const std::filesystem::path config_path = adapter_directory / kConfigFile;
  LoraConfig config = parse_lora_config(read_text_file(config_path, kMaxJsonFileBytes), config_path.string());
  const std::filesystem::path weights_path = adapter_directory / kWeightsFile;
  if (!path_exists(weights_path)) {
    const bool pickled = path_exists(adapter_directory / "adapter_model.bin");
    fail_field(ErrorKind::missing, weights_path.string(),
               pickled ? "only adapter_model.bin is there" : "not there", "the adapter's weights",
               pickled ? "save the adapter again as safetensors" : "");
  }
  return merge_lora(std::move(base), std::move(config), open_safetensors(weights_path), weights_path.string(),
                    report);
}

}  // namespace assay::formats
