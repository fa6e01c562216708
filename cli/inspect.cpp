#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/out_of_memory.hpp"
#include "base/path.hpp"
#include "base/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/top_level_names.hpp"
#include "decision/checkpoint.hpp"
#include "decision/request.hpp"
#include "formats/backbone_tensors.hpp"
#include "formats/canonical_names.hpp"
#include "formats/gguf.hpp"
#include "formats/hf_config.hpp"
#include "formats/json.hpp"
#include "formats/lora.hpp"
#include "formats/safetensors.hpp"
#include "formats/torch_zip.hpp"
#include "lab/decision_fixture.hpp"
#include "music/causal_lm.hpp"
#include "music/checkpoint.hpp"
#include "music/metadata_grammar.hpp"
#include "music/planner.hpp"
#include "text/tokenizer.hpp"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct InspectOptions {
  std::string path;
  std::optional<std::string> base;
  bool json = false;
  bool check = false;
};

struct TensorRow {
  std::string name;
  std::string type;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;
};

/// What one path holds, in the order in which it is printed.
struct Report {
  std::string kind;
  Json facts = Json::object();  ///< section → key → value
  std::vector<TensorRow> tensors;
  std::vector<std::string> problems;  ///< why it would not load; empty: it would
};

class Inspector {
 public:
  explicit Inspector(const InspectOptions& options) : options_(options) {}

  Report inspect() {
    const fs::path path = decision::locate_model(options_.path);
    const bool directory = is_directory_path(path);
    const bool run = directory && path_exists(path / "head.pt");
    if (options_.base && !run) {
      throw Error(ErrorKind::invalid_argument, {.where = "--base",
                                                .found = "given for what is no run directory",
                                                .expected = "a run, whose base it names",
                                                .advice = "leave it out"});
    }
    if (path != options_.path) section("sources")["path"] = path.string();
    attempt([&] {
      if (run) {
        inspect_run(path);
      } else if (directory) {
        inspect_directory(path);
      } else {
        inspect_file(path);
      }
    });
    return std::move(report_);
  }

 private:
  /// A part that cannot be read is a finding, and the next parts are still looked at. One for which there is
  /// no memory is none: it may well be whole.
  template <class Action>
  void attempt(Action action) {
    try {
      action();
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& error) {
      const std::string problem = error.what();
      const auto known = std::find(report_.problems.begin(), report_.problems.end(), problem);
      if (known == report_.problems.end()) report_.problems.push_back(problem);
    }
  }

  Json& section(const char* name) {
    Json& facts = report_.facts[name];
    if (facts.is_null()) facts = Json::object();
    return facts;
  }

  // Directories

  void inspect_directory(const fs::path& path) {
    if (path_exists(path / "adapter_config.json")) return inspect_adapter(path);
    if (music::Checkpoint::looks_like(path)) return inspect_music(path);
    if (path_exists(path / "config.json")) return inspect_base(path);
    throw Error(ErrorKind::unsupported,
                {.where = path.string(),
                 .found = "none of head.pt, adapter_config.json, config.json and model_index.json",
                 .expected = "a Kev run, an adapter, a Hugging Face model or an "
                             "ACE-Step checkpoint"});
  }

  void inspect_music(const fs::path& path) {
    report_.kind = "ACE-Step checkpoint";
    const music::Checkpoint checkpoint = music::Checkpoint::open(path);
    const bool original = checkpoint.layout() == music::Checkpoint::Layout::original;
    report_.kind += original ? ", original layout" : ", diffusers layout";
    describe_music(checkpoint);
    attempt([&] { section("tokenizer")["ids"] = checkpoint.tokenizer().id_limit(); });
    attempt([&] {
      const std::size_t width = checkpoint.parts().dit.latent_width;
      section("condition encoder")["silence"] = counted(checkpoint.silence_latent().size() / width, "frame");
    });
    using music::Part;
    for (const Part part : {Part::text_encoder, Part::condition_encoder, Part::transformer,
                            Part::audio_tokenizer, Part::audio_detokenizer, Part::vae}) {
      const bool codes = part == Part::audio_tokenizer || part == Part::audio_detokenizer;
      if (codes && !checkpoint.parts().tokenizer) continue;
      attempt([&] { list_tensors(*checkpoint.tensors(part), std::string(music::folder_of(part)) + "/"); });
    }
    attempt([&] {
      if (fs::exists(fs::symlink_status(path / "planner"))) inspect_planner(path / "planner", checkpoint);
    });
    if (options_.check) attempt([&] { section("sources")["identity"] = checkpoint.identity(); });
  }

