#include "lab/window/order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace assay::lab {
namespace {

TEST(WindowOrder, TwoFormsRunForthAndBack) {
  EXPECT_EQ(order_cycle(2), 2u);
  EXPECT_EQ(form_order(2, 0), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(form_order(2, 1), (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(form_order(1, 5), (std::vector<std::size_t>{0}));
}

TEST(WindowOrder, OverACycleEveryFormIsEquallyOftenInEveryPosition) {
  for (std::size_t forms = 1; forms <= 9; ++forms) {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> seen;
    for (std::size_t row = 0; row < order_cycle(forms); ++row) {
      const std::vector<std::size_t> order = form_order(forms, row);
      ASSERT_EQ(std::set(order.begin(), order.end()).size(), forms);
      for (std::size_t place = 0; place < forms; ++place) ++seen[{place, order[place]}];
    }
    ASSERT_EQ(seen.size(), forms * forms);
    for (const auto& [where, count] : seen) EXPECT_EQ(count, order_cycle(forms) / forms) << forms;
  }
}

TEST(WindowOrder, OverACycleEveryFormFollowsEveryOtherEquallyOften) {
  for (std::size_t forms = 2; forms <= 9; ++forms) {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> seen;
    for (std::size_t row = 0; row < order_cycle(forms); ++row) {
      const std::vector<std::size_t> order = form_order(forms, row);
      for (std::size_t place = 1; place < forms; ++place) ++seen[{order[place - 1], order[place]}];
    }
    ASSERT_EQ(seen.size(), forms * (forms - 1));
    for (const auto& [pair, count] : seen) EXPECT_EQ(count, order_cycle(forms) / forms) << forms;
  }
}

TEST(WindowOrder, RowsComeInMirroredPairsAndRepeat) {
  for (std::size_t forms = 1; forms <= 9; ++forms) {
    for (std::size_t row = 0; row + 1 < order_cycle(forms); row += 2) {
      std::vector<std::size_t> mirror = form_order(forms, row + 1);
      std::reverse(mirror.begin(), mirror.end());
      EXPECT_EQ(form_order(forms, row), mirror);
    }
    EXPECT_EQ(form_order(forms, 0), form_order(forms, order_cycle(forms)));
  }
}

TEST(WindowOrder, ItemsRotateAndTurn) {
  EXPECT_EQ(item_order(3, 0), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(item_order(3, 1), (std::vector<std::size_t>{0, 2, 1}));
  EXPECT_EQ(item_order(3, 2), (std::vector<std::size_t>{2, 0, 1}));
}

/// Every turn there is once, and only by workers that are alive.
void expect_complete(const std::vector<Stage>& stages, const WindowSize& size) {
  std::set<std::vector<std::size_t>> turns;
  std::set<std::vector<std::size_t>> started;
  for (const Stage& stage : stages) {
    std::set<std::vector<std::size_t>> alive;
    for (const Stage::Worker& worker : stage.workers) {
      EXPECT_TRUE(started.insert({worker.form, worker.process}).second) << "a process that is not fresh";
      alive.insert({worker.form, worker.process});
    }
    for (const Turn& turn : stage.turns) {
      EXPECT_TRUE(alive.contains({turn.form, turn.process}));
      EXPECT_TRUE(turns.insert({turn.item, turn.form, turn.process, turn.repetition}).second);
    }
  }
  EXPECT_EQ(started.size(), size.forms * size.processes);
  EXPECT_EQ(turns.size(), size.items * size.forms * size.processes * size.repetitions);
}

TEST(WindowOrder, SchedulesHoldEveryTurnOnce) {
  for (const WindowSize size : {WindowSize{1, 2, 2, 4}, WindowSize{3, 3, 2, 6}, WindowSize{2, 4, 3, 8}}) {
    expect_complete(rounds_schedule(size), size);
    expect_complete(together_schedule(size), size);
    expect_complete(one_schedule(size), size);
    EXPECT_EQ(rounds_schedule(size).size(), size.processes);
    EXPECT_EQ(together_schedule(size).size(), 1u);
    EXPECT_EQ(one_schedule(size).size(), size.forms * size.processes);
  }
}

/// A drift that is linear in the turn's number adds the same to every form.
TEST(WindowOrder, LinearDriftFallsOnAllFormsAlike) {
  for (const std::size_t forms : {2u, 3u, 4u, 5u}) {
    const WindowSize size{2, forms, 2, 2 * order_cycle(forms)};
    for (const std::vector<Stage>& stages : {rounds_schedule(size), together_schedule(size)}) {
      std::map<std::pair<std::size_t, std::size_t>, std::size_t> drift;
      std::size_t number = 0;
      for (const Stage& stage : stages) {
        for (const Turn& turn : stage.turns) drift[{turn.item, turn.form}] += number++;
      }
      for (const auto& [cell, sum] : drift) EXPECT_EQ(sum, (drift[{cell.first, 0}])) << forms;
    }
  }
}

}  // namespace
}  // namespace assay::lab
