#include "device/arena.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "device/memory.hpp"

namespace assay::device {
namespace {

constexpr std::size_t kMinimumBlock = std::size_t{1} << 20;

std::size_t aligned(std::size_t bytes) {
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
  blocks_.reserve(blocks_.size() + 1);
  blocks_.push_back({static_cast<std::byte*>(allocate_pages(bytes)), bytes, 0});
}

void Arena::reserve(std::size_t bytes) {
  if (used() == 0 && capacity() < bytes) {
    release_blocks();
    add_block(std::max(kMinimumBlock, aligned(bytes)));
  }
}

void* Arena::allocate_bytes(std::size_t bytes) {
  bytes = aligned(std::max<std::size_t>(bytes, 1));
  while (current_ < blocks_.size() && blocks_[current_].size - blocks_[current_].used < bytes) ++current_;
  if (current_ == blocks_.size()) add_block(std::max(kMinimumBlock, bytes));
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

Arena::Scope::Scope(Arena& arena)
    : arena_(arena),
      block_(arena.current_),
      offset_(arena.current_ < arena.blocks_.size() ? arena.blocks_[arena.current_].used : 0) {
  ++arena_.scopes_;
}

Arena::Scope::~Scope() {
  for (std::size_t i = block_; i < arena_.blocks_.size(); ++i)
    arena_.blocks_[i].used = i == block_ ? offset_ : 0;
  arena_.current_ = block_;
  if (--arena_.scopes_ == 0 && arena_.blocks_.size() > 1) {
    // One block of the whole size from the next allocation on; this cannot throw.
    const std::size_t total = arena_.capacity();
    arena_.release_blocks();
    try {
      arena_.add_block(total);
    } catch (...) {
      arena_.release_blocks();
    }
  }
}

}  // namespace assay::device