  /// The language model that `assay compose --plan` takes.
  void inspect_planner(const fs::path& path, const music::Checkpoint& checkpoint) {
    const formats::ModelConfig config = parse_config(path / "config.json");
    describe_config(config, "planner");
    attempt([&] {
      const auto weights = formats::canonical_names(formats::open_safetensors(path));
      list_tensors(*weights, "planner/");
      formats::check_backbone_tensors(*weights, config);
    });
    const music::PlannerVocabulary vocabulary = music::read_planner_vocabulary(path, config.vocabulary_size);
    section("planner")["audio codes"] = vocabulary.codes.size();
    music::require_known_codes(vocabulary.codes.size(), checkpoint, path.string());
    music::MetadataVocabulary(vocabulary.tokenizer, vocabulary.codes);
  }

  void describe_block(const char* name, const music::BlockConfig& block, std::size_t layers) {
    Json& facts = section(name);
    facts["layers"] = layers;
    facts["hidden size"] = block.hidden_size;
    facts["intermediate size"] = block.intermediate_size;
    facts["attention heads"] =
        fmt::format("{} query, {} key-value, of {}", block.heads, block.kv_heads, block.head_dim);
    facts["sliding window"] = block.sliding_window;
  }

  void describe_music(const music::Checkpoint& checkpoint) {
    const music::PartConfigs& parts = checkpoint.parts();
    describe_block("transformer", parts.dit.stack.block, parts.dit.stack.sliding.size());
    section("transformer")["turbo"] = parts.dit.turbo;
    describe_block("condition encoder", parts.condition.block, parts.condition.lyric_sliding.size());
    section("condition encoder")["timbre layers"] = parts.condition.timbre_sliding.size();
    if (parts.tokenizer) {
      describe_block("audio tokenizer", parts.tokenizer->stack.block, parts.tokenizer->stack.sliding.size());
      section("audio tokenizer")["levels"] = parts.tokenizer->levels;
    }
    Json& vae = section("vae");
    vae["channels"] =
        fmt::format("{} to {}", checkpoint.vae().encoder_channels, checkpoint.vae().decoder_channels);
    vae["samples a frame"] = checkpoint.vae().samples_per_frame();
    describe_config(checkpoint.text_encoder());
  }

  void inspect_run(const fs::path& path) {
    report_.kind = "Kev run directory";
    attempt([&] { describe_head(decision::read_head_file(path / "head.pt")); });
    attempt([&] {
      if (path_exists(path / "adapter_config.json")) describe_adapter(path);
    });
    attempt([&] {
      const auto base = options_.base ? std::optional<fs::path>(*options_.base) : std::nullopt;
      describe_checkpoint(decision::open_checkpoint(path, base));
    });
  }

  void inspect_adapter(const fs::path& path) {
    report_.kind = "PEFT adapter directory";
    describe_adapter(path);
    list_tensors(*formats::open_safetensors(path / "adapter_model.safetensors"));
  }

  void inspect_base(const fs::path& path) {
    report_.kind = "Hugging Face model directory";
    std::optional<formats::ModelConfig> config;
    attempt([&] {
      config = parse_config(path / "config.json");
      describe_config(*config);
    });
    attempt([&] {
      const auto weights = formats::canonical_names(formats::open_safetensors(path));
      list_tensors(*weights);
      if (config) formats::check_backbone_tensors(*weights, *config);
    });
    attempt([&] {
      if (path_exists(path / "tokenizer.json")) inspect_tokenizer(path / "tokenizer.json");
    });
  }

  // Files

  void inspect_file(const fs::path& path) {
    const MappedFile file = MappedFile::open(path);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    if (text.starts_with("GGUF")) return inspect_gguf(path);
    if (text.starts_with("PK") || text.starts_with("\x80")) return inspect_torch(path);
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    if (start != std::string_view::npos && text[start] == '{') return inspect_json(path, text);
    if (start != std::string_view::npos && text[start] == '[' && top_level_names(text)) {
      return inspect_json(path, text);
    }
    // The header's length in 8 bytes, then the header, which is JSON.
    if (text.substr(0, 9).ends_with('{') || path.extension() == ".safetensors")
      return inspect_safetensors(path);
    throw Error(ErrorKind::unsupported,
                {.where = path.string(),
                 .found = text.empty() ? "an empty file" : "bytes of no kind that is known here",
                 .expected = "a safetensors, torch, GGUF or JSON file"});
  }

