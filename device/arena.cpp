#include "device/arena.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "base/out_of_memory.hpp"
#include "device/memory.hpp"

namespace assay::device {
namespace {

constexpr std::size_t kMinimumBlock = std::size_t{1} << 20;

[[noreturn]] void throw_too_large(std::size_t count, std::size_t size) {
  throw OutOfMemory({.where = "memory",
                     .found = std::to_string(count) + " values of " + std::to_string(size) +
                              " bytes are more than the address space holds"});
}

std::size_t aligned(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() - Arena::kAlignment) throw_too_large(bytes, 1);
  return (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

}  // namespace

Arena::~Arena() {
  release_blocks();
}

void Arena::release_blocks() noexcept {
  for (const Block& block : blocks_) free_pages(block.data, block.size);
  blocks_.clear();
  current_ = 0;
}

void Arena::add_block(std::size_t bytes) {
  bytes = std::max(kMinimumBlock, aligned(bytes));
  blocks_.reserve(blocks_.size() + 1);
  blocks_.push_back({static_cast<std::byte*>(allocate_pages(bytes)), bytes, 0});
}

std::size_t Arena::block_with_room(std::size_t bytes) const noexcept {
  std::size_t index = current_;
  while (index < blocks_.size() && blocks_[index].size - blocks_[index].used < bytes) ++index;
  return index;
}

void Arena::reserve(std::size_t bytes) {
  if (block_with_room(bytes) < blocks_.size()) return;
  if (used() == 0) release_blocks();
  add_block(bytes);
}

void* Arena::allocate_elements(std::size_t count, std::size_t size) {
  if (count > std::numeric_limits<std::size_t>::max() / size) throw_too_large(count, size);
  const std::size_t bytes = aligned(std::max<std::size_t>(1, count * size));
  const std::size_t index = block_with_room(bytes);
  if (index == blocks_.size()) add_block(bytes);
  current_ = index;
  Block& block = blocks_[current_];
  void* result = block.data + block.used;
  block.used += bytes;
  high_water_ = std::max(high_water_, used());
  return result;
}

std::size_t Arena::used() const noexcept {
  std::size_t total = 0;
  for (const Block& block : blocks_) total += block.used;
  return total;
}

std::size_t Arena::capacity() const noexcept {
  std::size_t total = 0;
  for (const Block& block : blocks_) total += block.size;
  return total;
}

void Arena::merge_blocks() noexcept {
  // The high-water mark counts what was used, not what a block's end left over: it is what one block needs.
  release_blocks();
  try {
    add_block(high_water_);
  } catch (...) {
    release_blocks();  // the next allocation asks again, and may throw
  }
}

Arena::Scope::Scope(Arena& arena)
    : arena_(arena),
      block_(arena.current_),
      offset_(arena.current_ < arena.blocks_.size() ? arena.blocks_[arena.current_].used : 0) {
  ++arena_.scopes_;
}

Arena::Scope::~Scope() {
  for (std::size_t i = block_; i < arena_.blocks_.size(); ++i) {
    arena_.blocks_[i].used = std::min(arena_.blocks_[i].used, i == block_ ? offset_ : 0);
  }
  arena_.current_ = std::min(arena_.current_, block_);
  if (--arena_.scopes_ == 0 && arena_.blocks_.size() > 1 && arena_.used() == 0) arena_.merge_blocks();
}

}  // namespace assay::device
