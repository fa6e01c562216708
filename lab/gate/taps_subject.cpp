#include "lab/gate/taps_subject.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/sha256.hpp"
#include "formats/safetensors.hpp"

namespace assay::lab {
namespace {

constexpr std::string_view kFinal = "final_norm";

std::string tap_name(std::size_t layer) {
  return fmt::format("hidden_{:02}", layer);
}

[[noreturn]] void other_model(const TapsFixture& taps, std::string found, std::string expected) {
  throw Error(ErrorKind::mismatch, {.where = taps.file,
                                    .found = std::move(found),
                                    .expected = std::move(expected),
                                    .advice = "use the taps that were made with this checkpoint"});
}

void check_same_model(const TapsFixture& taps, const formats::ModelConfig& config) {
  for (const std::int32_t id : taps.ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= config.vocabulary_size) {
      other_model(taps, fmt::format("token id {}", id), fmt::format("ids below {}", config.vocabulary_size));
    }
  }
  // The authors record the embeddings and every layer, the last one after the final norm.
  std::size_t layers = 0;
  while (taps.tensors->find(tap_name(layers + 1)) != nullptr) ++layers;
  if (layers != config.layers.size()) {
    other_model(taps, "taps of " + counted(layers, "layer"),
                "those of " + counted(config.layers.size(), "layer"));
  }
  const std::array<std::uint64_t, 2> shape{taps.ids.size(), config.hidden_size};
  for (std::size_t layer = 0; layer < layers; ++layer) {
    formats::require(*taps.tensors, tap_name(layer), shape);
  }
  formats::require(*taps.tensors, kFinal, shape);
}

}  // namespace

TapsFixture read_taps(const std::filesystem::path& path) {
  TapsFixture taps{.file = path.filename().string(), .sha256 = sha256_hex(path), .ids = {}, .tensors = {}};
  taps.tensors = formats::open_safetensors(path);
  const formats::TensorInfo& ids = formats::require(*taps.tensors, "ids");
  const std::span<const std::byte> bytes = taps.tensors->stored_bytes("ids");
  if (ids.type != DType::i64 || ids.shape.size() != 1 || ids.shape[0] == 0 ||
      bytes.size() != ids.shape[0] * sizeof(std::int64_t)) {
    throw Error(ErrorKind::mismatch,
                {.where = taps.file + ", tensor ids",
                 .found = fmt::format("{} {}", to_string(ids.type), formats::describe_shape(ids.shape)),
                 .expected = "i64 [tokens], one or more"});
  }
  for (std::size_t i = 0; i < ids.shape[0]; ++i) {
    std::int64_t id = 0;
    std::memcpy(&id, bytes.data() + i * sizeof id, sizeof id);
    const bool fits = id >= 0 && id <= std::numeric_limits<std::int32_t>::max();
    taps.ids.push_back(fits ? static_cast<std::int32_t>(id) : -1);
  }
  return taps;
}

TapsSubject::TapsSubject(decision::Checkpoint checkpoint, const TapsFixture& taps,
                         const ops::Selection& selection, ops::Precision precision,
                         const backbone::PartForms& parts)
    : taps_(taps), identity_(checkpoint.files->identity()), precision_(precision) {
  check_same_model(taps, checkpoint.config);
  backbone_ = std::make_unique<backbone::Backbone>(
      std::move(checkpoint.config), std::move(checkpoint.weights), selection, threads_, nullptr, parts);
}

nlohmann::ordered_json TapsSubject::describe() const {
  return {{"type", "taps"},
          {"model_identity", identity_},
          {"forms", ops::describe(backbone_->selection())},
          {"precision", ops::to_string(precision_)},
          {"fixture", taps_.file},
          {"fixture_sha256", taps_.sha256}};
}

std::string TapsSubject::case_name(std::size_t /*index*/) const {
  return "row";
}

Answer TapsSubject::expected(std::size_t /*index*/) {
  const std::size_t width = backbone_->config().hidden_size;
  const std::array<std::uint64_t, 2> shape{taps_.ids.size(), width};
  Answer answer;
  const auto add = [&](const std::string& name) {
    answer.arrays.push_back({.name = name,
                             .shape = {taps_.ids.size(), width},
                             .values = formats::read_tensor(*taps_.tensors, name, shape)});
  };
  for (std::size_t layer = 0; layer < backbone_->config().layers.size(); ++layer) add(tap_name(layer));
  add(std::string(kFinal));
  return answer;
}

Answer TapsSubject::run(std::size_t index) {
  Answer answer;
  backbone::RunOptions options;
  options.call_tokens = std::max(options.call_tokens, taps_.ids.size());
  // The oracle records the last layer after the final norm alone.
  const std::string last = tap_name(backbone_->config().layers.size());
  options.tap = [&](std::string_view name, std::size_t rows, std::size_t width, const float* values) {
    if (name == last) return;
    answer.arrays.push_back({.name = std::string(name),
                             .shape = {rows, width},
                             .values = std::vector<float>(values, values + rows * width)});
  };
  backbone::Segment row{.tokens = taps_.ids};
  for (std::size_t i = 0; i < taps_.ids.size(); ++i) row.readouts.push_back(i);
  Array final{.name = std::string(kFinal),
              .shape = {taps_.ids.size(), backbone_->config().hidden_size},
              .values = {}};
  try {
    final.values = std::move(backbone_->run(std::vector{row}, options).hidden.front());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::non_finite) throw;
    final.values = std::vector<float>(final.shape[0] * final.shape[1], std::nanf(""));
  }
  answer.arrays.push_back(std::move(final));
  if (answer.arrays.size() != backbone_->config().layers.size() + 1) {
    throw Error(ErrorKind::internal, {.where = case_name(index), .found = "a run in several calls"});
  }
  return answer;
}

std::optional<Answer> TapsSubject::run_changed(std::size_t /*index*/, std::string_view arm) {
  throw Error(ErrorKind::unsupported, {.where = "red arm " + std::string(arm),
                                       .found = "nothing that taps can be run with",
                                       .expected = "an arm that changes the output"});
}

}  // namespace assay::lab
