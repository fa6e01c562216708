#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace assay::device {

/// Zeroed anonymous pages, huge pages advised from 2 MiB up. Throws Error(io) when there is no memory.
void* allocate_pages(std::size_t bytes);
void free_pages(void* data, std::size_t bytes) noexcept;

/// Owned, page-aligned, zero-initialised storage that returns to the system when dropped.
/// A moved-from buffer is empty.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>, "zeroed pages are its values, and nothing destroys them");

 public:
  Buffer() = default;
  /// Throws Error(io) when there is no memory.
  explicit Buffer(std::size_t count)
      : data_(count == 0 ? nullptr : static_cast<T*>(allocate_pages(saturated_bytes(count))),
              Free{count * sizeof(T)}),
        size_(count) {}
  Buffer(Buffer&& other) noexcept : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }
  std::span<T> span() noexcept { return {data(), size_}; }
  std::span<const T> span() const noexcept { return {data(), size_}; }

 private:
  /// A count past the address space fails as any other too large one.
  static std::size_t saturated_bytes(std::size_t count) {
    constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
    return count > kMost / sizeof(T) ? kMost : count * sizeof(T);
  }
  struct Free {
    std::size_t bytes = 0;
    void operator()(T* data) const noexcept { free_pages(data, bytes); }
  };
  std::unique_ptr<T[], Free> data_;
  std::size_t size_ = 0;
};

/// Resident memory of this process, in bytes, as the kernel counts it (/proc/self/status VmRSS, VmHWM).
struct Footprint {
  std::size_t resident = 0;
  std::size_t peak = 0;
};
Footprint footprint();

/// Lets the peak begin again at what is resident now (Linux: `5` to /proc/self/clear_refs, proc(5)). False
/// where the kernel does not allow it; the peak then stays the whole process's.
bool reset_peak();

}  // namespace assay::device
