#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "formats/gguf.hpp"
#include "formats/hf_config.hpp"
#include "formats/row_conversion.hpp"

// What llama.cpp's converter makes of a Qwen3 or Qwen3.5 checkpoint, from ggml-org/llama.cpp:
//  - conversion/qwen.py: Qwen3NextModel.modify_tensors (A_log stored as -exp(A_log), dt_bias renamed, conv1d
//    squeezed, 1 added to every norm but the gated one), _LinearAttentionVReorderBase (value heads from
//    grouped to tiled order where there are more of them than key heads), Qwen3_5TextModel, Qwen3Model (no
//    value is changed), _Qwen35MtpMixin (layers appended for multi-token prediction);
//  - conversion/lev.py, KevModel: the decision head and its metadata;
//  - gguf-py/gguf/constants.py and tensor_mapping.py: the tensors' names; src/models/qwen35.cpp and
//  qwen3.cpp:
//    how they are read, and what is assumed where a key is absent.

namespace assay::formats {
namespace {

// Above any model's size, far below where a product of two could overflow.
constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 24;
constexpr std::uint64_t kMostLayers = 4096;
constexpr std::uint64_t kDefaultFullAttentionInterval = 4;  // src/models/qwen35.cpp

// ---------------------------------------------------------------- configuration

/// The metadata of one architecture: keys are given without their prefix.
class ArchitectureKeys {
 public:
  explicit ArchitectureKeys(const GgufFile& file)
      : file_(file), architecture_(file.string("general.architecture")) {}

  const std::string& architecture() const { return architecture_; }
  std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }
  bool has(std::string_view name) const { return file_.metadata().contains(key(name)); }
  std::optional<std::string_view> find_string(std::string_view name) const {
    return file_.find_string(key(name));
  }

  std::size_t size(std::string_view name) const { return checked(name, file_.integer(key(name))); }
  std::size_t size(std::string_view name, std::size_t otherwise) const {
    const auto value = file_.find_integer(key(name));
    return value ? checked(name, *value) : otherwise;
  }

  /// A count that may also be zero.
  std::size_t count(std::string_view name, std::size_t otherwise) const {
    const auto value = file_.find_integer(key(name));
    if (!value) return otherwise;
    return *value == 0 ? 0 : checked(name, *value);
  }

  float positive(std::string_view name) const {
    const float value = file_.number(key(name));
    if (!(value > 0)) mismatch(name, fmt::format("{}", value), "a positive number");
    return value;
  }

  /// One size for all layers, which newer converters may write as a list with zeros for recurrent layers.
  std::size_t size_of_layers(std::string_view name) const {
    const auto found = file_.metadata().find(key(name));
    if (found == file_.metadata().end() || found->second.type != GgufValueType::array) return size(name);
    std::int64_t common = 0;
    for (const std::int64_t value : file_.integers(key(name))) {
      if (value == 0 || value == common) continue;
      if (common != 0 || value < 0) mismatch(name, describe(found->second), "the same size for every layer");
      common = value;
    }
    return checked(name, static_cast<std::uint64_t>(common));
  }

  [[noreturn]] void mismatch(std::string_view name, std::string found, std::string expected) const {
    throw Error(ErrorKind::mismatch,
                {file_.origin() + ": " + key(name), std::move(found), std::move(expected),
                 "the file is of another model, or its conversion went wrong"});
  }

 private:
  std::size_t checked(std::string_view name, std::uint64_t value) const {
    if (value == 0 || value > kLargestSize) {
      mismatch(name, fmt::format("{}", value), fmt::format("1 to {}", kLargestSize));
    }
    return static_cast<std::size_t>(value);
  }

