#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backbone/backbone.hpp"
#include "backbone/state_cache.hpp"
#include "decision/row.hpp"

namespace assay::decision {

struct PassOptions {
  std::size_t call_tokens = 0;
  std::size_t pass_tokens = 0;   ///< of one pass at most; a single row may be longer
  std::size_t cache_budget = 0;  ///< of the state cache; a larger state is not kept for it
  backbone::OpObserver* observer = nullptr;
};

/// Runs the rows of requests: each distinct state once (or not at all, where the cache has it), its questions
/// as its children, in as few passes as `pass_tokens` allows. For one use.
class PassRunner {
 public:
  /// Receives a question's hidden vectors: its option ends, then its decide token, [options + 1,
  /// hidden_size].
  using Visit = std::function<void(std::size_t request, std::size_t question, std::span<const float> hidden)>;

  PassRunner(backbone::Backbone& backbone, backbone::StateCache& cache, const std::string& identity,
             const PassOptions& options, const std::atomic<bool>* cancel)
      : backbone_(backbone), cache_(cache), identity_(identity), options_(options), cancel_(cancel) {}

  /// Visits every question, in order. Returns, per request, whether its state came from the cache.
  std::vector<bool> run(std::span<const RequestRows> requests, const Visit& visit);

 private:
  struct State {
    std::span<const std::int32_t> tokens;
    std::shared_ptr<const backbone::SegmentState> state = nullptr;  ///< once run, or from the cache
    std::optional<std::size_t> segment = std::nullopt;              ///< in the pass being filled
    std::size_t questions_left = 0;
    bool from_cache = false;
  };
  struct Item {
    std::size_t request;
    std::size_t question;
    std::size_t segment;
  };

  std::vector<std::size_t> collect_states(std::span<const RequestRows> requests);
  void add(State& state, const QuestionSegment& question, Item item, const Visit& visit);
  std::size_t cost(const State& state, const QuestionSegment& question) const;
  bool cacheable(const State& state) const;
  void run_pass(const Visit& visit);
  void keep_states(const backbone::PassResult& result);

  backbone::Backbone& backbone_;
  backbone::StateCache& cache_;
  const std::string& identity_;
  PassOptions options_;
  const std::atomic<bool>* cancel_;
  std::vector<State> states_;
  std::vector<backbone::Segment> segments_;  // of the pass being filled
  std::vector<Item> items_;
  std::size_t tokens_ = 0;
};

}  // namespace assay::decision
