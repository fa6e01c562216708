#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "backbone/state.hpp"

namespace assay::backbone {

/// States by model identity and exact token ids, least recently used dropped first, under a byte budget.
/// A state that somebody still runs on lives on after it is dropped here. Safe from several threads.
class StateCache {
 public:
  struct Counters {
    std::size_t hits = 0;
    std::size_t misses = 0;
    std::size_t evictions = 0;
    std::size_t refused = 0;  ///< states larger than the whole budget
    std::size_t entries = 0;
    std::size_t bytes = 0;
  };

  /// A budget of 0 keeps nothing.
  explicit StateCache(std::size_t budget_bytes);

  std::shared_ptr<const SegmentState> find(const std::string& model, std::span<const std::int32_t> tokens);
  /// Keeps the state if it fits; replaces one of the same key.
  void insert(const std::string& model, std::span<const std::int32_t> tokens,
              std::shared_ptr<const SegmentState> state);
  void clear();
  Counters counters() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const SegmentState> state;
    std::size_t bytes;
  };
  void drop_oldest();

  const std::size_t budget_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
  Counters counters_;
};

}  // namespace assay::backbone