  const GgufFile& file_;
  std::string architecture_;
};

Family family_of(const GgufFile& file, const std::string& architecture) {
  if (architecture == "qwen35") return Family::qwen3_5;
  if (architecture == "qwen3") return Family::qwen3;
  throw Error(ErrorKind::unsupported, {file.origin() + ": general.architecture", "'" + architecture + "'",
                                       "'qwen35' or 'qwen3'", "no other backbone can be run"});
}

void refuse_what_cannot_run(const GgufFile& file, const ArchitectureKeys& keys) {
  if (const auto parts = file.find_integer("split.count"); parts && *parts > 1) {
    throw Error(ErrorKind::unsupported,
                {file.origin() + ": split.count", fmt::format("one of {} files", *parts), "a whole model",
                 "join them with llama-gguf-split --merge"});
  }
  if (const auto scaling = keys.find_string("rope.scaling.type"); scaling && *scaling != "none") {
    throw Error(ErrorKind::unsupported, {file.origin() + ": " + keys.key("rope.scaling.type"),
                                         "'" + std::string(*scaling) + "'", "no scaling"});
  }
}

std::vector<LayerType> layer_types(const GgufFile& file, const ArchitectureKeys& keys, Family family,
                                   std::size_t layers) {
  std::vector<LayerType> types(layers, LayerType::full_attention);
  if (family == Family::qwen3) return types;
  if (keys.has("attention.recurrent_layers")) {
    const auto recurrent = file.integers(keys.key("attention.recurrent_layers"));
    if (recurrent.size() < layers) {
      keys.mismatch("attention.recurrent_layers", fmt::format("{} layers", recurrent.size()),
                    fmt::format("{}", layers));
    }
    for (std::size_t i = 0; i < layers; ++i) {
      if (recurrent[i] != 0) types[i] = LayerType::linear_attention;
    }
    return types;
  }
  const std::size_t interval = keys.size("full_attention_interval", kDefaultFullAttentionInterval);
  for (std::size_t i = 0; i < layers; ++i) {
    if ((i + 1) % interval != 0) types[i] = LayerType::linear_attention;
  }
  return types;
}

std::size_t vocabulary_size(const GgufFile& file, std::size_t hidden_size) {
  const auto embedding = file.tensors().find("token_embd.weight");
  if (embedding == file.tensors().end()) {
    throw Error(ErrorKind::missing, {file.origin() + ": tensor token_embd.weight", "not in the file"});
  }
  const auto& shape = embedding->second.shape;
  if (shape.size() != 2 || shape[1] != hidden_size || shape[0] > kLargestSize) {
    throw Error(ErrorKind::mismatch,
                {file.origin() + ": tensor token_embd.weight", "shape " + describe_shape(shape),
                 fmt::format("[vocabulary, {}]", hidden_size)});
  }
  return static_cast<std::size_t>(shape[0]);
}

void read_attention(const ArchitectureKeys& keys, ModelConfig& config) {
  config.heads = keys.size("attention.head_count");
  config.kv_heads = keys.size_of_layers("attention.head_count_kv");
  if (config.heads % config.kv_heads != 0) {
    keys.mismatch("attention.head_count_kv", fmt::format("{}", config.kv_heads),
                  fmt::format("a divisor of the {} heads", config.heads));
  }
  config.head_dim = keys.size("attention.key_length", config.hidden_size / config.heads);
  if (const std::size_t value = keys.size("attention.value_length", config.head_dim);
      value != config.head_dim) {
    keys.mismatch("attention.value_length", fmt::format("{}", value), fmt::format("{}", config.head_dim));
  }
  config.rotary_dim = keys.size("rope.dimension_count", config.head_dim);
  if (config.rotary_dim > config.head_dim || config.rotary_dim % 2 != 0) {
    keys.mismatch("rope.dimension_count", fmt::format("{}", config.rotary_dim),
                  fmt::format("an even number up to {}", config.head_dim));
  }
  config.rope_theta = keys.positive("rope.freq_base");
  config.rms_norm_eps = keys.positive("attention.layer_norm_rms_epsilon");
}

void read_linear_attention(const ArchitectureKeys& keys, ModelConfig& config) {
  config.linear_conv_width = keys.size("ssm.conv_kernel");
  config.linear_key_dim = keys.size("ssm.state_size");
  config.linear_key_heads = keys.size("ssm.group_count");
  config.linear_value_heads = keys.size("ssm.time_step_rank");
  const std::size_t inner = keys.size("ssm.inner_size");
  if (config.linear_value_heads % config.linear_key_heads != 0) {
    keys.mismatch("ssm.time_step_rank", fmt::format("{}", config.linear_value_heads),
                  fmt::format("a multiple of the {} key heads", config.linear_key_heads));
  }
  if (inner % config.linear_value_heads != 0) {
    keys.mismatch("ssm.inner_size", fmt::format("{}", inner),
                  fmt::format("a multiple of the {} value heads", config.linear_value_heads));
  }
  config.linear_value_dim = inner / config.linear_value_heads;
}

}  // namespace