  void inspect_safetensors(const fs::path& path) {
    report_.kind = "safetensors file";
    list_tensors(*formats::open_safetensors(path));
  }

  void inspect_gguf(const fs::path& path) {
    report_.kind = "GGUF file";
    const formats::GgufFile file = formats::GgufFile::open(path);
    Json& metadata = section("metadata");
    for (const auto& [key, value] : file.metadata()) metadata[key] = formats::describe(value);
    for (const auto& [name, tensor] : file.tensors()) {
      report_.tensors.push_back({name, std::string(tensor.type->name), tensor.shape, tensor.bytes.size()});
    }
    const decision::Checkpoint checkpoint = decision::open_checkpoint(path, std::nullopt);
    describe_config(checkpoint.config);
    describe_pointer_head(checkpoint.head);
    describe_tokenizer(checkpoint.tokenizer);
    if (options_.check) check_values(*checkpoint.weights);
  }

  void inspect_torch(const fs::path& path) {
    report_.kind = "torch file";
    const formats::TorchValue root = formats::read_torch_file(path);
    walk(root, "");
    const formats::TorchValue* head = root.find("head");
    if (head == nullptr || head->dict() == nullptr) return;
    report_.kind = "Kev head.pt";
    decision::read_head_file(path);
  }

  void inspect_json(const fs::path& path, std::string_view text) {
    const auto names = top_level_names(text);
    if (!names) formats::parse_json(text, path.string());  // says what is wrong with it
    const auto holds = [&](auto... wanted) { return names && (names->contains(wanted) && ...); };
    if (holds("model", "added_tokens")) return inspect_tokenizer(path);
    if (holds("peft_type")) {
      report_.kind = "PEFT adapter configuration";
      describe_lora(formats::parse_lora_config(text, path.string()));
    } else if (holds("weight_map")) {
      report_.kind = "safetensors index";
      list_tensors(*formats::open_safetensors(path.parent_path()));
    } else if (holds("state", "questions")) {
      inspect_request(path, text);
    } else if (holds("records", "temperature")) {
      inspect_fixture(path);
    } else if (holds("model_type") || holds("architectures")) {
      report_.kind = "model configuration";
      describe_config(formats::parse_hf_config(text, path.string()));
    } else {
      throw Error(ErrorKind::unsupported,
                  {.where = path.string(),
                   .found = "JSON of no kind that is known here",
                   .expected = "a tokenizer, a configuration of a model or adapter, an index of shards, a "
                               "System One request or a fixture"});
    }
  }

  void inspect_request(const fs::path& path, std::string_view text) {
    report_.kind = "System One request";
    const decision::Request request = decision::parse_request(text, path.string());
    Json& facts = section("request");
    facts["model"] = request.model;
    facts["questions"] = request.questions.size();
    if (!request.warnings.empty()) facts["warnings"] = request.warnings;
  }

  void inspect_fixture(const fs::path& path) {
    report_.kind = "decision fixture";
    const lab::DecisionFixture fixture = lab::read_decision_fixture(path);
    Json& facts = section("fixture");
    facts["model"] = fixture.model;
    facts["records"] = fixture.records.size();
    facts["questions"] = fixture.rows();
    facts["sha256"] = fixture.sha256;
  }

  void inspect_tokenizer(const fs::path& path) {
    if (report_.kind.empty()) report_.kind = "tokenizer";
    describe_tokenizer(text::Tokenizer::from_json(read_text_file(path), path.string()));
  }

  // Parts

  static formats::ModelConfig parse_config(const fs::path& path) {
    return formats::parse_hf_config(read_text_file(path, formats::kMaxJsonFileBytes), path.string());
  }

  void describe_checkpoint(const decision::Checkpoint& checkpoint) {
    Json& sources = section("sources");
    sources["base"] = checkpoint.sources.base.string();
    sources["tokenizer"] = checkpoint.sources.tokenizer.string();
    if (options_.check) sources["identity"] = checkpoint.files->identity();
    describe_config(checkpoint.config);
    describe_tokenizer(checkpoint.tokenizer);
    if (checkpoint.sources.adapter)
      section("adapter")["modules matched"] = checkpoint.sources.adapter->matched;
    list_tensors(*checkpoint.weights);
  }

