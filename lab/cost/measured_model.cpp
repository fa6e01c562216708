#include "lab/cost/measured_model.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/path.hpp"
#include "base/utf8.hpp"
#include "decision/checkpoint.hpp"
#include "lab/synthetic_weights.hpp"

namespace assay::lab {
namespace {

constexpr std::uint64_t kSeed = 20;

}  // namespace

MeasuredModel open_model(const ModelChoice& choice) {
  if (choice.model.empty() == choice.shape.empty()) {
    throw Error(ErrorKind::invalid_argument,
                {"--model, --shape", choice.model.empty() ? "neither" : "both", "one of them",
                 "--model takes a checkpoint, --shape synthetic weights of a known model's shape"});
  }
  if (!choice.shape.empty()) {
    if (!choice.base.empty()) {
      throw Error(ErrorKind::invalid_argument, {"--base", "given with --shape",
                                                "nothing: synthetic weights have no base", "leave it out"});
    }
    formats::ModelConfig config = shape_config(choice.shape);
    auto weights = synthetic_weights(config, kSeed);
    return {std::move(config), std::move(weights), {{"shape", choice.shape}, {"seed", kSeed}}};
  }
  std::optional<std::filesystem::path> base;
  if (!choice.base.empty()) base = choice.base;
  decision::Checkpoint checkpoint = decision::open_checkpoint(choice.model, base);
  const std::filesystem::path path = resolved_path(choice.model);
  // A run's folder is often called just that; the one above it says of which model.
  const std::string name = printable((path.parent_path().filename() / path.filename()).string());
  return {std::move(checkpoint.config),
          std::move(checkpoint.weights),
          {{"identity", checkpoint.files->identity()}, {"name", name}}};
}

nlohmann::ordered_json run_subject(const nlohmann::ordered_json& model, ops::Precision precision,
                                   std::size_t threads, const ops::Selection& forms) {
  return {{"model", model},
          {"precision", ops::to_string(precision)},
          {"threads", threads},
          {"forms", ops::describe(forms)}};
}

std::vector<std::int32_t> some_tokens(const formats::ModelConfig& config, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<std::int32_t>((7919 + i * 104729) % config.vocabulary_size);
  }
  return tokens;
}

void run_one_call(backbone::Backbone& backbone, std::span<const std::int32_t> tokens,
                  backbone::OpObserver* observer) {
  backbone::RunOptions options;
  // A call is rounded down to whole chunks, so a whole chunk more leaves these tokens in one.
  options.call_tokens = tokens.size() + backbone.selection().gated_delta_rule->chunk;
  options.observer = observer;
  const backbone::Segment segment{.tokens = tokens, .readouts = {tokens.size() - 1}};
  backbone.run(std::span(&segment, 1), options);
}

}  // namespace assay::lab
