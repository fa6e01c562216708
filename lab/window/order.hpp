#pragma once

#include <cstddef>
#include <vector>

/// The order of a window's timed stretches.
///
/// Within a repetition and item every form runs once, in the rows of a Williams design (Williams,
/// "Experimental designs balanced for the estimation of residual effects of treatments", 1949): over a whole
/// cycle each form stands equally often in each position and runs equally often right after each other form,
/// so that neither a drift of the machine nor what the run before left in its caches falls on one of them.
/// Rows come in pairs of one and its mirror image: AB BA, and for three ABC CBA BCA ACB CAB BAC.
namespace assay::lab {

/// Rows of a cycle: 1 for one form, n for an even number of them, 2·n for an odd one.
std::size_t order_cycle(std::size_t forms);

/// The forms in the order of row `row`; rows repeat after a cycle.
std::vector<std::size_t> form_order(std::size_t forms, std::size_t row);

/// The items in the order of a repetition: each starts one further on, every second one backwards.
std::vector<std::size_t> item_order(std::size_t items, std::size_t repetition);

/// One timed stretch.
struct Turn {
  std::size_t item = 0;
  std::size_t form = 0;
  std::size_t process = 0;
  std::size_t repetition = 0;  ///< of that item in that process
};

/// Turns during which one set of workers lives.
struct Stage {
  struct Worker {
    std::size_t form = 0;
    std::size_t process = 0;
  };
  std::vector<Worker> workers;
  std::vector<Turn> turns;
};

struct WindowSize {
  std::size_t items = 1;
  std::size_t forms = 1;
  std::size_t processes = 2;
  std::size_t repetitions = 1;
};

/// One stage a process number, with that process of every form.
std::vector<Stage> rounds_schedule(const WindowSize& size);
/// One stage with every process of every form.
std::vector<Stage> together_schedule(const WindowSize& size);
/// One stage a process; processes in the order of `form_order`.
std::vector<Stage> one_schedule(const WindowSize& size);

}  // namespace assay::lab
