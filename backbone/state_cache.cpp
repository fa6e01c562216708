#include "backbone/state_cache.hpp"

#include <utility>

namespace assay::backbone {
namespace {

// The ids themselves are the key: two states are the same only if every token is.
std::string key_of(const std::string& model, std::span<const std::int32_t> tokens) {
  std::string key = model;
  key += '\0';
  key.append(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
  return key;
}

}  // namespace

StateCache::StateCache(std::size_t budget_bytes) : budget_(budget_bytes) {}

std::shared_ptr<const SegmentState> StateCache::find(const std::string& model,
                                                     std::span<const std::int32_t> tokens) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(key_of(model, tokens));
  if (found == index_.end()) {
    ++counters_.misses;
    return nullptr;
  }
  ++counters_.hits;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().state;
}

void StateCache::insert(const std::string& model, std::span<const std::int32_t> tokens,
                        std::shared_ptr<const SegmentState> state) {
  std::string key = key_of(model, tokens);
  const std::size_t bytes = state->bytes() + 2 * key.size() + sizeof(Entry);
  const std::lock_guard lock(mutex_);
  if (bytes > budget_) {
    ++counters_.refused;
    return;
  }
  if (const auto old = index_.find(key); old != index_.end()) {
    counters_.bytes -= old->second->bytes;
    entries_.erase(old->second);
    index_.erase(old);
  }
  while (counters_.bytes + bytes > budget_) {
    drop_oldest();
    ++counters_.evictions;
  }
  entries_.push_front({key, std::move(state), bytes});
  index_.emplace(std::move(key), entries_.begin());
  counters_.bytes += bytes;
}

void StateCache::drop_oldest() {
  counters_.bytes -= entries_.back().bytes;
  index_.erase(entries_.back().key);
  entries_.pop_back();
}

void StateCache::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  index_.clear();
  counters_.bytes = 0;
}

StateCache::Counters StateCache::counters() const {
  const std::lock_guard lock(mutex_);
  Counters result = counters_;
  result.entries = entries_.size();
  return result;
}

}  // namespace assay::backbone
