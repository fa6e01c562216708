#include "lab/window/order.hpp"

#include <algorithm>

namespace assay::lab {
namespace {

/// 0, 1, n − 1, 2, n − 2, …: neighbours differ by every distance once.
std::vector<std::size_t> zigzag(std::size_t n) {
  std::vector<std::size_t> row{0};
  for (std::size_t step = 1; row.size() < n; ++step) {
    row.push_back(step);
    if (row.size() < n) row.push_back(n - step);
  }
  return row;
}

/// Turns of one repetition for the given processes, item by item.
void append_repetition(Stage& stage, const WindowSize& size, const std::vector<std::size_t>& processes,
                       std::size_t repetition) {
  for (const std::size_t item : item_order(size.items, repetition)) {
    for (const std::size_t process : processes) {
      for (const std::size_t form : form_order(size.forms, repetition + item)) {
        stage.turns.push_back({item, form, process, repetition});
      }
    }
  }
}

}  // namespace

std::size_t order_cycle(std::size_t forms) {
  if (forms <= 1) return 1;
  return forms % 2 == 0 ? forms : 2 * forms;
}

std::vector<std::size_t> form_order(std::size_t forms, std::size_t row) {
  std::vector<std::size_t> order = zigzag(forms);
  const std::size_t shift = row % order_cycle(forms) / 2;
  for (std::size_t& form : order) form = (form + shift) % forms;
  if (row % order_cycle(forms) % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

std::vector<std::size_t> item_order(std::size_t items, std::size_t repetition) {
  std::vector<std::size_t> order(items);
  for (std::size_t i = 0; i < items; ++i) order[i] = (i + repetition) % items;
  if (repetition % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

std::vector<Stage> rounds_schedule(const WindowSize& size) {
  std::vector<Stage> stages;
  for (std::size_t process = 0; process < size.processes; ++process) {
    Stage stage;
    for (const std::size_t form : form_order(size.forms, process)) stage.workers.push_back({form, process});
    for (std::size_t r = 0; r < size.repetitions; ++r) append_repetition(stage, size, {process}, r);
    stages.push_back(std::move(stage));
  }
  return stages;
}

std::vector<Stage> together_schedule(const WindowSize& size) {
  Stage stage;
  for (std::size_t process = 0; process < size.processes; ++process) {
    for (const std::size_t form : form_order(size.forms, process)) stage.workers.push_back({form, process});
  }
  for (std::size_t r = 0; r < size.repetitions; ++r) {
    append_repetition(stage, size, item_order(size.processes, r), r);
  }
  return {stage};
}

std::vector<Stage> one_schedule(const WindowSize& size) {
  std::vector<Stage> stages;
  for (std::size_t process = 0; process < size.processes; ++process) {
    for (const std::size_t form : form_order(size.forms, process)) {
      Stage stage;
      stage.workers = {{form, process}};
      for (std::size_t r = 0; r < size.repetitions; ++r) {
        for (const std::size_t item : item_order(size.items, r)) {
          stage.turns.push_back({item, form, process, r});
        }
      }
      stages.push_back(std::move(stage));
    }
  }
  return stages;
}

}  // namespace assay::lab
