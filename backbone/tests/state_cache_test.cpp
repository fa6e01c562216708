#include "backbone/state_cache.hpp"

#include <gtest/gtest.h>

#include "backbone/tests/synthetic_source.hpp"

namespace assay::backbone {
namespace {

using Tokens = std::vector<std::int32_t>;

std::shared_ptr<const SegmentState> state_of(std::size_t tokens) {
  auto state = std::make_shared<SegmentState>(small_dense(), tokens, nullptr);
  state->advance(tokens);
  return state;
}

/// Room for `count` states of `tokens` tokens, keys included.
std::size_t budget_for(std::size_t count, std::size_t tokens) {
  StateCache cache(std::size_t{1} << 30);
  cache.insert("m", Tokens(tokens, 0), state_of(tokens));
  return count * cache.counters().bytes;
}

TEST(StateCache, FindsOnlyTheExactTokensOfTheSameModel) {
  StateCache cache(std::size_t{1} << 24);
  const auto state = state_of(3);
  cache.insert("m", Tokens{1, 2, 3}, state);
  EXPECT_EQ(cache.find("m", Tokens{1, 2, 3}), state);
  EXPECT_EQ(cache.find("m", Tokens{1, 2}), nullptr);
  EXPECT_EQ(cache.find("m", Tokens{1, 2, 3, 4}), nullptr);
  EXPECT_EQ(cache.find("m", Tokens{1, 2, 4}), nullptr);
  EXPECT_EQ(cache.find("other", Tokens{1, 2, 3}), nullptr);
  EXPECT_EQ(cache.counters().hits, 1u);
  EXPECT_EQ(cache.counters().misses, 4u);
}

TEST(StateCache, DropsTheLeastRecentlyUsedAndStaysWithinItsBudget) {
  const std::size_t budget = budget_for(2, 4);
  StateCache cache(budget);
  cache.insert("m", Tokens{1, 1, 1, 1}, state_of(4));
  cache.insert("m", Tokens{2, 2, 2, 2}, state_of(4));
  ASSERT_NE(cache.find("m", Tokens{1, 1, 1, 1}), nullptr);
  cache.insert("m", Tokens{3, 3, 3, 3}, state_of(4));
  EXPECT_EQ(cache.find("m", Tokens{2, 2, 2, 2}), nullptr);
  EXPECT_NE(cache.find("m", Tokens{1, 1, 1, 1}), nullptr);
  EXPECT_NE(cache.find("m", Tokens{3, 3, 3, 3}), nullptr);
  EXPECT_EQ(cache.counters().evictions, 1u);
  EXPECT_LE(cache.counters().bytes, budget);
}

TEST(StateCache, ReplacesAnEntryOfTheSameKeyWithoutCountingItTwice) {
  StateCache cache(budget_for(1, 4));
  cache.insert("m", Tokens{1, 2, 3, 4}, state_of(4));
  const auto newer = state_of(4);
  cache.insert("m", Tokens{1, 2, 3, 4}, newer);
  EXPECT_EQ(cache.find("m", Tokens{1, 2, 3, 4}), newer);
  EXPECT_EQ(cache.counters().entries, 1u);
  EXPECT_EQ(cache.counters().evictions, 0u);
}

TEST(StateCache, RefusesAStateLargerThanTheBudgetAndKeepsTheRest) {
  StateCache cache(budget_for(1, 4));
  cache.insert("m", Tokens{1, 2, 3, 4}, state_of(4));
  cache.insert("m", Tokens(64, 9), state_of(64));
  EXPECT_EQ(cache.counters().refused, 1u);
  EXPECT_NE(cache.find("m", Tokens{1, 2, 3, 4}), nullptr);
}

TEST(StateCache, ABudgetOfZeroKeepsNothing) {
  StateCache cache(0);
  cache.insert("m", Tokens{1}, state_of(1));
  EXPECT_EQ(cache.find("m", Tokens{1}), nullptr);
  EXPECT_EQ(cache.counters().bytes, 0u);
}

TEST(StateCache, AStateInUseOutlivesItsEviction) {
  StateCache cache(budget_for(1, 4));
  cache.insert("m", Tokens{1, 1, 1, 1}, state_of(4));
  const auto held = cache.find("m", Tokens{1, 1, 1, 1});
  cache.insert("m", Tokens{2, 2, 2, 2}, state_of(4));
  EXPECT_EQ(cache.find("m", Tokens{1, 1, 1, 1}), nullptr);
  EXPECT_EQ(held->tokens(), 4u);
  cache.clear();
  EXPECT_EQ(cache.counters().bytes, 0u);
}

}  // namespace
}  // namespace assay::backbone
