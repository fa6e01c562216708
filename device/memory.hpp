#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace assay::device {

/// Zeroed anonymous pages, huge pages advised from 2 MiB up. Throws Error(io) when there is no memory.
void* allocate_pages(std::size_t bytes);
void free_pages(void* data, std::size_t bytes) noexcept;

/// Owned, page-aligned, zero-initialised storage that returns to the system when dropped.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t count)
      : data_(count == 0 ? nullptr : static_cast<T*>(allocate_pages(count * sizeof(T))),
              Free{count * sizeof(T)}),
        size_(count) {}

  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }
  std::span<T> span() noexcept { return {data(), size_}; }
  std::span<const T> span() const noexcept { return {data(), size_}; }

 private:
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

}  // namespace assay::device
