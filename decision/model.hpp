#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backbone/backbone.hpp"
#include "backbone/state_cache.hpp"
#include "decision/checkpoint.hpp"
#include "decision/decision.hpp"
#include "decision/request.hpp"
#include "decision/row.hpp"
#include "device/thread_pool.hpp"
#include "ops/selection.hpp"

namespace assay::decision {

struct ModelOptions {
  ops::Precision precision = ops::Precision::bf16;
  ops::FormOverrides forms = {};
  std::size_t threads = 0;            ///< 0: one per core
  std::size_t state_cache_bytes = 0;  ///< 0 keeps no states
  std::size_t call_tokens = backbone::RunOptions{}.call_tokens;
  /// Tokens of one pass at most, more only where a single row is longer; what does not fit goes into further
  /// passes. 16,384 is the author's (kev/model.py, SERVE_MAX_PACKED).
  std::size_t pass_tokens = 16384;
  RowLimits limits = {};
  std::function<void(std::size_t done, std::size_t total)> progress = nullptr;  ///< of loading
  backbone::PartForms parts = nullptr;  ///< parts of layers that run in forms of their own
};

/// A checkpoint ready to answer. Several threads may ask at once; their runs follow one another.
///
/// A question's logits depend on the model, its forms and its own row alone: not on other questions or
/// requests, the number of threads, how passes were cut, or whether the state came from the cache.
class DecisionModel {
 public:
  DecisionModel(Checkpoint checkpoint, const ModelOptions& options);

  /// Opens a run directory or a GGUF file. Throws what opening, selecting forms and loading throw.
  static std::unique_ptr<DecisionModel> load(const std::filesystem::path& run_or_gguf,
                                             const std::optional<std::filesystem::path>& base,
                                             const ModelOptions& options);

  /// Throws Error(limit_exceeded) naming what is too long, Error(cancelled) once `cancel` is true.
  Decision decide(const Request& request, const std::atomic<bool>* cancel = nullptr);

  /// Several requests in as few passes as they need; equal states are run once.
  std::vector<Decision> decide(std::span<const Request> requests, const std::atomic<bool>* cancel = nullptr);

  /// The token rows of a request, as they are run.
  RequestRows rows(const Request& request) const { return encoder_.encode(request); }

  /// Tells `observer` of every op call of the runs that follow, until another or null takes its place. It
  /// must live until then.
  void set_observer(backbone::OpObserver* observer);

  const PointerHead& head() const noexcept { return head_; }
  /// Of the files that it was loaded from; see ModelFiles::identity.
  const std::string& identity() const { return files_->identity(); }
  const formats::ModelConfig& config() const noexcept { return backbone_->config(); }
  const ops::Selection& selection() const noexcept { return backbone_->selection(); }
  ops::Precision precision() const noexcept { return precision_; }
  std::size_t weight_bytes() const noexcept { return backbone_->weight_bytes(); }
  std::size_t threads() const noexcept { return threads_.size(); }
  backbone::StateCache::Counters cache_counters() const { return cache_.counters(); }

 private:
  std::vector<Decision> run(std::span<const Request> requests, std::span<const RequestRows> rows,
                            const std::atomic<bool>* cancel);
  QuestionDecision read_out(const Question& question, std::span<const float> hidden);

  ops::Precision precision_;
  PointerHead head_;
  text::Tokenizer tokenizer_;
  std::shared_ptr<const ModelFiles> files_;
  std::string cache_key_;
  RowEncoder encoder_;
  std::size_t call_tokens_;
  std::size_t pass_tokens_;
  std::size_t cache_budget_;
  backbone::StateCache cache_;
  device::ThreadPool threads_;
  std::unique_ptr<backbone::Backbone> backbone_;
  backbone::OpObserver* observer_ = nullptr;
  std::mutex run_mutex_;
};

}  // namespace assay::decision
