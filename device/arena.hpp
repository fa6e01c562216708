#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace assay::device {

/// Scratch memory for one run: a bump allocator whose blocks are kept between runs.
///
/// `reserve` plans a run; allocations past the plan are still served (a further block), and the end of the
/// outermost Scope merges the blocks into one of the high-water mark, so a process that keeps changing its
/// call lengths holds what its longest call used and never more. What is allocated outside any Scope lives
/// as long as the arena. Not thread safe: allocate before a parallel region, not inside it.
class Arena {
 public:
  static constexpr std::size_t kAlignment = 64;

  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Makes room for `bytes` more in one block. Throws Error(io) when the system has no memory.
  void reserve(std::size_t bytes);

  /// Uninitialised storage for `count` values of T, 64-byte aligned, valid until the enclosing Scope ends.
  /// Throws Error(io) when the system has no memory; what was allocated before stays.
  template <class T>
  std::span<T> allocate(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    return {static_cast<T*>(allocate_elements(count, sizeof(T))), count};
  }

  std::size_t used() const noexcept;
  std::size_t capacity() const noexcept;
  std::size_t high_water() const noexcept { return high_water_; }

  /// Frees what was allocated since it was made; the outermost one also merges blocks. Scopes nest: they
  /// live on the stack.
  class Scope {
   public:
    explicit Scope(Arena& arena);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    static void* operator new(std::size_t) = delete;

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
  void* allocate_elements(std::size_t count, std::size_t size);
  /// Index of the first block from the current one on with `bytes` left; the number of blocks if there is
  /// none.
  std::size_t block_with_room(std::size_t bytes) const noexcept;
  void add_block(std::size_t bytes);
  void merge_blocks() noexcept;
  void release_blocks() noexcept;

  std::vector<Block> blocks_;
  std::size_t current_ = 0;
  std::size_t high_water_ = 0;
  std::size_t scopes_ = 0;
};

}  // namespace assay::device
