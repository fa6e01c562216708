#include "decision/pass_runner.hpp"

#include <map>

namespace assay::decision {

std::vector<std::size_t> PassRunner::collect_states(std::span<const RequestRows> requests) {
  std::map<std::vector<std::int32_t>, std::size_t> known;
  std::vector<std::size_t> state_of;
  state_of.reserve(requests.size());
  for (const RequestRows& rows : requests) {
    const auto [place, added] = known.emplace(rows.state, states_.size());
    if (added) {
      State state{.tokens = rows.state};
      if (options_.cache_budget > 0) state.state = cache_.find(identity_, state.tokens);
      state.from_cache = state.state != nullptr;
      states_.push_back(std::move(state));
    }
    states_[place->second].questions_left += rows.questions.size();
    state_of.push_back(place->second);
  }
  return state_of;
}

std::vector<bool> PassRunner::run(std::span<const RequestRows> requests, const Visit& visit) {
  const std::vector<std::size_t> state_of = collect_states(requests);
  std::vector<bool> from_cache;
  from_cache.reserve(requests.size());
  for (const std::size_t state : state_of) from_cache.push_back(states_[state].from_cache);
  for (std::size_t r = 0; r < requests.size(); ++r) {
    for (std::size_t q = 0; q < requests[r].questions.size(); ++q) {
      add(states_[state_of[r]], requests[r].questions[q], {r, q, 0}, visit);
    }
  }
  run_pass(visit);
  return from_cache;
}

std::size_t PassRunner::cost(const State& state, const QuestionSegment& question) const {
  const bool has_state = state.state != nullptr || state.segment.has_value();
  return question.tokens.size() + (has_state ? 0 : state.tokens.size());
}

void PassRunner::add(State& state, const QuestionSegment& question, Item item, const Visit& visit) {
  if (!items_.empty() && tokens_ + cost(state, question) > options_.pass_tokens) run_pass(visit);
  tokens_ += cost(state, question);
  if (!state.state && !state.segment) {
    state.segment = segments_.size();
    segments_.push_back({.tokens = state.tokens});
  }
  backbone::Segment segment{.tokens = question.tokens};
  if (state.segment) {
    segment.parent = static_cast<std::int32_t>(*state.segment);
  } else {
    segment.parent_state = state.state;
  }
  segment.readouts = question.option_ends;
  segment.readouts.push_back(question.decide());
  item.segment = segments_.size();
  segments_.push_back(std::move(segment));
  items_.push_back(item);
  --state.questions_left;
}

bool PassRunner::cacheable(const State& state) const {
  return options_.cache_budget > 0 && backbone_.state_bytes(state.tokens.size()) <= options_.cache_budget;
}

void PassRunner::run_pass(const Visit& visit) {
  if (items_.empty()) return;
  for (const State& state : states_) {
    if (state.segment) segments_[*state.segment].keep_state = state.questions_left > 0 || cacheable(state);
  }
  backbone::RunOptions options;
  options.call_tokens = options_.call_tokens;
  options.cancel = cancel_;
  options.observer = options_.observer;
  const backbone::PassResult result = backbone_.run(segments_, options);
  for (const Item& item : items_) visit(item.request, item.question, result.hidden[item.segment]);
  keep_states(result);
  segments_.clear();
  items_.clear();
  tokens_ = 0;
}

void PassRunner::keep_states(const backbone::PassResult& result) {
  for (State& state : states_) {
    if (state.segment) {
      state.state = result.states[*state.segment];
      state.segment.reset();
      if (cacheable(state)) cache_.insert(identity_, state.tokens, state.state);
    }
    if (state.questions_left == 0) state.state.reset();
  }
}

}  // namespace assay::decision