ModelConfig gguf_model_config(const GgufFile& file) {
  const ArchitectureKeys keys(file);
  ModelConfig config;
  config.family = family_of(file, keys.architecture());
  refuse_what_cannot_run(file, keys);
  config.hidden_size = keys.size("embedding_length");
  config.intermediate_size = keys.size("feed_forward_length");
  config.max_positions = keys.size("context_length");
  const std::size_t blocks = keys.size("block_count");
  const std::size_t predicting = keys.count("nextn_predict_layers", 0);
  if (blocks > kMostLayers || predicting >= blocks) {
    keys.mismatch("block_count",
                  fmt::format("{} layers, {} of them for multi-token prediction", blocks, predicting),
                  fmt::format("up to {} layers", kMostLayers));
  }
  config.layers = layer_types(file, keys, config.family, blocks - predicting);
  read_attention(keys, config);
  const bool linear = std::ranges::find(config.layers, LayerType::linear_attention) != config.layers.end();
  if (linear) read_linear_attention(keys, config);
  config.vocabulary_size = vocabulary_size(file, config.hidden_size);
  check_model_config(config, file.origin());
  return config;
}

// ---------------------------------------------------------------- tensors

namespace {

/// What the converter did to a tensor's values or order.
enum class Change { none, plus_one, negated_exp, conv_squeezed, value_rows, value_columns, qkv_rows };

struct Renamed {
  std::string_view stored;     ///< after "blk.<layer>."
  std::string_view canonical;  ///< after "layers.<layer>."
  Change qwen3_5 = Change::none;
};

// gguf-py/gguf/constants.py and tensor_mapping.py; Qwen3's values are never changed.
constexpr std::array kLayerTensors = {
    Renamed{"attn_norm.weight", "input_layernorm.weight", Change::plus_one},
    Renamed{"ffn_gate.weight", "mlp.gate_proj.weight"},
    Renamed{"ffn_up.weight", "mlp.up_proj.weight"},
    Renamed{"ffn_down.weight", "mlp.down_proj.weight"},
    Renamed{"attn_q.weight", "self_attn.q_proj.weight"},
    Renamed{"attn_k.weight", "self_attn.k_proj.weight"},
    Renamed{"attn_v.weight", "self_attn.v_proj.weight"},
    Renamed{"attn_output.weight", "self_attn.o_proj.weight"},
    Renamed{"attn_q_norm.weight", "self_attn.q_norm.weight", Change::plus_one},
    Renamed{"attn_k_norm.weight", "self_attn.k_norm.weight", Change::plus_one},
};
constexpr std::array kQwen3Tensors = {Renamed{"ffn_norm.weight", "post_attention_layernorm.weight"}};
constexpr std::array kQwen35Tensors = {
    Renamed{"post_attention_norm.weight", "post_attention_layernorm.weight", Change::plus_one},
    Renamed{"attn_qkv.weight", "linear_attn.in_proj_qkv.weight", Change::qkv_rows},
    Renamed{"attn_gate.weight", "linear_attn.in_proj_z.weight", Change::value_rows},
    Renamed{"ssm_beta.weight", "linear_attn.in_proj_b.weight", Change::value_rows},
    Renamed{"ssm_alpha.weight", "linear_attn.in_proj_a.weight", Change::value_rows},
    Renamed{"ssm_conv1d.weight", "linear_attn.conv1d.weight", Change::conv_squeezed},
    Renamed{"ssm_dt.bias", "linear_attn.dt_bias", Change::value_rows},
    Renamed{"ssm_a", "linear_attn.A_log", Change::negated_exp},
    Renamed{"ssm_norm.weight", "linear_attn.norm.weight"},
    Renamed{"ssm_out.weight", "linear_attn.out_proj.weight", Change::value_columns},
};

/// Value heads in the file's tiled order (the first of every key head, then the second of every one), along
/// one dimension. The checkpoint has them grouped by key head.
struct ValueHeads {
  std::uint64_t first = 0;  ///< where they begin along the dimension: after q and k, or 0
  std::uint64_t key_heads = 0;
  std::uint64_t per_key_head = 0;
  std::uint64_t head_size = 0;