  void describe_head(const decision::HeadFile& file) {
    Json& head = section("head");
    head["base"] = file.base;
    if (!file.base_revision.empty()) head["base revision"] = file.base_revision;
    head["adapter rank"] = file.lora_rank;
    head["trained in"] = file.weights_dtype;
    describe_pointer_head(file.head);
  }

  void describe_pointer_head(const decision::PointerHead& pointer) {
    Json& head = section("head");
    head["dimension"] = pointer.dim;
    head["hidden size"] = pointer.hidden;
    // As written, not as its fp32 neighbour in fp64 would be printed.
    head["temperature"] = Json::parse(fmt::format("{}", pointer.temperature));
  }

  void describe_adapter(const fs::path& path) {
    const fs::path file = path / "adapter_config.json";
    describe_lora(
        formats::parse_lora_config(read_text_file(file, formats::kMaxJsonFileBytes), file.string()));
  }

  void describe_lora(const formats::LoraConfig& config) {
    Json& adapter = section("adapter");
    adapter["kind"] = config.rank_stabilised ? "LoRA, rank-stabilised" : "LoRA";
    adapter["rank"] = config.rank;
    adapter["alpha"] = config.alpha;
    adapter["rank patterns"] = config.rank_pattern.size();
    adapter["alpha patterns"] = config.alpha_pattern.size();
  }

  void describe_config(const formats::ModelConfig& config, const char* name = "model") {
    Json& model = section(name);
    const auto linear = static_cast<std::size_t>(
        std::count(config.layers.begin(), config.layers.end(), formats::LayerType::linear_attention));
    model["family"] = config.family == formats::Family::qwen3_5 ? "Qwen3.5" : "Qwen3";
    model["layers"] =
        fmt::format("{} full attention, {} linear attention", config.layers.size() - linear, linear);
    model["hidden size"] = config.hidden_size;
    model["intermediate size"] = config.intermediate_size;
    model["vocabulary"] = config.vocabulary_size;
    model["attention heads"] =
        fmt::format("{} query, {} key-value, of {}", config.heads, config.kv_heads, config.head_dim);
    if (linear > 0) {
      model["linear attention heads"] = fmt::format(
          "{} key of {}, {} value of {}, convolution {}", config.linear_key_heads, config.linear_key_dim,
          config.linear_value_heads, config.linear_value_dim, config.linear_conv_width);
    }
    model["rotary"] =
        fmt::format("{} of {} values, theta {}", config.rotary_dim, config.head_dim, config.rope_theta);
    model["positions"] = config.max_positions;
  }

  void describe_tokenizer(const text::Tokenizer& tokenizer) {
    section("tokenizer")["ids"] = tokenizer.id_limit();
  }

  /// `place` goes before the names where several sources are listed.
  void list_tensors(const formats::TensorSource& source, const std::string& place = {}) {
    for (const std::string& name : source.names()) {
      const formats::TensorInfo& info = *source.find(name);
      report_.tensors.push_back({place + name, std::string(to_string(info.type)), info.shape,
                                 storage_bytes(info.type, formats::element_count(info))});
    }
    if (options_.check) check_values(source);
  }

  void walk(const formats::TorchValue& value, const std::string& path) {
    if (const auto* dict = value.dict()) {
      for (const auto& item : dict->items) walk(item.value, join(path, item.key));
    } else if (const auto* tensor = value.tensor()) {
      report_.tensors.push_back({path, std::string(to_string(tensor->type)), tensor->shape,
                                 storage_bytes(tensor->type, tensor->elements())});
      if (options_.check && is_floating(tensor->type)) attempt([&] { tensor->to_floats(); });
    } else {
      section("values")[path] = scalar(value);
    }
  }

  static std::string join(const std::string& path, const formats::TorchValue& key) {
    const std::string name = key.string() != nullptr    ? *key.string()
                             : key.integer() != nullptr ? std::to_string(*key.integer())
                                                        : std::string(key.kind());
    return path.empty() ? name : path + "." + name;
  }

  static Json scalar(const formats::TorchValue& value) {
    if (value.boolean() != nullptr) return *value.boolean();
    if (value.integer() != nullptr) return *value.integer();
    if (value.number() != nullptr) return *value.number();
    if (value.string() != nullptr) return *value.string();
    if (value.list() != nullptr) return fmt::format("a list of {}", value.list()->size());
    return nullptr;
  }

  static bool is_floating(DType type) {
    return type == DType::f64 || type == DType::f32 || type == DType::f16 || type == DType::bf16 ||
           type == DType::q8_0;
  }

