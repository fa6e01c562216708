#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace assay::device {

/// Scratch memory for one run: a bump allocator whose blocks are kept between runs.
///
/// `reserve` plans a run; allocations past the plan are still served (a further block), and the next
/// `reset` merges the blocks, so a process that keeps changing its call lengths holds the high-water mark
/// of its longest call and never more. Not thread safe: allocate before a parallel region, not inside it.
class Arena {
 public:
  static constexpr std::size_t kAlignment = 64;

  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Makes room for `bytes` in one block. Throws Error(io) when the system has no memory.
  void reserve(std::size_t bytes);

  /// Uninitialised storage for `count` values of T, 64-byte aligned, valid until the enclosing Scope ends.
  template <class T>
  std::span<T> allocate(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    return {static_cast<T*>(allocate_bytes(count * sizeof(T))), count};
  }

  std::size_t used() const noexcept;
  std::size_t capacity() const noexcept;
  std::size_t high_water() const noexcept { return high_water_; }

  /// Frees what was allocated since it was made; the outermost one also merges blocks.
  class Scope {
   public:
    explicit Scope(Arena& arena);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    std::size_t block_;
    std::size_t offset_;
  };

 private:
  struct Block {
    std::byte* data;
    std::size_t size;
    std::size_t used;
  };
  void* allocate_bytes(std::size_t bytes);
  void add_block(std::size_t bytes);
  void release_blocks() noexcept;

  std::vector<Block> blocks_;
  std::size_t current_ = 0;
  std::size_t high_water_ = 0;
  std::size_t scopes_ = 0;
};

}  // namespace assay::device