  bool tiled() const { return key_heads != 0 && per_key_head > 1; }
  std::uint64_t end() const { return first + key_heads * per_key_head * head_size; }

  /// Where the file has what the checkpoint has at `index`.
  std::uint64_t stored(std::uint64_t index) const {
    if (!tiled() || index < first) return index;
    const std::uint64_t head = (index - first) / head_size;
    const std::uint64_t tile = head % per_key_head * key_heads + head / per_key_head;
    return first + tile * head_size + (index - first) % head_size;
  }

  /// How many indices from this one on follow each other in the file too.
  std::uint64_t run(std::uint64_t index, std::uint64_t limit) const {
    if (!tiled()) return limit;
    const std::uint64_t left = index < first ? first - index : head_size - (index - first) % head_size;
    return std::min(left, limit);
  }
};

struct Entry {
  TensorInfo info;
  const GgufTensor* stored = nullptr;
  Change change = Change::none;
  ValueHeads rows;
  ValueHeads columns;
};

/// The fp32 nearest to log(-a) for a stored a = fl(-exp(A_log)). From |A_log| = 1 on the spacing of fp32 is
/// wider than what rounding a can move its logarithm by: that is A_log itself. Below, the spacing is so fine
/// that the exponential of the result, rounded, is -a again: the decay is the same either way.
float undo_negated_exp(float value) {
  return static_cast<float>(std::log(-static_cast<double>(value)));
}

class GgufTensors final : public TensorSource {
 public:
  GgufTensors(const GgufFile& file, const ModelConfig& config)
      : file_(file), config_(config), blocks_(ArchitectureKeys(file).size("block_count")) {
    for (const auto& [name, tensor] : file.tensors()) add(name, tensor);
  }

  const TensorInfo* find(std::string_view name) const override {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second.info;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }

  void read_rows(std::string_view name, std::uint64_t first, std::uint64_t count,
                 std::span<float> out) const override {
    require(*this, name);
    const Entry& entry = entries_.find(name)->second;
    check_rows(entry.info, first, count, out.size());
    const std::uint64_t width = count == 0 ? 0 : out.size() / count;
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t run = entry.rows.run(first + done, count - done);
      read_stored_rows(entry, entry.rows.stored(first + done), width, out.subspan(done * width, run * width));
      done += run;
    }
    if (entry.change == Change::plus_one) {
      for (float& value : out) value -= 1.0f;
    } else if (entry.change == Change::negated_exp) {
      undo_decay(entry, first, out);
    }
  }

  std::span<const std::byte> stored_bytes(std::string_view name) const override {
    const auto found = entries_.find(name);
    if (found == entries_.end()) return {};
    const Entry& entry = found->second;
    const bool changed = entry.change == Change::plus_one || entry.change == Change::negated_exp;
    return changed || entry.rows.tiled() || entry.columns.tiled() ? std::span<const std::byte>()
                                                                  : entry.stored->bytes;
  }

  void release(std::string_view name) const override {
    if (const auto found = entries_.find(name); found != entries_.end()) file_.release(*found->second.stored);
  }

 private:
  void add(const std::string& name, const GgufTensor& tensor) {
    Entry entry;
    entry.stored = &tensor;
    const std::optional<std::string> canonical = canonical_name(name, entry.change);
    if (!canonical) return;
    const std::string where = file_.origin() + ": tensor " + name;
    if (!tensor.type->readable) {
      throw Error(ErrorKind::unsupported,
                  {where, fmt::format("type {}, which cannot be read yet", tensor.type->name),
                   "F32, F16, BF16 or Q8_0", "take the model's BF16, F16 or Q8_0 file"});
    }
    if (*tensor.type->readable == DType::q8_0 && tensor.shape.size() < 2) {
      throw Error(ErrorKind::unsupported, {where, "a vector of type Q8_0", "F32, F16 or BF16"});
    }
    entry.info = {*canonical, *tensor.type->readable, tensor.shape, file_.origin()};
    restore_order(entry, where);
    if (!entries_.emplace(*canonical, std::move(entry)).second) {
      throw Error(ErrorKind::malformed, {where, "a second tensor for " + *canonical, "one"});
    }
  }