  /// Reads every floating value once, a few rows at a time, so that a model larger than memory can be
  /// checked.
  void check_values(const formats::TensorSource& source) {
    constexpr std::uint64_t kValuesAtOnce = std::uint64_t{1} << 20;
    std::vector<float> values;
    for (const std::string& name : source.names()) {
      const formats::TensorInfo& info = *source.find(name);
      const std::uint64_t rows = info.shape.empty() ? 1 : info.shape[0];
      const std::uint64_t width = rows == 0 ? 0 : formats::element_count(info) / rows;
      if (!is_floating(info.type) || width == 0) continue;
      const std::uint64_t step = std::max<std::uint64_t>(1, kValuesAtOnce / width);
      attempt([&] {
        for (std::uint64_t first = 0; first < rows; first += step) {
          const std::uint64_t count = std::min(step, rows - first);
          values.resize(count * width);
          source.read_rows(name, first, count, values);
        }
      });
      source.release(name);
      ++checked_;
    }
    section("check")["tensors read"] = checked_;
  }

  const InspectOptions& options_;
  Report report_;
  std::size_t checked_ = 0;
};

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_text(const InspectOptions& options, const Report& report) {
  Json tensors = Json::array();
  for (const TensorRow& row : report.tensors) {
    tensors.push_back({{"name", row.name}, {"type", row.type}, {"shape", row.shape}, {"bytes", row.bytes}});
  }
  const Json document = {
      {"path", options.path},         {"kind", report.kind},         {"loads", report.problems.empty()},
      {"values_read", options.check}, {"problems", report.problems}, {"facts", report.facts},
      {"tensors", std::move(tensors)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Every section's keys in one column, so that values line up throughout.
std::string facts_text(const Report& report) {
  std::size_t width = 0;
  for (const auto& [section, facts] : report.facts.items()) {
    for (const auto& [key, value] : facts.items())
      width = std::max(width, std::min<std::size_t>(key.size(), 48));
  }
  std::string text;
  for (const auto& [section, facts] : report.facts.items()) {
    text += fmt::format("\n{}\n", printable(section));
    for (const auto& [key, value] : facts.items()) {
      text += fmt::format("  {:<{}}  {}\n", printable(key), width,
                          printable(value.is_string() ? value.get<std::string>() : dump(value)));
    }
  }
  return text;
}

std::string tensors_text(const Report& report) {
  if (report.tensors.empty()) return {};
  std::size_t name_width = 0;
  std::size_t shape_width = 0;
  std::uint64_t total = 0;
  for (const TensorRow& row : report.tensors) {
    name_width = std::max(name_width, row.name.size());
    shape_width = std::max(shape_width, formats::describe_shape(row.shape).size());
    total += row.bytes;
  }
  std::string text = fmt::format("\ntensors: {} of {}\n", report.tensors.size(), counted(total, "byte"));
  for (const TensorRow& row : report.tensors) {
    text += fmt::format("  {:<{}}  {:<5}  {:<{}}  {:>13}\n", printable(row.name), name_width, row.type,
                        formats::describe_shape(row.shape), shape_width, row.bytes);
  }
  return text;
}

std::string report_text(const InspectOptions& options, const Report& report) {
  std::string text =
      fmt::format("{}: {}\n", printable(options.path), report.kind.empty() ? "of unknown kind" : report.kind);
  text += facts_text(report) + tensors_text(report);
  if (report.problems.empty()) {
    return text + fmt::format("\nwould load: yes{}\n", options.check
                                                           ? ", all values finite"
                                                           : "; values were not read, --check reads them");
  }
  text += "\nwould load: no\n";
  for (const std::string& problem : report.problems) text += fmt::format("  {}\n", printable(problem));
  return text;
}

}  // namespace

void add_inspect(CLI::App& app) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Show what a file or checkpoint holds and whether it would load; exit status 1 if not");
  command
      ->add_option("path", options->path,
                   "A safetensors, torch, GGUF, tokenizer or configuration file; a run, adapter or model "
                   "directory; the "
                   "Hub id of a downloaded one")
      ->required();
  command->add_option("--base", options->base, "The base model of a run, where it is not where the run says");
  command->add_flag("--check", options->check, "Read every value and check that it is finite");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    const Report report = Inspector(*options).inspect();
    print(options->json ? json_text(*options, report) : report_text(*options, report));
    if (!report.problems.empty()) throw CLI::RuntimeError(1);
  });
}

}  // namespace assay::cli
