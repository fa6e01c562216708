#include "decision/gguf_checkpoint.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "formats/backbone_tensors.hpp"
#include "formats/gguf.hpp"

namespace assay::decision {
namespace {

using formats::GgufFile;
using formats::GgufTokenizer;
using formats::ModelConfig;
using formats::TensorSource;

// Without a temperature: conversion/lev.py always writes one; server-decision.cpp and Kev itself take 1.
constexpr float kDefaultTemperature = 1.0f;
constexpr std::string_view kHeadWeight = "cls.output.weight";
constexpr std::string_view kHeadBias = "cls.output.bias";

/// "qwen35.decision."
std::string decision_prefix(const GgufFile& file) {
  return std::string(file.string("general.architecture")) + ".decision.";
}

void require_kev(const GgufFile& file) {
  const std::string key = decision_prefix(file) + "type";
  const auto type = file.find_string(key);
  if (type == "kev") return;
  throw Error(ErrorKind::unsupported, {.where = file.origin() + ": " + key,
                                       .found = type ? "'" + std::string(*type) + "'" : "no such key",
                                       .expected = "'kev'",
                                       .advice = type ? "only Kev's pointer readout is implemented"
                                                      : "this is a language model without a decision head"});
}

/// The one temperature of all question types. llama.cpp has a key for each type, and may have more for ranges
/// of option counts ("choice.3_5"); Kev writes the same number to all.
float read_temperature(const GgufFile& file) {
  const std::string prefix = decision_prefix(file) + "temperature.";
  const auto of_type = [&](std::string_view type) {
    return file.find_number(prefix + std::string(type)).value_or(kDefaultTemperature);
  };
  const float temperature = of_type("choice");
  if (!(temperature > 0)) {
    throw Error(ErrorKind::mismatch, {.where = file.origin() + ": " + prefix + "choice",
                                      .found = fmt::format("{}", temperature),
                                      .expected = "a number above 0"});
  }
  bool same = of_type("score") == temperature && of_type("noul") == temperature;
  for (auto next = file.metadata().lower_bound(prefix); next != file.metadata().end(); ++next) {
    if (!next->first.starts_with(prefix)) break;
    same = same && file.number(next->first) == temperature;
  }
  if (same) return temperature;
  throw Error(ErrorKind::unsupported,
              {.where = file.origin() + ": " + prefix + "*",
               .found = "temperatures that differ by question type or number of options",
               .expected = "one temperature"});
}

/// A token's output of the head is [query | key]: q's rows lie above k's.
PointerHead read_head(const GgufFile& file, const TensorSource& tensors, std::size_t hidden) {
  const formats::TensorInfo& weight = formats::require(tensors, kHeadWeight);
  const std::uint64_t rows = weight.shape.size() == 2 ? weight.shape[0] : 0;
  if (rows == 0 || rows % 2 != 0 || weight.shape[1] != hidden) {
    throw Error(ErrorKind::mismatch, {.where = file.origin() + ": tensor " + std::string(kHeadWeight),
                                      .found = "shape " + formats::describe_shape(weight.shape),
                                      .expected = fmt::format("[2 · head_dim, {}]", hidden)});
  }
  const std::string out_key = std::string(file.string("general.architecture")) + ".embedding_length_out";
  if (const auto out = file.find_integer(out_key); out && *out != rows) {
    throw Error(ErrorKind::mismatch, {.where = file.origin() + ": " + out_key,
                                      .found = fmt::format("{}", *out),
                                      .expected = fmt::format("the head's {} rows", rows)});
  }
  const auto values = formats::read_tensor(tensors, kHeadWeight, weight.shape);
  const auto biases = formats::read_tensor(tensors, kHeadBias, std::array{rows});
  const auto half = [](const std::vector<float>& all, std::size_t which) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(which * all.size() / 2);
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(all.size() / 2));
  };
  return {.dim = static_cast<std::size_t>(rows / 2),
          .hidden = hidden,
          .q_weight = half(values, 0),
          .q_bias = half(biases, 0),
          .k_weight = half(values, 1),
          .k_bias = half(biases, 1),
          .temperature = read_temperature(file)};
}

/// Qwen's tokenizer.json normalises to NFC and adds its special tokens unnormalised; GGUF has no field for
/// either (ggml-org/llama.cpp, conversion/base.py, get_vocab_base).
text::Tokenizer read_tokenizer(const GgufFile& file) {
  GgufTokenizer stored = formats::gguf_tokenizer(file);
  text::TokenizerParts parts;
  parts.split_pattern = std::move(stored.split_pattern);
  parts.merges = std::move(stored.merges);
  for (std::size_t i = 0; i < stored.tokens.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    std::string& text = stored.tokens[i];
    switch (stored.types[i]) {
      case GgufTokenizer::TokenType::normal:
        parts.vocabulary.emplace_back(std::move(text), id);
        break;
      case GgufTokenizer::TokenType::control:
      case GgufTokenizer::TokenType::user_defined:
        parts.added.push_back({.content = std::move(text),
                               .id = id,
                               .special = stored.types[i] == GgufTokenizer::TokenType::control});
        break;
      case GgufTokenizer::TokenType::unused:  // fills the embedding's size
        break;
      case GgufTokenizer::TokenType::unknown:
      case GgufTokenizer::TokenType::byte:
        throw Error(ErrorKind::unsupported,
                    {.where = file.origin() + ": tokenizer.ggml.token_type",
                     .found = fmt::format("type {} for token {}", static_cast<int>(stored.types[i]), i),
                     .expected = "types of byte-level BPE"});
    }
  }
  return text::Tokenizer::from_parts(std::move(parts), file.origin());
}

}  // namespace

Checkpoint open_gguf_checkpoint(const std::filesystem::path& path) {
  auto files = std::make_shared<const ModelFiles>(std::vector{path});
  const GgufFile file = GgufFile::open(path);
  require_kev(file);
  const ModelConfig config = formats::gguf_model_config(file);
  auto weights = formats::gguf_tensors(file);
  formats::check_backbone_tensors(*weights, config);
  PointerHead head = read_head(file, *weights, config.hidden_size);
  text::Tokenizer tokenizer = read_tokenizer(file);
  check_tokenizer(tokenizer, config, file.origin());
  CheckpointSources sources{
      .run = path, .base = path, .tokenizer = path, .weights_dtype = {}, .adapter = std::nullopt};
  return {config,           std::move(weights), std::move(head), std::move(tokenizer),
          std::move(files), std::move(sources)};
}

}  // namespace assay::decision