  /// None for what a decision does not need.
  std::optional<std::string> canonical_name(const std::string& name, Change& change) const {
    if (name == "output.weight") return std::nullopt;
    if (name == "token_embd.weight") return "embed_tokens.weight";
    if (name == "cls.output.weight" || name == "cls.output.bias") return name;
    if (name == "output_norm.weight") {
      if (config_.family == Family::qwen3_5) change = Change::plus_one;
      return "norm.weight";
    }
    constexpr std::string_view prefix = "blk.";
    std::size_t layer = 0;
    if (name.starts_with(prefix)) {
      const char* const end = name.data() + name.size();
      const auto [rest, failure] = std::from_chars(name.data() + prefix.size(), end, layer);
      if (failure == std::errc() && rest != end && *rest == '.') {
        if (layer >= config_.layers.size() && layer < blocks_) return std::nullopt;  // multi-token prediction
        if (auto canonical = layer_tensor(layer, std::string_view(rest + 1, end), change)) return canonical;
      }
    }
    throw Error(ErrorKind::unsupported, {file_.origin() + ": tensor " + name,
                                         "a tensor that this architecture is not known to have",
                                         {},
                                         "ignoring it could change answers; convert the model without it"});
  }

  std::optional<std::string> layer_tensor(std::size_t layer, std::string_view stored, Change& change) const {
    if (layer >= config_.layers.size()) return std::nullopt;
    const auto look_up = [&](std::span<const Renamed> table) -> std::optional<std::string> {
      const auto found = std::ranges::find(table, stored, &Renamed::stored);
      if (found == table.end()) return std::nullopt;
      if (config_.family == Family::qwen3_5) change = found->qwen3_5;
      return fmt::format("layers.{}.{}", layer, found->canonical);
    };
    if (auto name = look_up(kLayerTensors)) return name;
    return config_.family == Family::qwen3_5 ? look_up(kQwen35Tensors) : look_up(kQwen3Tensors);
  }

  void restore_order(Entry& entry, const std::string& where) const {
    ValueHeads heads;
    heads.key_heads = config_.linear_key_heads;
    heads.per_key_head = heads.key_heads == 0 ? 0 : config_.linear_value_heads / heads.key_heads;
    std::vector<std::uint64_t>& shape = entry.info.shape;
    switch (entry.change) {
      case Change::none:
      case Change::plus_one:
        return;
      case Change::conv_squeezed:
        if (shape.size() == 2) shape.insert(shape.begin() + 1, 1);
        [[fallthrough]];
      case Change::qkv_rows:
        heads.first = 2 * config_.linear_key_size();
        heads.head_size = config_.linear_value_dim;
        break;
      case Change::value_rows:
      case Change::negated_exp:
        // One row a head for a, b, dt_bias and A_log, a head's size of them for z.
        heads.head_size =
            shape.empty() || config_.linear_value_heads == 0 ? 0 : shape[0] / config_.linear_value_heads;
        break;
      case Change::value_columns:
        heads.head_size = config_.linear_value_dim;
        break;
    }
    const bool columns = entry.change == Change::value_columns;
    const std::uint64_t size = shape.empty() ? 0 : columns ? shape.back() : shape.front();
    if (heads.head_size == 0 || size != heads.end() || (columns && shape.size() != 2)) {
      throw Error(ErrorKind::mismatch, {where, "shape " + describe_shape(entry.stored->shape),
                                        fmt::format("{} value heads after {} {}", config_.linear_value_heads,
                                                    heads.first, columns ? "columns" : "rows"),
                                        "the metadata and the tensors are of different models"});
    }
    (columns ? entry.columns : entry.rows) = heads;
  }

