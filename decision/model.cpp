#include "decision/model.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "decision/pass_runner.hpp"
#include "decision/pointer_head.hpp"
#include "decision/response.hpp"

namespace assay::decision {
namespace {

RowLimits limits_for(const formats::ModelConfig& config, RowLimits limits) {
  limits.row_tokens = std::min(limits.row_tokens, config.max_positions);
  limits.state_tokens = std::min(limits.state_tokens, limits.row_tokens);
  return limits;
}

/// The same error with the request that it belongs to, where there are several.
Error in_request(const Error& error, std::size_t index) {
  Error::Parts parts = error.parts();
  parts.where = fmt::format("requests[{}].{}", index, parts.where);
  return Error(error.kind(), std::move(parts));
}

}  // namespace

DecisionModel::DecisionModel(Checkpoint checkpoint, const ModelOptions& options)
    : precision_(options.precision),
      head_(std::move(checkpoint.head)),
      tokenizer_(std::move(checkpoint.tokenizer)),
      files_(std::move(checkpoint.files)),
      cache_key_(files_->stamp()),
      encoder_(tokenizer_, limits_for(checkpoint.config, options.limits)),
      call_tokens_(options.call_tokens),
      pass_tokens_(options.pass_tokens),
      cache_budget_(options.state_cache_bytes),
      cache_(options.state_cache_bytes),
      threads_(options.threads) {
  if (tokenizer_.id_limit() > checkpoint.config.vocabulary_size) {
    throw Error(ErrorKind::mismatch,
                {"tokenizer", fmt::format("ids up to {}", tokenizer_.id_limit() - 1),
                 fmt::format("ids below the vocabulary's {}", checkpoint.config.vocabulary_size),
                 "the tokenizer and the weights are of different models"});
  }
  backbone_ = std::make_unique<backbone::Backbone>(
      std::move(checkpoint.config), std::move(checkpoint.weights),
      ops::select_forms(options.precision, options.forms), threads_, options.progress, options.parts);
  files_->check_unchanged();
}

std::unique_ptr<DecisionModel> DecisionModel::load(const std::filesystem::path& run_or_gguf,
                                                   const std::optional<std::filesystem::path>& base,
                                                   const ModelOptions& options) {
  return std::make_unique<DecisionModel>(open_checkpoint(run_or_gguf, base), options);
}

Decision DecisionModel::decide(const Request& request, const std::atomic<bool>* cancel) {
  return std::move(decide(std::span(&request, 1), cancel).front());
}

std::vector<Decision> DecisionModel::decide(std::span<const Request> requests,
                                            const std::atomic<bool>* cancel) {
  std::vector<RequestRows> rows;
  rows.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    try {
      rows.push_back(encoder_.encode(requests[i]));
    } catch (const Error& error) {
      if (requests.size() == 1) throw;
      throw in_request(error, i);
    }
  }
  std::vector<Decision> decisions = run(requests, rows, cancel);
  for (Decision& decision : decisions) {
    decision.output_tokens = tokenizer_.encode(answers_json(decision, JsonStyle::python)).size();
  }
  return decisions;
}

std::vector<Decision> DecisionModel::run(std::span<const Request> requests, std::span<const RequestRows> rows,
                                         const std::atomic<bool>* cancel) {
  std::vector<Decision> decisions(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    decisions[i].model = requests[i].model;
    decisions[i].questions.resize(requests[i].questions.size());
    decisions[i].input_tokens = rows[i].tokens();
  }
  const std::lock_guard lock(run_mutex_);
  const auto begin = std::chrono::steady_clock::now();
  PassRunner passes(*backbone_, cache_, cache_key_, {call_tokens_, pass_tokens_, cache_budget_, observer_},
                    cancel);
  const std::vector<bool> from_cache =
      passes.run(rows, [&](std::size_t request, std::size_t question, std::span<const float> hidden) {
        decisions[request].questions[question] = read_out(requests[request].questions[question], hidden);
      });
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    decisions[i].state_from_cache = from_cache[i];
    decisions[i].milliseconds = took.count();
  }
  return decisions;
}

void DecisionModel::set_observer(backbone::OpObserver* observer) {
  const std::lock_guard lock(run_mutex_);
  observer_ = observer;
}

QuestionDecision DecisionModel::read_out(const Question& question, std::span<const float> hidden) {
  const std::size_t options = hidden.size() - head_.hidden;
  QuestionDecision decision;
  decision.id = question.id;
  decision.type = question.type;
  decision.keys = question.keys;
  decision.options = question.options;
  try {
    decision.logits = option_logits(head_, hidden.subspan(options), hidden.first(options), threads_);
  } catch (const Error& error) {
    throw Error(error.kind(), {field_path("questions", question.id), error.what()});
  }
  decision.probabilities = softmax(decision.logits);
  decision.answer = make_answer(question.type, decision.probabilities);
  return decision;
}

}  // namespace assay::decision
