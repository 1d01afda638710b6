// Host memory whose allocations are counted, and one of which may fail. As long as it lives, all
// tensors in host memory come from it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "engine/tensor/host_memory.h"

namespace heddle::test {

class CountingAllocator {
 public:
  CountingAllocator() : number_(engine::use_host_allocator({allocate, release, this})) {}
  CountingAllocator(const CountingAllocator&) = delete;
  // REQUIRES: everything was given back.
  ~CountingAllocator() { engine::forget_host_allocator(number_); }

  void fail(std::uint64_t nth) { left_ = nth; }  // the nth from now; 0: none
  bool is_armed() const { return left_ > 0; }
  std::uint64_t live_bytes() const { return live_; }

 private:
  static void* allocate(void* self, std::size_t bytes, std::size_t alignment) {
    auto& counter = *static_cast<CountingAllocator*>(self);
    std::uint64_t left = counter.left_;
    while (left > 0 && !counter.left_.compare_exchange_weak(left, left - 1)) {
    }
    if (left == 1) return nullptr;
    counter.live_ += bytes;
    return std::aligned_alloc(alignment, bytes);
  }
  static void release(void* self, void* data, std::size_t bytes) {
    static_cast<CountingAllocator*>(self)->live_ -= bytes;
    std::free(data);
  }

  std::atomic<std::uint64_t> left_{0}, live_{0};
  const unsigned long long number_;
};

}  // namespace heddle::test