  void read_stored_rows(const Entry& entry, std::uint64_t row, std::uint64_t width,
                        std::span<float> out) const {
    const std::uint64_t first = row * width;
    const std::byte* const data = entry.stored->bytes.data() + storage_bytes(entry.info.type, first);
    if (!entry.columns.tiled()) return convert_finite(entry.info, first, data, out);
    std::vector<float> tiled(out.size());
    convert_finite(entry.info, first, data, tiled);
    const std::uint64_t head = entry.columns.head_size;
    for (std::uint64_t begin = 0; begin < out.size(); begin += width) {
      for (std::uint64_t column = 0; column < width; column += head) {
        std::memcpy(&out[begin + column], &tiled[begin + entry.columns.stored(column)], head * sizeof(float));
      }
    }
  }

  void undo_decay(const Entry& entry, std::uint64_t first, std::span<float> out) const {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!(out[i] < 0)) {
        throw Error(ErrorKind::mismatch, {file_.origin() + ": tensor " + entry.stored->name,
                                          fmt::format("{} for head {}", out[i], entry.rows.stored(first + i)),
                                          "a negative decay", "the conversion went wrong"});
      }
      out[i] = undo_negated_exp(out[i]);
    }
  }

  GgufFile file_;
  ModelConfig config_;
  std::size_t blocks_;  ///< the layers, and those for multi-token prediction after them
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace

std::shared_ptr<const TensorSource> gguf_tensors(const GgufFile& file) {
  return std::make_shared<GgufTensors>(file, gguf_model_config(file));
}

// ---------------------------------------------------------------- tokenizer

namespace {

/// The expression that a pre-tokenizer's name stands for, as tokenizer.json has it: ggml-org/llama.cpp,
/// src/llama-vocab.cpp, LLAMA_VOCAB_PRE_TYPE_QWEN2 and _QWEN35, "original regex from tokenizer.json".
std::string_view split_pattern(const GgufFile& file, std::string_view pre) {
  if (pre == "qwen2") {
    return R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
  }
  if (pre == "qwen35") {
    return R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
  }
  throw Error(ErrorKind::unsupported,
              {file.origin() + ": tokenizer.ggml.pre", "'" + std::string(pre) + "'", "'qwen2' or 'qwen35'"});
}

std::vector<std::pair<std::string, std::string>> merges(const GgufFile& file) {
  constexpr std::string_view key = "tokenizer.ggml.merges";
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string_view text : file.strings(key)) {
    // Byte-level text has no space of its own; the first byte always belongs to the left part.
    const std::size_t space = text.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == text.size()) {
      throw Error(ErrorKind::malformed,
                  {file.origin() + ": " + std::string(key),
                   fmt::format("merge {} without two parts", pairs.size()), "'left right'"});
    }
    pairs.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return pairs;
}

std::vector<GgufTokenizer::TokenType> token_types(const GgufFile& file, std::size_t tokens) {
  constexpr std::string_view key = "tokenizer.ggml.token_type";
  const std::vector<std::int64_t> stored = file.integers(key);
  if (stored.size() != tokens) {
    throw Error(ErrorKind::mismatch,
                {file.origin() + ": " + std::string(key), fmt::format("{} types", stored.size()),
                 fmt::format("one for each of {} tokens", tokens)});
  }
  std::vector<GgufTokenizer::TokenType> types;
  types.reserve(stored.size());
  for (const std::int64_t type : stored) {
    if (type < 1 || type > 6) {
      throw Error(ErrorKind::malformed,
                  {file.origin() + ": " + std::string(key), fmt::format("type {}", type), "1 to 6"});
    }
    types.push_back(static_cast<GgufTokenizer::TokenType>(type));
  }
  return types;
}

}  // namespace

GgufTokenizer gguf_tokenizer(const GgufFile& file) {
  const std::string_view model = file.string("tokenizer.ggml.model");
  if (model != "gpt2") {
    throw Error(ErrorKind::unsupported, {file.origin() + ": tokenizer.ggml.model",
                                         "'" + std::string(model) + "'", "'gpt2' (byte-level BPE)"});
  }
  GgufTokenizer tokenizer;
  tokenizer.pre = file.string("tokenizer.ggml.pre");
  tokenizer.split_pattern = split_pattern(file, tokenizer.pre);
  const auto tokens = file.strings("tokenizer.ggml.tokens");
  tokenizer.tokens.assign(tokens.begin(), tokens.end());
  tokenizer.types = token_types(file, tokenizer.tokens.size());
  tokenizer.merges = merges(file);
  return tokenizer;
}

}  // namespace assay::formats
